"""How an invoice gets its number: counter, invoices and request-id guards in one transaction.

    counter  invoices#<series>      n → n+k                     if it is n
    invoice  <series>, n+1 … n+k    put                         if it is not there
    guard    requestId#…            put, naming its invoice     if it is not there

All of it or nothing: a number without its invoice cannot exist, so there is nothing to repair after
a crash, and every TransactGetItems sees the numbers 1..n, each on its invoice. The process
remembers n; where it is no longer right, the refusal brings the true one. Guards decide first:
whose request is stored already gets the stored invoice, the others go on in a new transaction.

Waiting invoices of a series share a transaction (`sequences.combining`): 2 + 4k write units for k
invoices of up to 1 KB with their guards. Where several processes issue on a series, each sends its
groups at the pace of `invoices.pace`, and reads the counter anew before each. A group that was in
vain is not sent again: after a pause it is gathered anew, and invoices that came meanwhile are in
it. A process that was not overtaken lately waits for nobody.
"""

from __future__ import annotations

import time
import uuid

from dynamo.deadline import operation_ends_at
from dynamo.exceptions import DynamoError, Hindered, Rejected, TableMissing, Unavailable
from invoices import days
from invoices.documents import DEFAULT_LANGUAGE, Draft, Invoice, Party, draw_up, to_item
from invoices.drafts import (
    check_account,
    check_draft,
    check_language,
    check_seller,
    check_sums,
    checked_request_id,
)
from invoices.exceptions import DateTooEarly, InvoiceTooLarge
from invoices.groups import Ask, Group, next_group
from invoices.heads import Heads, Known, read_head
from invoices.rules import REASON_MAX_BYTES
from invoices.sizes import ITEM_MAX_BYTES, item_bytes, write_units
from sequences.combining import AGAIN, Again, Combiner
from sequences.exceptions import SequenceError

#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html has 100
#: actions and 4 MB; an invoice takes two actions and the counter one.
GROUP_MAX_INVOICES = 49
GROUP_MAX_BYTES = 3_000_000
#: A partition takes 1,000 write units a second: a group must not use up more than half of one.
GROUP_MAX_UNITS = 500

#: A number, at its longest, is that much longer than the 0 of an invoice that has none yet.
NUMBER_BYTES = 21
#: Kept free in the item, so that the largest invoice can still be voided: a reason of
#: `REASON_MAX_BYTES`, a time, and the names of both.
VOIDING_BYTES = REASON_MAX_BYTES + 100

_heads = Heads()


def issue(
    draft: Draft,
    *,
    account: str,
    seller: Party,
    request_id: str | uuid.UUID | None = None,
    guarded: bool = True,
    language: str = DEFAULT_LANGUAGE,
) -> Invoice:
    """Give `draft` the next number of the account's year and store it as an invoice.

    `request_id` names this invoice among the account's (drawn when none is given): asked for again
    with the same id and contents, whenever, the answer is the invoice that was issued. With
    `guarded=False` no id is kept (2 units less, and no such promise), so none can be given.

    `account` is any text without `#`, which stands between the parts of keys, but not `requestId`,
    with which those of guards begin. `invoices.drafts` says what else is asked of a draft; forms
    and commands ask `invoices.rules` for more before.

    `language` is the one of its PDF, a tag such as `pt-BR`. Like the seller it is no part of the
    contents: a request that is repeated in another language gets the invoice that was issued.

    Costs 1 request and 6 write units for an invoice of up to 1 KB, when nobody else issues on the
    series and the process has seen its counter before (else 1 read more); less in a group.

    Raises:
        RequestIdReused: the request id issued an invoice of other contents.
        DateTooEarly: the series has a later date already.
        InvoiceTooLarge: it does not fit into an item.
        DamagedSeries: counter and invoices contradict each other.
        Unavailable: no answer in time. Ask again with the same request id.
        ValueError: something is asked for that no invoice may be; nothing was sent.
    """
    if request_id is not None and not guarded:
        raise ValueError("An invoice without a guard keeps no request id: leave it out.")
    request_id = str(uuid.uuid4()) if request_id is None else checked_request_id(request_id)
    check_account(account)
    check_seller(seller)
    check_language(language)
    check_draft(draft)
    while True:
        today = days.today()
        invoice = draw_up(draft, account, seller, today, request_id, language)
        check_sums(invoice.totals)
        item = to_item(invoice)
        size_bytes = item_bytes(item) + NUMBER_BYTES
        if size_bytes > ITEM_MAX_BYTES - VOIDING_BYTES:
            raise InvoiceTooLarge(size_bytes, ITEM_MAX_BYTES - VOIDING_BYTES)
        ask = Ask(invoice, item, draft.digest(), size_bytes, guarded)
        try:
            return _combiner(invoice.series, ask)
        except (DynamoError, SequenceError) as error:
            if isinstance(ask.outcome, Invoice):
                # It failed for the others, after this one's invoice was stored.
                return ask.outcome
            # Midnight may have passed between the look at the clock and the series' next invoice.
            late = isinstance(error, DateTooEarly) and not draft.issued_on and today != days.today()
            if not late:
                raise


def _fits(asks: list[Ask]) -> int:
    """How many of `asks`, from the front, share a transaction."""
    size_bytes = 0
    units = 2
    for count, ask in enumerate(asks):
        size_bytes += ask.size_bytes + 1024
        units += write_units(ask.size_bytes) + (2 if ask.guarded else 0)
        if count == GROUP_MAX_INVOICES or size_bytes > GROUP_MAX_BYTES or units > GROUP_MAX_UNITS:
            return count
    return len(asks)


def _serve(series: str, asks: list[Ask]) -> list[Invoice | Exception | Again]:
    """Issue a group on `series`; each gets its invoice or its own error, or is to come again."""
    known = _known(series, asks)
    ends_at = operation_ends_at()
    at_most = len(asks)
    while left := next_group(asks, known.head)[:at_most]:
        if time.monotonic() > ends_at:
            raise Unavailable("TransactWriteItems", "the series is contended or throttled")
        try:
            known, got_on = _attempt(Group(series, known.head, left), known)
        except TableMissing:
            raise
        except Rejected as error:
            # One of them is at fault and takes no companions down: from here on each goes alone.
            at_most = 1
            if len(left) == 1:
                left[0].outcome = error
            continue
        if not got_on:
            break
    _heads.put(series, known)
    return [ask.outcome or AGAIN for ask in asks]


def _known(series: str, asks: list[Ask]) -> Known:
    """What is remembered of the series; the head is read where that is nothing, or would refuse.

    A date that is too early is refused without a transaction, which would tell where the memory is
    wrong: of a table that was restored or emptied since.
    """
    known = _heads.get(series)
    if known is None:
        return Known(read_head(series))
    if any(ask.outcome is None and ask.is_before(known.head) for ask in asks):
        return Known(read_head(series), known.pace)
    return known


def _attempt(group: Group, known: Known) -> tuple[Known, bool]:
    """Send it once; what is known then, and whether to go on: else it was in vain."""
    pace, began = known.pace, time.monotonic()
    try:
        is_written = group.commit()
    except Hindered as hindered:
        now = time.monotonic()
        if hindered.throttled:
            return Known(known.head, pace.slowed(now)), False
        return Known(known.head, pace.lost(now, now - began, told=False)), False
    now = time.monotonic()
    if is_written:
        return Known(group.head_after, pace.won(now, now - began)), True
    group.answer_the_repeated()
    true_head = group.true_head()
    if true_head is None:
        return known, True
    if true_head == known.head:
        group.declare_damaged()
        return known, True
    return Known(true_head, pace.lost(now, now - began, told=True)), False


def _wait_for_a_turn(series: str) -> None:
    """Pause before a group where others issue on the series too, and look how far it is.

    A read costs less than a group that is refused.
    """
    known = _heads.get(series)
    if known is None:
        return
    begins_at = min(known.pace.begins_at, operation_ends_at())
    if (pause := begins_at - time.monotonic()) > 0:
        time.sleep(pause)
    if known.pace.must_look(time.monotonic()):
        _heads.put(series, Known(read_head(series), known.pace))


_combiner: Combiner[str, Ask, Invoice] = Combiner(_serve, _fits, prepare=_wait_for_a_turn)

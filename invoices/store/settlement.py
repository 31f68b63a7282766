"""Voiding, crediting and paying an invoice. Each is one transaction, and only one can succeed.

A credit note cancels an invoice which was already sent or booked. It is numbered in the series of
its issue date. It has the seller, the customer and the lines of the invoice, with negated
quantities. Its request id is derived from the invoice, so there is at most one, even after repeated
requests.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from pynamodb.expressions.operand import Path

from dynamo import Transaction, joined
from dynamo.client.writes import Refusal, Write
from dynamo.wire.updates import Update
from invoices.document.amounts import Line
from invoices.document.fields import Day, SingleLine
from invoices.document.invoice import Draft, Invoice, credit_request_id
from invoices.exceptions import (
    AlreadyCredited,
    AlreadyPaid,
    AlreadySent,
    AlreadyVoided,
    DateTooEarly,
    InvoiceRequestReused,
    IsCreditNote,
    NotPaid,
    UnknownInvoice,
)
from invoices.models import InvoiceItem, InvoiceState
from invoices.store.issuing import issue_invoice, today, zone_of
from invoices.store.records import (
    Record,
    credit_guard,
    find_invoice,
    find_record,
    from_item,
    invoice_at,
    label_of_guard,
    same_sendings,
    state_at,
)

VOID_REASON = SingleLine(_("Reason"), max_length=500, help_text=_("Printed on the invoice."))
CREDIT_REASON = VOID_REASON.variant(help_text=_("Printed on the credit note."))
#: The day when an invoice was paid.
PAID_ON = Day(_("Paid on"))

#: The condition of an invoice that is not voided.
ISSUED = (Path("status") == "issued") & Path("credits").does_not_exist()

# Voiding -----------------------------------------------------------------------------------------


def void(
    account: str,
    label: str,
    reason: str,
    *,
    time_zone: str | None = None,
    even_if_sent: bool = False,
    write: Transaction | None = None,
) -> None:
    """Void the invoice, today in `time_zone`. It keeps its number and its contents.

    A paid invoice is refused: credit it, or undo the payment first (`mark_unpaid`). An invoice that
    the customer may have received by email is voided only with `even_if_sent`.

    Costs 2 requests, 6 read and 6 write units for an invoice of up to 1 KB. After `Unavailable`, a
    second call shows whether the first one voided it.

    Raises (the first two at once, AlreadySent at once or, as the others, when the transaction is
    refused):
        ValidationError: the reason is empty, too long, or cannot be printed.
        UnknownInvoice: the account has no such invoice.
        IsCreditNote: a credit note cannot be voided.
        AlreadyVoided: it was voided before.
        AlreadyCredited: a credit note cancels it.
        AlreadyPaid: it is marked as paid.
        AlreadySent: a mail with it may have arrived, or is being sent.
        DamagedItem: its stored item is damaged.
        Unavailable: no answer in time; it may be voided.
    """
    values = {
        "status": "voided",
        "voidReason": VOID_REASON.clean(reason),
        "voidedAt": datetime.now(zone_of(time_zone)).isoformat(),
    }
    changes = Update({name: {"S": value} for name, value in values.items()})

    def refused(refusal: Refusal) -> Exception | None:
        # An earlier attempt carried out this write, because the stored time and reason are the
        # same.
        if changes.is_done(refusal.stored):
            return None
        return _why_not_issued(label, refusal)

    record = find_record(account, label)
    if record.can_be_paid and not (even_if_sent or record.can_be_voided):
        raise AlreadySent(label)
    with joined(write) as write:
        write.add(_check_not_credited(account, label))
        write.add(_check_not_paid_or_sent(record, even_if_sent=even_if_sent))
        write.add(Write.update(invoice_at(account, label), changes, ISSUED, otherwise=refused))


# Crediting ---------------------------------------------------------------------------------------


def credit(account: str, label: str, reason: str, *, time_zone: str | None = None) -> Invoice:
    """The credit note for an invoice, dated today in `time_zone`; see `issuing.today`.

    It is issued in the language of the invoice. If the invoice is credited already, the first
    credit note is returned, with the reason that was given then.

    Costs 2 requests, 6 read and 10 write units for an invoice of up to 1 KB; the first call of a
    process on the series costs 1 read more, and so does an invoice that another process has
    issued since.

    Raises:
        ValidationError: the reason is empty, too long, or cannot be printed; nothing was sent.
        UnknownInvoice: the account has no such invoice.
        IsCreditNote: it is a credit note.
        AlreadyVoided: it was voided.
        AlreadyCredited: it is marked as credited, but its credit note does not exist.
        DateTooEarly: the invoice or the series already has a later date.
        ItemTooLarge, DamagedSeries, DamagedItem, Unavailable: see `sequences.issue`.
    """
    reason = CREDIT_REASON.clean(reason)
    record = find_record(account, label)
    invoice = record.invoice
    if record.credit_note:
        return find_invoice(account, record.credit_note)
    if (day := today(time_zone)) < invoice.issued_at:
        raise DateTooEarly(day, invoice.issued_at)
    draft = Draft(
        **{name: getattr(invoice, name) for name in _REPEATED},
        lines=negated(invoice.lines),
        credits=label,
        credit_reason=reason,
    )
    credited = Write.update(
        record.state,
        [InvoiceState.credited_by.set(credit_request_id(label))],
        InvoiceState.credited_by.does_not_exist(),
        otherwise=AlreadyCredited(label),
    )
    try:
        return issue_invoice(
            draft,
            account=account,
            seller=invoice.seller,
            request_id=credit_request_id(label),
            language=invoice.language,
            time_zone=time_zone,
            also=[_check_issued(account, label), credited],
        )
    except (AlreadyCredited, InvoiceRequestReused):
        # Another call was faster, perhaps with another reason.
        record = find_record(account, label)
        if not record.credit_note:
            raise
        return find_invoice(account, record.credit_note)


#: The fields that a credit note copies from the invoice, without those that request a payment.
_REPEATED = (
    "customer",
    "currency",
    "prices_include_tax",
    "supplied_from",
    "supplied_to",
    "buyer_reference",
    "exemption_reason",
)


def negated(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The lines with negated quantities. Rounding is symmetric, so all sums change their sign."""
    return tuple(replace(line, quantity=-line.quantity) for line in lines)


# Payments ----------------------------------------------------------------------------------------


def check_paid_on(day: date, today: date) -> date:
    """Return `day`. Raises ValidationError at `paid_on` if it is in the future."""
    if day > today:
        message = _("Enter a day that is not in the future.")
        raise ValidationError({"paid_on": ValidationError(message, "future")})
    return day


def mark_paid(account: str, label: str, day: date, *, write: Transaction | None = None) -> None:
    """Record that the invoice was paid on `day`. A repeated call with the same day changes nothing.

    Costs 1 request and 4 write units for an invoice of up to 1 KB.

    Raises:
        UnknownInvoice, IsCreditNote, AlreadyVoided, AlreadyCredited: it cannot be paid.
        AlreadyPaid: it is marked as paid on another day.
    """

    def refused(refusal: Refusal) -> Exception | None:
        stored = _state_of(refusal)
        if stored.credited_by:
            return AlreadyCredited(label)
        # It is marked already, possibly by an earlier attempt of this write.
        if stored.paid_on == day:
            return None
        return AlreadyPaid(label, stored.paid_on)

    with joined(write) as write:
        write.add(_check_issued(account, label))
        write.update(
            state_at(account, label),
            [InvoiceState.paid_on.set(day)],
            InvoiceState.paid_on.does_not_exist() & InvoiceState.credited_by.does_not_exist(),
            otherwise=refused,
        )


def mark_unpaid(account: str, label: str, day: date, *, write: Transaction | None = None) -> None:
    """Undo `mark_paid` with the same `day`. Without a payment, this changes nothing.

    Costs 1 request and 1 write unit.

    Raises:
        NotPaid: it is marked as paid on another day.
        UnknownInvoice: `label` is not a label.
    """

    def refused(refusal: Refusal) -> Exception | None:
        return NotPaid(label, day) if bool(_state_of(refusal).paid_on) else None

    with joined(write) as write:
        write.update(
            state_at(account, label),
            [InvoiceState.paid_on.remove()],
            InvoiceState.paid_on == day,
            otherwise=refused,
        )


def _state_of(refusal: Refusal) -> InvoiceState:
    return InvoiceState.from_raw_data(refusal.stored or {})


# The checks of the operations ----------------------------------------------------------------


def _check_issued(account: str, label: str) -> Write:
    """The check that this is an invoice that is not voided, for a transaction.

    Its refusal means UnknownInvoice, IsCreditNote, AlreadyVoided, or DamagedItem.
    """
    key = invoice_at(account, label)
    return Write.check(key, ISSUED, otherwise=lambda refusal: _why_not_issued(label, refusal))


def _why_not_issued(label: str, refusal: Refusal) -> Exception:
    """The error for an item that does not meet `ISSUED`."""
    if not refusal.stored:
        return UnknownInvoice(label)
    invoice = from_item(refusal.stored)
    if invoice.is_credit_note:
        return IsCreditNote(label)
    return AlreadyVoided(label, invoice.void_reason)


def _check_not_credited(account: str, label: str) -> Write:
    """The check that no credit note cancels the invoice; its refusal means AlreadyCredited."""
    guard = credit_guard(invoice_at(account, label).series, label)
    return Write.check(
        guard,
        InvoiceItem.series.does_not_exist(),
        otherwise=lambda refusal: AlreadyCredited(label, label_of_guard(refusal.stored or {})),
    )


def _check_not_paid_or_sent(record: Record, *, even_if_sent: bool) -> Write:
    """The check that the invoice is not marked as paid, and was not sent since `record` was read.

    Its refusal means AlreadyPaid or AlreadySent.
    """
    label, is_not_paid = record.invoice.label, InvoiceState.paid_on.does_not_exist()

    def refused(refusal: Refusal) -> Exception:
        stored = _state_of(refusal)
        return AlreadyPaid(label, stored.paid_on) if bool(stored.paid_on) else AlreadySent(label)

    unchanged = is_not_paid if even_if_sent else is_not_paid & same_sendings(record.state)
    return Write.check(record.state, unchanged, otherwise=refused)

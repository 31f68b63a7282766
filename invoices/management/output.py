"""How commands show invoices to people; `invoices.jsonform` has the form for programs."""

from __future__ import annotations

from collections.abc import Iterator

from invoices.documents import Invoice, Party
from invoices.money import plain_amount


def as_row(invoice: Invoice) -> str:
    """One line: number, date, gross, customer, and whether it is voided."""
    state = "  (voided)" if invoice.is_voided else ""
    return (
        f"{invoice.label}  {invoice.issued_at}  {_amount(invoice.totals.gross, invoice)}  "
        f"{invoice.customer.name}{state}"
    )


def as_lines(invoice: Invoice) -> str:
    """All that the invoice says, one thing a line."""
    return "\n".join(f"{name + ':':<13}{value}" for name, value in _shown(invoice) if value)


def _shown(invoice: Invoice) -> Iterator[tuple[str, str]]:
    yield "number", invoice.label
    yield "issued", str(invoice.issued_at)
    yield "status", invoice.status
    yield "void reason", invoice.void_reason
    yield from _party_lines("seller", invoice.seller)
    yield from _party_lines("customer", invoice.customer)
    for line in invoice.lines:
        net = _amount(line.net(invoice.currency), invoice)
        yield (
            "line",
            f"{line.description}  {line.quantity:f} × {line.unit_price:f} = {net}, "
            f"VAT {line.vat_rate:f} %",
        )
    yield "net", _amount(invoice.totals.net, invoice)
    for share in invoice.totals.shares:
        yield f"VAT {share.rate:f} %", _amount(share.vat, invoice)
    yield "gross", _amount(invoice.totals.gross, invoice)
    for text in invoice.note.splitlines():
        yield "note", text


def _party_lines(role: str, party: Party) -> Iterator[tuple[str, str]]:
    for text in (party.name, *party.address.splitlines(), party.vat_id):
        yield role, text


def _amount(amount: int, invoice: Invoice) -> str:
    return f"{plain_amount(amount, invoice.currency)} {invoice.currency}"

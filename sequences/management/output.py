"""How commands show invoices: as JSON for programs, as lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from typing import Any

from sequences.invoices import Invoice, Party
from sequences.money import plain_amount


def as_json(invoice: Invoice) -> str:
    """One JSON object; amounts are minor units of the currency."""
    return _dumped(_summary(invoice))


def as_full_json(invoice: Invoice) -> str:
    """One JSON object with all that the invoice says."""
    lines = [asdict(line) | {"net": line.net(invoice.currency)} for line in invoice.lines]
    return _dumped(
        _summary(invoice)
        | {
            "seller": _party(invoice.seller),
            "customer": _party(invoice.customer),
            "lines": [
                {
                    "description": line["description"],
                    "quantity": line["quantity"],
                    "unitPrice": line["unit_price"],
                    "vatRate": line["vat_rate"],
                    "net": line["net"],
                }
                for line in lines
            ],
            "vatShares": [asdict(share) for share in invoice.totals.shares],
            "note": invoice.note,
            "requestId": invoice.request_id,
            "voidReason": invoice.void_reason,
            "voidedAt": invoice.voided_at,
        }
    )


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


def _summary(invoice: Invoice) -> dict[str, Any]:
    return {
        "number": invoice.label,
        "series": invoice.series,
        "net": invoice.totals.net,
        "vat": invoice.totals.vat,
        "gross": invoice.totals.gross,
        "currency": invoice.currency,
        "issuedAt": invoice.issued_at,
        "status": invoice.status,
    }


def _party(party: Party) -> dict[str, str]:
    return {"name": party.name, "address": party.address, "vatId": party.vat_id}


def _amount(amount: int, invoice: Invoice) -> str:
    return f"{plain_amount(amount, invoice.currency)} {invoice.currency}"


def _dumped(shown: dict[str, Any]) -> str:
    return json.dumps(shown, default=_text, ensure_ascii=False)


def _text(value: Any) -> str:
    """Dates in ISO 8601; decimals as text, so that no reader makes them floats."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{value!r} has no JSON form")

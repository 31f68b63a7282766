"""Invoices as JSON, one object each: for programs, and for who takes their data along."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from typing import Any

from invoices.documents import Invoice, Party


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
            "language": invoice.language,
        }
    )


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


def _dumped(shown: dict[str, Any]) -> str:
    return json.dumps(shown, default=_text, ensure_ascii=False)


def _text(value: Any) -> str:
    """Dates in ISO 8601; decimals as text, so that no reader makes them floats."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{value!r} has no JSON form")

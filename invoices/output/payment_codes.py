"""The QR code by which a banking app fills in the transfer (EPC069-12, for euros)."""

from __future__ import annotations

from typing import Any

from invoices.document.invoice import Invoice
from invoices.document.money import in_major_units

_NAME_MAX_LENGTH = 70
#: In cents: EPC069-12 has no larger amount.
_MOST = 999_999_999_99
_UTF_8 = 1


def payment_code(invoice: Invoice) -> Any:
    """The code (`segno.QRCode`) that pays `invoice`; None if there is nothing to pay with it.

    The remittance text is the number of the invoice.
    """
    seller, gross = invoice.seller, invoice.totals.gross
    if invoice.is_draft or invoice.is_voided or invoice.is_credit_note or invoice.currency != "EUR":
        return None
    if not seller.iban or not 0 < gross <= _MOST:
        return None
    from segno.helpers import make_epc_qr

    name = " ".join((seller.account_holder or seller.name).split())
    try:
        return make_epc_qr(
            name=name[:_NAME_MAX_LENGTH],
            iban=seller.iban,
            bic=seller.bic,
            amount=in_major_units(gross, invoice.currency),
            text=invoice.label,
            encoding=_UTF_8,
        )
    except ValueError:
        # A bank account that a program stored, or a name of more than 331 bytes.
        return None


def payment_image(invoice: Invoice) -> str:
    """The code as SVG, as wide as its squares; empty if there is none."""
    code = payment_code(invoice)
    return code.svg_inline(border=0) if code else ""

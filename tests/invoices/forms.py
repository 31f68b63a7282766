"""The form of a new invoice, as browsers send it, and the list as they show it."""

import re
from datetime import date
from typing import Any

from django.test import Client

from invoices.pages.forms import InvoiceForm

NEW, LIST = "/invoices/new/", "/invoices/"
#: The day of these tests; see the fixture `held_day`.
TODAY = date(2026, 11, 20)

LINE = {"description": "Work", "quantity": "2", "unit_price": "50.00", "vat_rate": "19"}


def typed(*lines: dict[str, str], **values: Any) -> dict[str, Any]:
    """The values of the form, with one line of 100 EUR and 19 percent unless `lines` are given."""
    lines = lines or (LINE,)
    return {
        "customer_name": "Bob Ltd",
        "currency": "EUR",
        "request_id": InvoiceForm.new_request_id(),
        "lines-TOTAL_FORMS": str(len(lines)),
        "lines-INITIAL_FORMS": "0",
        **{
            f"lines-{at}-{name}": text
            for at, line in enumerate(lines)
            for name, text in line.items()
        },
        **values,
    }


def listed(client: Client, query: str = "") -> list[str]:
    """The labels of the invoices that the list shows, in its order."""
    page = client.get(LIST + query).content.decode()
    return re.findall(r'href="/invoices/(\d{4}-\d{6})/"', page)

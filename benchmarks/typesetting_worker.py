"""Typesets one invoice in a new process: `python -m benchmarks.typesetting_worker NAME`.

Prints as JSON the milliseconds of the first PDF, those of a later one, and its size in KB.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import replace
from datetime import date
from decimal import Decimal

import django

LATER = 30


def main(name: str) -> None:
    django.setup()
    from invoices.document.amounts import Line
    from invoices.document.invoice import Customer, Draft, Seller, draw_up
    from invoices.output.einvoices import missing
    from invoices.output.pdf import render

    seller = Seller("Ann GmbH", "Hauptstraße 1\n10115 Berlin", "DE136695976", "DE")
    customer = Customer("Bob SA", "1 rue Basse\n75001 Paris", "FR40303265045", "FR")
    day = date(2026, 11, 20)
    lines = (Line("Tea", Decimal(3), Decimal("9.99"), Decimal(19)),)
    draft = Draft(customer, lines * (100 if name == "hundred-lines" else 1), "EUR")
    if name != "one-line":
        draft = replace(draft, due_date=day)
    invoice = draw_up(draft, "account", seller, day, "request")
    if bool(missing(invoice)) != (name == "one-line"):
        raise SystemExit(f"Not what was to be measured: {missing(invoice)}")
    taken = []
    pdf = b""
    for number in range(1, LATER + 2):
        # Typst remembers what it has typeset, so each is another invoice.
        numbered = replace(invoice, number=number)
        started = time.perf_counter()
        pdf = render(numbered)
        taken.append((time.perf_counter() - started) * 1000)
    print(json.dumps([taken[0], statistics.median(taken[1:]), len(pdf) / 1000]))


if __name__ == "__main__":
    main(*sys.argv[1:])

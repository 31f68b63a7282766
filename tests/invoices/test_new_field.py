"""The recipe "A new field of the invoice" of docs/developers.md, carried out on a copy."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import io, json, sys
from datetime import date

import django
from django.template.loader import render_to_string

django.setup()

import pypdf

import invoices
from accounts.models import User
from invoices.document.invoice import draw_up, typed_values_of
from invoices.models import InvoiceState, SellerProfile
from invoices.output.files import YEAR_FILES, as_full_json
from invoices.output.pdf import render
from invoices.pages.forms import InvoiceForm
from invoices.store.records import Record, from_item, to_item
from tests.invoices.forms import typed

values = typed(project="Lighthouse")
day = date(2026, 11, 21)
form = InvoiceForm(values, user=User(username="ann"), profile=SellerProfile("ann"))
assert form.is_valid(), form.errors
invoice = from_item(to_item(draw_up(form.draft(), "a", form.seller, day, "r")))
record = Record(invoice, InvoiceState(invoice.series, 1))
pdf = pypdf.PdfReader(io.BytesIO(render(invoice)))
json.dump(
    {
        "package": invoices.__path__[0],
        "form": "".join(map(str, form.visible_fields())),
        "again": str(typed_values_of(invoice)),
        "page": render_to_string("invoices/invoice.html", {"invoice": invoice, "record": record}),
        "PDF": "".join(page.extract_text() for page in pdf.pages),
        "CSV": b"".join(YEAR_FILES["csv"]([record])).decode(),
        "JSON": as_full_json(record),
    },
    sys.stdout,
)
"""


def test_a_declared_field_is_on_form_page_pdf_csv_and_json(tmp_path: Path) -> None:
    recipe = (ROOT / "docs" / "developers.md").read_text(encoding="utf-8")
    declared = re.search(r"## A new field.*?```python\n\s*(.*?)\n", recipe, re.DOTALL)
    assert declared
    shutil.copytree(ROOT / "invoices", tmp_path / "invoices")
    document = tmp_path / "invoices" / "document" / "invoice.py"
    before = document.read_text(encoding="utf-8")
    last = "    credits: str = "
    document.write_text(before.replace(last, f"    {declared[1]}\n{last}"), encoding="utf-8")

    settings = {"DJANGO_SETTINGS_MODULE": "project.settings", "DJANGO_DEBUG": "on"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env=os.environ | settings | {"DJANGO_SECRET_KEY": "x", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    shown = json.loads(run.stdout)
    assert shown.pop("package") == str(tmp_path / "invoices")
    assert [name for name, text in shown.items() if "Lighthouse" not in text] == []
    assert {"Project" in shown[name] for name in ("page", "PDF")} == {True}
    assert shown["CSV"].splitlines()[0].endswith(",project")
    assert json.loads(shown["JSON"])["project"] == "Lighthouse"

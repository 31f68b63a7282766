"""Writes what this version stores, one item of each kind, into the folder of a release.

It is not a part of the suite. Before a release, and never again after it:

    .venv/bin/pytest tests/stored/writing.py
"""

import base64
import json
import time
import tomllib
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.cache import cache
from django.test import Client

from accounts.emails import mails, pending
from accounts.emails.links import request_change
from accounts.models import User
from accounts.services import edit_profile
from dynamo.admin import site
from invoices.document.amounts import Line
from invoices.document.invoice import Customer
from invoices.store.customers import add_customer
from invoices.store.settlement import credit, mark_paid, void
from invoices.tasks import delete_address_book
from locks import Lock, claim_once
from locks.registry import look
from sequences import next_value, next_values
from staff.reports import KINDS, make_report, store
from tests.commands import ROOT
from tests.factories import PASSWORD, change_password, make_user
from tests.invoice_factories import issued, sell_as
from tests.items import Item, insert, scanned
from tests.locks.items import abandoned, taken
from tests.pages import sign_in
from tests.registration import RunTasks
from tests.session_maps import begun
from tests.staff.scenes import acting, do, make_staff
from tests.stored.releases import new_folder
from tests.stored.test_library import VALUES
from tests.stored.test_numbers import CUSTOMER, FIRST, PAID_ON
from tests.uploads.samples import Uploaded, file_of
from tests.uploads.test_stored_rows import BEGUN, DONE
from uploads import claims
from uploads.models import UPLOADING, UploadItem

RELEASE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
BUCKET = f"stored-by-{RELEASE}"

HAL = "pbkdf2_sha256$1000$salt$hHq2CwjSpsUCltVF/ZDe25M5jA5hBHN9+inXRaOGbjU="


def test_items_of_each_kind_are_written(
    engine: str, dynamodb_tables: Any, s3: Any, tmp_path: Path, worker: RunTasks
) -> None:
    about = write_accounts()
    about["tasks"] = write_tasks(about["accounts"]["Ann.Müller"], worker)
    write_locks()
    write_numbers(about["accounts"]["Ann.Müller"])
    write_settled(about["accounts"]["hal"])
    write_uploads(s3, tmp_path)
    for name, value in VALUES.items():
        cache.set(name, value, timeout=None if name == "number" else 3600)

    folder = new_folder(RELEASE)
    for table in dynamodb_tables.all:
        items = scanned(table.name)
        if items and not table.name.startswith("tests-"):
            lines = sorted(_as_text(item) for item in items)
            (folder / f"{table.name}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    text = json.dumps(about, ensure_ascii=False, indent=2)
    (folder / "about.json").write_text(f"{text}\n")


def _as_text(item: Item) -> str:
    """The item as on the wire, which has binary values in base64.

    Paths in tracebacks begin in the checkout, wherever that is.
    """

    def in_base64(value: bytes) -> str:
        return base64.b64encode(value).decode()

    text = json.dumps(item, ensure_ascii=False, sort_keys=True, default=in_base64)
    return text.replace(f"{ROOT}/", "")


def write_accounts() -> dict[str, Any]:
    ann = make_user(
        username="Ann.Müller",
        email="Ann@Bücher.example",
        full_name="Ann Müller",
        phone_number="+49 30 901820",
        email_confirmed=True,
    )
    edit_profile(ann, language="ja")
    sell_as(ann, name="Ann & Söhne", address="Main Street 1\n12345 Town", vat_id="DE123456789")
    begun(ann, address="2001:db8::7")
    browser = Client(REMOTE_ADDR="192.0.2.7")
    sign_in(browser, ann)
    bobby = make_user(username="Bobby.Tables", email="bobby@example.org", request_id="form of bob")
    begun(bobby)
    cid = make_user(username="cid", email="cid@example.org")
    dee = make_user(username="dee", email="dee@example.org")
    for user in (cid, dee):
        request_change(user, f"{user.username}@example.net")
    dropped = dee.pending_id
    change_password(dee, PASSWORD)
    eve = make_user(username="eve", email="eve@example.org")
    fay = make_staff(username="fay", email="fay@example.org")
    gus = make_user(username="gus", email="gus@example.org", password=None)
    hal = make_user(
        username="hal", email="hal@example.org", full_name="Hal", password=None, password_hash=HAL
    )
    do(acting(fay), "deactivate", eve, "Spam")
    do(acting(fay), "endSessions", User.get(bobby.pk), "Asked for by phone")
    taken("broken", lease_seconds=1)
    site.break_lock(acting(fay), look("broken"), "Stuck")
    store(make_report(KINDS["guards"], by="fay", progress=lambda _what, _count: None))
    ivy = pending.hold_sign_up(
        username="ivy", email="ivy@example.org", password=PASSWORD, request_id="form of ivy"
    )
    return {
        "storedAt": int(time.time()),
        "password": PASSWORD,
        "bucket": BUCKET,
        "sessionKey": browser.session.session_key,
        "accounts": {item.username: item.pk for item in (ann, bobby, cid, dee, eve, fay, gus, hal)},
        "heldSignUp": ivy,
        "droppedChange": dropped,
    }


def write_tasks(ann: str, worker: RunTasks) -> dict[str, str]:
    """One that has succeeded, one that has failed for good, and two that wait."""
    done = mails.deliver_later.enqueue("deleted", "ann@example.org", "en", {"when": "today"})
    failed = mails.confirm.enqueue(no_such_argument=True)
    worker()
    waiting = mails.reset.enqueue("ann@bücher.example", "en")
    once = delete_address_book.using(request_id="1").enqueue(ann)
    tasks = {"done": done, "failed": failed, "waiting": waiting, "once": once}
    return {name: result.id for name, result in tasks.items()}


def write_locks() -> None:
    abandoned("held", lease_seconds=1).leave(b"page 7")
    with Lock("released", lease_seconds=1) as lease:
        lease.leave(b"done")
    claim_once("claimed")


def write_numbers(account: str) -> None:
    next_values(42, "tickets")
    next_value("seconds", 10)
    work = Line("作業", Decimal(1), Decimal(50000), Decimal(10))
    later = date(2026, 3, 15)
    first = {"customer": FIRST.customer, "lines": FIRST.lines, "note": FIRST.note}
    issued(account, request_id="first form", **first)
    japanese = {"customer": Customer("株式会社", "Side Street 2"), "currency": "JPY"}
    issued(account, request_id="second form", language="ja", day=later, lines=(work,), **japanese)
    void(account, "2026-000002", "Wrong customer")
    add_customer(account, CUSTOMER, request_id="form of a customer")
    issued(account, customer=Customer("Carl", "Side Street 2"), day=later, lines=FIRST.lines[:1])


def write_settled(account: str) -> None:
    for _invoice in range(2):
        issued(account)
    mark_paid(account, "2026-000001", PAID_ON)
    credit(account, "2026-000002", "Returned")


def write_uploads(s3: Any, folder: Path) -> None:
    with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
        s3.create_bucket(Bucket=BUCKET)
    Uploaded([file_of(folder, name, data) for name, data in DONE.items()], BUCKET)
    # A process claimed two files, and died; another one was stopped.
    dead = abandoned("uploads#of a dead process", lease_seconds=1)
    for name in BEGUN:
        url = f"s3://{BUCKET}/in/{name}"
        size = len(BEGUN[name])
        upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key=f"in/{name}")["UploadId"]
        if name == "free.bin":
            insert(UploadItem(url, state=UPLOADING, size=size, upload_id=upload_id))
            continue
        claim = claims.take(url, size, dead)
        assert isinstance(claim, claims.Claim)
        if name == "half.bin":
            claims.record_upload(claim, upload_id)

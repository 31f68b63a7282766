"""`showinvoice`: print the contents of an invoice."""

from invoices.management.base import InvoiceCommand, as_text, find_owner
from invoices.output.files import as_full_json
from invoices.store.records import find_record


class Command(InvoiceCommand):
    help = "Show an invoice, and whether it is paid or credited."
    takes = ("number", "--json")

    def handle(self, *args: object, user: str, number: str, **options: object) -> None:
        account, _user = find_owner(user)
        record = find_record(account, number)
        self.stdout.write(as_full_json(record) if options["json"] else as_text(record))

"""`voidinvoice`: void an invoice. No other operation changes its item."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from invoices.exceptions import AlreadyPaid, AlreadySent
from invoices.management.base import InvoiceCommand, errors_about, find_owner
from invoices.store.records import find_invoice
from invoices.store.settlement import void


class Command(InvoiceCommand):
    help = "Void an invoice. It keeps its number and shows the reason."
    takes = ("number", "--reason", "--json")

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        sent = "void it although a mail with it may have arrived"
        parser.add_argument("--even-if-sent", action="store_true", help=sent)

    def handle(self, *args: object, **options: Any) -> None:
        if not settings.INVOICES_ALLOW_VOID:
            raise CommandError("INVOICES_ALLOW_VOID is off. Use creditinvoice.")
        account, user = find_owner(options["user"])
        label = options["number"]
        how = {
            "time_zone": user.time_zone if user else None,
            "even_if_sent": options["even_if_sent"],
        }
        with errors_about("Reason"):
            try:
                void(account, label, options["reason"], **how)
            except AlreadyPaid as error:
                raise CommandError(f"{error} Use creditinvoice, or markpaid --undo.") from error
            except AlreadySent as error:
                how_else = "If the customer does not have it, use --even-if-sent."
                raise CommandError(f"{error} {how_else}") from error
        self.show(find_invoice(account, label), options)

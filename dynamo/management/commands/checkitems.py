"""`checkitems`: list the items of a model that cannot be read, or delete one of them."""

import json
import shlex
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.client.plain import PlainModel
from dynamo.client.sending import read_item
from dynamo.management.base import DynamoCommand, is_confirmed, model_type
from dynamo.model.base import Model
from dynamo.runtime.terminal import printable, quantity
from dynamo.tables.findings import scanned, unseen
from dynamo.tables.guards import delete_damaged


class Command(DynamoCommand):
    help = (
        "List the damaged items of a model: those that hold a value of another type than the model "
        "declares. Reads the whole table: 1 read unit per 4 KB of all items in it. Exits 1 if an "
        "item is damaged. With --delete, delete a damaged item and free its unique values."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        kind = model_type(PlainModel, "stored")
        parser.add_argument("model", metavar="APP.MODEL", type=kind, help="such as club.Member")
        parser.add_argument(
            "--delete", metavar="KEY", nargs="+", help="the key as listed; of a sort key two parts"
        )
        parser.add_argument(
            "--no-input", "--noinput", action="store_false", dest="interactive", help="do not ask"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: object, **options: Any) -> None:
        if options["delete"] is None:
            self._list(options["model"], as_json=options["json"])
        else:
            self._delete(options["model"], options["delete"], ask=options["interactive"])

    def _list(self, model: type[PlainModel], *, as_json: bool) -> None:
        count = 0
        names = [stored_name for _name, stored_name, _attribute in model._named_attributes()]
        for item, error in model._damage_in(scanned(model.table(), names, unseen)):
            count += 1
            key = model.key_texts(item)
            if as_json:
                found = {"key": key, "attribute": error.attribute, "problem": error.problem}
                self.stdout.write(json.dumps(found, ensure_ascii=False))
            else:
                self.stdout.write(printable(f"{shlex.join(key)}  {error.what}"))
        if count:
            raise CommandError(f"{quantity(count, 'item')} of {model.table()} cannot be read.")

    def _delete(self, model: type[PlainModel], texts: list[str], *, ask: bool) -> None:
        if not issubclass(model, Model) or model._never_deleted:
            reason = getattr(
                model, "_never_deleted", "Only its app knows what depends on the item."
            )
            raise CommandError(reason)
        try:
            key = model.key_of_texts(texts)
        except (ArithmeticError, ValueError) as error:
            names = ", ".join(model.key_attribute_names())
            raise CommandError(f"This is not a key ({names}) as it is listed.") from error
        stored = read_item({"TableName": model.table(), "Key": key})
        if not stored:
            raise CommandError("There is no such item.")
        damage = next(model._damage_in([stored]), None)
        if damage is None:
            raise CommandError("This item is not damaged. Delete it by its app or in the admin.")
        if ask and not is_confirmed(printable(f"{damage[1]} Delete it?")):
            raise CommandError("Nothing was deleted.")
        is_part_left = delete_damaged(model, stored)
        self.tell("The item was deleted.")
        if is_part_left:
            self.tell(
                "A unique value of it could not be read and may still be taken. To free it, run "
                f"manage.py checkunique {model._meta.label} --repair."
            )

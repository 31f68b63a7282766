"""The name of the field that asks for a reason, for subclasses of ModelAdmin."""

from dynamo.admin.actions import REASON as REASON

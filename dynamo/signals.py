"""What others may listen to."""

from django.dispatch import Signal

#: Sent after every request to DynamoDB, retries included, answered or not.
#: Arguments: operation (str), request (dict), response (dict, empty where it failed),
#: seconds (float).
request_sent = Signal()

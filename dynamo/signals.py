"""Signals of the client and of tests."""

from django.dispatch import Signal

#: Sent after each attempt to reach DynamoDB, in the thread that made it; a retry is another
#: attempt. Arguments:
#: operation (str): the API's name, such as GetItem.
#: request (dict): the parameters.
#: response (dict): DynamoDB's answer; empty if the attempt failed.
#: error (BaseException | None): why it failed; botocore's error, or what interrupted it.
#: retries (int): how many attempts of this request came before.
#: seconds (float): how long the attempt took.
#:
#: An error of a receiver is raised to the caller, even if the request was carried out. `tally`
#: reads tables and units from these, `client.retries.outcome_of` the outcome.
request_sent = Signal()

#: Sent by `dynamo.test` after it emptied the tables. Receivers forget what they know of the items.
tables_emptied = Signal()

#: Sent by `runserver` in the process that serves pages, before it does, so that receivers can start
#: threads in it.
serving = Signal()

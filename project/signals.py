"""The signal of the site's requests, for metrics. Errors of receivers are only logged."""

from django.dispatch import Signal

#: A request was answered. Arguments: url (str): the name in the URL map, "static" or "none"; method
#: (str): as the client sent it; status (int); seconds (float): how long it took until the answer
#: was sent or handed to the server.
page_answered = Signal()

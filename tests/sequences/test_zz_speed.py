import time
from django.test import Client
from tests.sequences.test_invoice_pages import *
def test_speed(client, ann):
    form = typed(*[LINE]*200)
    for name, f in (("add", form|{"add_line":"1"}), ("refused", form|{"customer_name":""}), ("issue", form)):
        t=time.process_time(); r=client.post(NEW,f); print(name, r.status_code, time.process_time()-t)

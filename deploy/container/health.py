"""Exits with 0 if the server answers /livez, which does not ask DynamoDB."""

import os
import urllib.request

urllib.request.urlopen(f"http://127.0.0.1:{os.environ.get('PORT', '8000')}/livez", timeout=3)

"""The test of the result: there is one order in the store."""

import json
import os
import sys
import urllib.request

with urllib.request.urlopen(os.environ["ORDERS_URL"] + "/orders", timeout=10) as answer:
    sys.exit(len(json.load(answer)["data"]) != 1)

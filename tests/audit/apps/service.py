"""What the audited samples do: one call of a service, without a word about failures."""

import os
import urllib.request


def fetch(url):
    with urllib.request.urlopen(url, timeout=1) as answer:
        return answer.read().decode()


BOUND = bool(os.environ.get("BOUND"))

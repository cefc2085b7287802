"""
A pytest plugin with which suites run on stores with a codec that encodes each value differently each time.

    python -m pytest -p tests.stores.coded tests/stores tests/effects
"""

import itertools

from amends import stores

_numbers = itertools.count()
_open = stores.open


class Numbered:
    """Writes a number and the inverted bytes."""

    def encode(self, value):
        return b"%d|" % next(_numbers) + bytes(255 - byte for byte in value)

    def decode(self, value):
        number, bar, inverted = value.partition(b"|")
        assert bar
        assert number.isdigit()
        return bytes(255 - byte for byte in inverted)


async def _open_coded(url, **options):
    return await _open(url, **{"codec": Numbered()} | options)


def pytest_configure():
    """Replace `stores.open` before another module of amends imports it."""
    stores.open = _open_coded

"""The profiles as data: every row is a known code with a source."""

import pytest

from amends.core.vocabulary import vocabulary
from amends.process import PROFILE_NAMES
from amends.profiles import NAMES, profile


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_known_and_sourced(name):
    """C12: codes of the cli vocabulary, numbers a process can have, and an address to check them at."""
    found = profile(name)
    assert found.tool == name
    assert found.source.startswith("https://")
    assert found.note
    assert all(0 < number < 256 for number in found.exits)
    assert {row.code for row in found.exits.values()} <= set(vocabulary("cli").rows)
    assert all(row.meaning for row in found.exits.values())


def test_unknown_profiles():
    """A name there is none of is answered with those there are."""
    with pytest.raises(LookupError, match="curl"):
        profile("wget")
    assert set(NAMES) < set(PROFILE_NAMES)

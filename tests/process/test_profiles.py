"""The profiles: every row has a known code and a source."""

import pytest

from amends.core.vocabulary import vocabulary
from amends.process import PROFILE_NAMES
from amends.profiles import NAMES, profile, profile_of


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_known_and_sourced(name):
    """C12: codes of the cli vocabulary, exit codes that a process can have, and a URL of the source."""
    found = profile(name)
    assert found.tool == name
    assert found.source.startswith("https://")
    assert found.note
    assert all(0 < number < 256 for number in found.exits)
    assert {row.code for row in found.exits.values()} <= set(vocabulary("cli").rows)
    assert all(row.meaning for row in found.exits.values())


def test_unknown_profiles():
    """The error for an unknown profile lists the known ones."""
    with pytest.raises(LookupError, match="curl"):
        profile("tar")
    assert set(NAMES) < set(PROFILE_NAMES)


def test_programs_with_a_profile():
    """The file name of a program selects its profile."""
    assert profile_of("/usr/bin/curl") == "curl"
    assert profile_of("kubectl.exe") == "kubectl"
    assert profile_of("curly") is None
    assert profile_of("sysexits") is None


def test_sysexits():
    """All fifteen numbers of sysexits.h are known."""
    assert sorted(profile("sysexits").exits) == list(range(64, 79))

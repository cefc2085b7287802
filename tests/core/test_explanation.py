"""The facts about a code, and the page that explains it."""

import pytest

from amends.core.explanation import facts, markdown
from amends.core.vocabulary import names, vocabulary


@pytest.mark.parametrize("name", names())
def test_every_code_can_be_explained(name):
    """Every row of every vocabulary has facts and a page; the exit code is never 0."""
    for row in vocabulary(name).rows.values():
        known = facts(name, row)
        assert known["exit"] != 0
        assert 200 < known["status"] < 600
        page = markdown(name, row).splitlines()
        assert page[0].startswith(f"# {row.code} ")
        assert page[2].startswith("**Cause.** ")
        assert page[4].startswith("**What to do.** ")
        assert f"It is {row.recovery}: " in page[4]


def test_a_deprecated_code_names_its_successor():
    """The page of a deprecated AdCP code names the current code."""
    old = next(row for row in vocabulary("adcp").rows.values() if row.alias)
    assert f"deprecated: use {old.alias}" in markdown("adcp", old)


def test_the_page_has_the_jsonrpc_number():
    """The page of a code with a JSON-RPC number shows it."""
    row = next(row for row in vocabulary("adcp").rows.values() if row.jsonrpc is not None)
    assert f"JSON-RPC {row.jsonrpc}" in markdown("adcp", row)

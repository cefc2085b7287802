"""Descriptions of codes, as values and as Markdown."""

import pytest

from amends.core.explanation import facts, markdown
from amends.core.vocabulary import names, vocabulary


@pytest.mark.parametrize("name", names())
def test_every_code_can_be_explained(name):
    """Every row of every vocabulary has facts; the exit code is never 0, and the recovery class comes first."""
    for row in vocabulary(name).rows.values():
        known = facts(name, row)
        assert known["exit"] != 0
        assert 200 < known["status"] < 600
        page = markdown(name, row).splitlines()
        assert page[0].startswith(f"# {row.code} ")
        assert page[2].startswith(f"**{row.recovery}**")


def test_a_deprecated_code_names_the_current_one():
    """The description of a deprecated AdCP code names the code to use."""
    old = next(row for row in vocabulary("adcp").rows.values() if row.alias)
    assert f"deprecated: use {old.alias}" in markdown("adcp", old)


def test_jsonrpc_numbers_are_included():
    """The description contains a code's JSON-RPC number."""
    row = next(row for row in vocabulary("adcp").rows.values() if row.jsonrpc is not None)
    assert f"JSON-RPC {row.jsonrpc}" in markdown("adcp", row)

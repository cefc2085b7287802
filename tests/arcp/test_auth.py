"""Who may connect: a table of tokens, or a function."""

import pytest

from amends.arcp.runtime.server.auth import authenticator


async def test_a_table_of_tokens():
    look_up = authenticator({"t1": "alice", "t2": "bob"}, None)
    assert [await look_up(token) for token in ("t1", "t2", "t3", "", "\udcff")] == [
        "alice",
        "bob",
        None,
        None,
        None,
    ]


async def test_tokens_without_principals():
    """Each is a principal of its own, whose name does not contain the token."""
    look_up = authenticator(["t1", "t2"], None)
    first, second = await look_up("t1"), await look_up("t2")
    assert first != second
    assert first.startswith("token-")
    assert await authenticator("t1", None)("t1") == first


async def test_a_function():
    """Plain or async; only a text is a principal."""

    async def ask(token):
        return {"a": "alice", "b": 5, "c": ""}.get(token)

    for function in (ask, lambda token: {"a": "alice", "b": 5, "c": ""}.get(token)):
        look_up = authenticator(None, function)
        assert [await look_up(token) for token in "abcd"] == ["alice", None, None, None]


@pytest.mark.parametrize(
    ("tokens", "function"), [(None, None), ({"a": "b"}, len), ({}, None), ([""], None), ({5: "a"}, None)]
)
def test_wrong_arguments(tokens, function):
    with pytest.raises(ValueError, match="token"):
        authenticator(tokens, function)

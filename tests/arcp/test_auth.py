"""Who may connect: a table of tokens, or a function."""

import pytest

from amends.arcp import Runtime
from amends.arcp.runtime.server.auth import authenticator
from tests.arcp.raw import dial


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


@pytest.mark.parametrize("auth", [None, {}, {"scheme": "bearer", "token": ""}, {"scheme": "anonymous"}])
async def test_clients_without_a_token(begin, auth):
    """S5: UNAUTHENTICATED; with `anonymous=True` they are one principal, and a wrong token is still refused."""
    more = {} if auth is None else {"auth": auth}
    assert (await dial(await begin()).hello(None, more=more))["payload"]["code"] == "UNAUTHENTICATED"
    runtime = await begin(anonymous=True)
    raw = dial(runtime)
    assert (await raw.hello(None, more=more))["type"] == "session.welcome"
    assert (await raw.run("talking"))["payload"]["result"]["principal"] == "anonymous"
    assert (await dial(runtime).hello("wrong"))["payload"]["code"] == "UNAUTHENTICATED"
    wrong_scheme = {"auth": {"scheme": "basic", "token": ""}}
    assert (await dial(runtime).hello(None, more=wrong_scheme))["payload"]["code"] == "UNAUTHENTICATED"


def test_anonymous_is_true_or_false():
    """Another value names the option."""
    with pytest.raises(TypeError, match="anonymous"):
        Runtime(tokens="t", anonymous="yes")

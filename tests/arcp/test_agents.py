"""Registered agents: names, versions and defaults, on one node and on all of them."""

import pytest

from amends.arcp.runtime.agents import Agents, Offer, inventory, merge_offers, parse_reference, resolve
from amends.errors.arcp import AgentNotAvailableError, AgentVersionNotAvailableError, InvalidRequestError


async def work(given, ctx):
    return given


async def parts(given, ctx):
    yield "a"


def registered(*versions, default=None):
    agents = Agents()
    for version in versions:
        agents.add(
            "work", work, version=version, default=version == default or None, repeatable=version == "2"
        )
    return agents


@pytest.mark.parametrize(
    ("reference", "name", "version"),
    [("a", "a", None), ("a.b-c_1@1.0+x", "a.b-c_1", "1.0+x"), ("9@A", "9", "A")],
)
def test_references(reference, name, version):
    assert parse_reference(reference) == (name, version)


@pytest.mark.parametrize("reference", ["", "A", "a b", "-a", "a@", "a@1@2", "a@1 2", "é", "a\n"])
def test_malformed_references(reference):
    with pytest.raises(InvalidRequestError):
        parse_reference(reference)


def test_the_first_version_is_the_default():
    """Until another one is registered as such."""
    agents = registered("1", "2")
    assert agents.lookup("work").ref == "work@1"
    assert agents.lookup("work@2").repeatable
    assert agents.lookup("work@3") is None
    assert agents.lookup("work@2").version == "2"
    assert registered("1", "2", default="2").lookup("work").ref == "work@2"
    assert registered("1", "2", default="2").offers() == (Offer("work", ("2", "1"), ("2",)),)


def test_generators_stream():
    agents = Agents()
    assert agents.add("parts", parts, version="1", default=None, repeatable=False).streams
    assert len(agents.all()) == 1


@pytest.mark.parametrize(
    ("name", "version", "function", "error"),
    [("A", "1", work, ValueError), ("a", "1 0", work, ValueError), ("a", "1", 5, TypeError)],
)
def test_wrong_registrations(name, version, function, error):
    with pytest.raises(error):
        Agents().add(name, function, version=version, default=None, repeatable=False)
    agents = registered("1")
    with pytest.raises(ValueError, match="already"):
        agents.add("work", work, version="1", default=None, repeatable=False)


def test_resolving_over_several_nodes():
    """The first node that offers an agent sets its default."""
    offers = merge_offers([[Offer("a", ("2", "1"))], [Offer("a", ("1", "3")), Offer("b", ("1",))]])
    assert offers == {"a": ("2", "1", "3"), "b": ("1",)}
    assert resolve("a", offers) == ("a", "2")
    assert resolve("a@3", offers) == ("a", "3")
    with pytest.raises(AgentNotAvailableError):
        resolve("c", offers)
    with pytest.raises(AgentVersionNotAvailableError) as caught:
        resolve("a@9", offers)
    assert caught.value.details["available"] == ["2", "1", "3"]
    assert [(agent.name, agent.default) for agent in inventory(offers)] == [("a", "2"), ("b", "1")]


def test_a_wrong_name_is_answered_with_the_nearest():
    """All agents are in the welcome, so their names are no secret."""
    offers = {"summarise": ("1",), "translate": ("1",)}
    with pytest.raises(AgentNotAvailableError, match="the nearest: summarise") as caught:
        resolve("sumarize", offers)
    assert caught.value.details == {"agent": "sumarize", "nearest": ["summarise"]}
    with pytest.raises(AgentNotAvailableError) as caught:
        resolve("xyz", offers)
    assert caught.value.details == {"agent": "xyz"}

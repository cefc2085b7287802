"""The options of `guard` that name tools: which it covers with a ledger, and which make one call and do nothing else."""

from __future__ import annotations

from collections.abc import Collection

from amends.bindings.mcp.responses import LOG
from amends.serving.server_errors import Failure, hides_that_nothing_happened, with_executed

__all__ = ["Wrappers", "check_tools"]

_MOST_ADVICE = 100
_LONGEST_NAME = 64


def check_tools(tools: Collection[str] | None, option: str = "tools") -> frozenset[str]:
    """
    Return the names of tools that an option holds; for `tools`, those that a ledger covers beside those that say that they change something.

    Raises:
        TypeError: they are no collection of names.

    """
    if tools is None:
        return frozenset()
    given: object = tools
    if (
        isinstance(given, str)
        or not isinstance(given, Collection)
        or not all(isinstance(each, str) for each in given)
    ):
        raise TypeError(f'{option} is a list of tool names: {option}=["pay", "order"]')
    return frozenset(tools)


class Wrappers:
    """The tools of one server that make one call of another service and do nothing else (`wrapper=`)."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._advised: set[str] = set()

    def told(self, failure: Failure, tool: object, *, read_only: bool, repeatable: bool) -> Failure:
        """Return the failure of a tool as its caller gets it, by what is declared about the tool."""
        wrapper = isinstance(tool, str) and tool in self._names
        sent = with_executed(
            failure, read_only=read_only, repeatable=repeatable, wrapper=wrapper, of_agent=True
        )
        if isinstance(tool, str) and hides_that_nothing_happened(failure, sent.fault):
            self._advise(tool)
        return sent

    def _advise(self, name: str) -> None:
        """Say once per tool how to declare that a call that did not happen may be repeated."""
        if name in self._advised or len(self._advised) >= _MOST_ADVICE:
            return
        self._advised.add(name)
        shown = repr(name[:_LONGEST_NAME])
        LOG.info(
            "tool %s: a call that it made did not happen, but the tool may have done something before, so its caller must not "
            "repeat it. If the tool makes this call and does nothing else, say guard(server, wrapper=[%s]), or raise "
            "amends.chain.relay(error)",
            shown,
            shown,
        )

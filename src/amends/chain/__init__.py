"""
For agents that call other agents: return an upstream's failure to the caller, and end chains that are too long.

    from amends.bindings.mcp import guard
    from amends.chain import RULES, Hop, Rule, gather, relay, relaying

- `relay` makes the error that our own caller gets for an upstream's failure (A18). A conformant AdCP error passes
  unchanged, with recovery, wait, details and unknown members; a table of rules translates everything else.
- `gather` does the same for several upstreams, each with its own code and recovery.
- `relaying` does the same in a guarded server: `guard(server, translate=relaying(rules=(mine, *RULES)))`.
- `Hop` counts the agents that a request has come through, and passes on its trace.
"""

from __future__ import annotations

from amends.chain.hops import HOPS, MAX_HOPS, Hop
from amends.chain.relay import gather, relay, relaying
from amends.foreign.rules import RULES, Rule

__all__ = ["HOPS", "MAX_HOPS", "RULES", "Hop", "Rule", "gather", "relay", "relaying"]

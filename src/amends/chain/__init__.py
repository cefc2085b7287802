"""
Between a caller and the agents it cannot see: passing failures on, translating them, and not going round in circles.

    from amends.bindings.mcp import guard
    from amends.chain import RULES, Hop, Rule, gather, relay, relaying

- `relay` says an upstream's failure as our own caller should hear it (A18): what is conformant passes untouched, with
  recovery, wait, details and unknown members; everything else is told by a table of rules.
- `gather` does it for several upstreams at once, each kept with its own code and recovery.
- `relaying` is the same for a guarded server: `guard(server, translate=relaying(rules=(mine, *RULES)))`.
- `Hop` counts how many agents a request has come through, and carries the trace along.
"""

from __future__ import annotations

from amends.chain.hops import HOPS, MAX_HOPS, Hop
from amends.chain.relay import gather, relay, relaying
from amends.foreign.rules import RULES, Rule

__all__ = ["HOPS", "MAX_HOPS", "RULES", "Hop", "Rule", "gather", "relay", "relaying"]

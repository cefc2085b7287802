"""
Leases: capabilities with patterns, an expiry, and budgets (sections 9 and 10). PURE: the clock is an argument.

    lease = leases.read({"fs.read": ["/workspace/**"], "cost.budget": ["USD:5.00"]}, now=now)
    error = lease.check("fs.read", "/workspace/a.txt", now)      # None, or the error to raise or to send
    child = lease.narrow(request, remaining, now)                 # a Lease, or LEASE_SUBSET_VIOLATION

A path, a URL or a pattern that two readers could understand differently is rejected, so that no later reader can interpret
it as something other than what was checked: `..`, encoded separators, backslashes, user info, dots of other scripts.
"""

from __future__ import annotations

from amends.arcp.leases.budget import Budget, amount_of
from amends.arcp.leases.grammar import CAPABILITIES, covers, parse_pattern
from amends.arcp.leases.lease import Lease, read

__all__ = ["CAPABILITIES", "Budget", "Lease", "amount_of", "covers", "parse_pattern", "read"]

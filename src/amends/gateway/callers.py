"""
Who may call the upstreams, if the configuration names callers: each has a token and limits.

    [caller.team-a]
    token_env = "TEAM_A_TOKEN"
    rate = 10
    concurrency = 20

The token is sent as `Proxy-Authorization: Bearer …`, so that `Authorization` stays the upstream's; or, as SDKs send their keys, as `Authorization`,
`x-api-key` or `api-key`, and then it is not sent on.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from time import monotonic

from amends.core.fault import Fault
from amends.gateway.config import CallerConfig
from amends.gateway.refusals import refusal
from amends.http.asgi_types import Scope
from amends.proof import Claim, Proof, rests_on

__all__ = ["Caller", "Callers"]

_HEADERS = (b"proxy-authorization", b"authorization", b"x-api-key", b"api-key")
"""Where a token may be, the first that is there."""


class Caller:
    """One caller, and the calls it makes."""

    def __init__(self, config: CallerConfig) -> None:
        self.config = config
        self.calls = 0
        self.refused = 0
        self.in_flight = 0
        self._saved = config.burst
        self._at = monotonic()

    def refusal(self, now: float) -> Fault | None:
        """Count one more call; or return why it is refused."""
        config = self.config
        self.calls += 1
        if self.in_flight >= config.concurrency:
            self.refused += 1
            return refusal(429, "Too many calls of this caller are in flight", wait=1)
        if config.rate is not None:
            self._saved = min(config.burst, self._saved + (now - self._at) * config.rate)
            self._at = now
            if self._saved < 1.0:
                self.refused += 1
                wait = (1.0 - self._saved) / config.rate
                return refusal(429, "This caller makes too many calls", wait=wait)
            self._saved -= 1.0
        return None


class Callers:
    """The callers of a configuration."""

    def __init__(self, configs: Iterable[CallerConfig], environment: Mapping[str, str] = os.environ) -> None:
        """
        Args:
            configs: the callers; none: everybody may call.
            environment: has the tokens.

        """
        self.by_name = {each.name: Caller(each) for each in configs}
        self._by_digest = {
            _digest(environment[each.config.token_env].strip().encode()): each
            for each in self.by_name.values()
            if environment.get(each.config.token_env, "").strip()
        }

    def keep(self, before: Callers) -> None:
        """Go on with the counts of callers whose configuration did not change."""
        for digest, caller in self._by_digest.items():
            known = before.by_name.get(caller.config.name)
            if known is not None and known.config == caller.config:
                self._by_digest[digest] = self.by_name[caller.config.name] = known

    @rests_on(Claim.OURS, Proof.SECRET)
    def caller(self, scope: Scope) -> Caller | None:
        """Return who sent a request, and take the token out of it; None if nobody that is known did."""
        headers = scope["headers"]
        for name in _HEADERS:
            values = [value for header, value in headers if header == name]
            if len(values) != 1:
                continue
            token = values[0].strip()
            if token[:7].lower() == b"bearer ":
                token = token[7:].strip()
            given = _digest(token)
            found = self._by_digest.get(given)
            # The digests of both are compared in constant time; the table is looked up by what an attacker cannot choose.
            if found is not None and any(hmac.compare_digest(given, each) for each in self._by_digest):
                scope["headers"] = [(header, value) for header, value in headers if header != name]
                return found
        return None


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()

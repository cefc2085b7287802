"""
What must not follow a redirect to another origin: credentials, and the caller's idempotency key.

The client libraries remove `Authorization` and the caller's cookies themselves. Headers such as `X-Api-Key` they keep.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from amends.proof import Claim, Proof, rests_on

__all__ = ["is_credential", "same_party"]

# X-Api-Key, AccessKey, X-Auth-Token, X-Session-Id, X-Goog-IAP-JWT-Assertion, X-Amzn-Oidc-Data, Idempotency-Key …
_CREDENTIAL = re.compile(
    r"authori[sz]ation|authentication|token|secret|session|credential|passw(?:or)?d|jwt|assertion|oidc|signature|csrf|xsrf"
    r"|(?:api|access|auth)key|(?:^|[-_])(?:key|auth|sid)(?:[-_]|$)",
    re.IGNORECASE,
)
_PORTS = {"http": 80, "https": 443}


def is_credential(name: str) -> bool:
    """
    Return whether a request header carries a credential or a key, judged by its name.

    `Cookie` is not one: the libraries' cookie jars send each cookie to the domain it belongs to.

    >>> is_credential("X-Api-Key"), is_credential("Authorization"), is_credential("Accept")
    (True, True, False)
    """
    return _CREDENTIAL.search(name) is not None


@rests_on(Claim.OURS, Proof.HOST)
def same_party(first: str, then: str) -> bool:
    """
    Return whether credentials for the first address may be sent to the second.

    They may if scheme, host and port are the same, or if the second is the first with TLS, both on the default port.

    >>> same_party("http://a.example/x", "https://a.example/x"), same_party("https://a.example", "https://b.example")
    (True, False)
    """
    try:
        one, two = urlsplit(first), urlsplit(then)
        ports = [part.port or _PORTS.get(part.scheme) for part in (one, two)]
    except ValueError:
        return False
    if one.hostname is None or one.hostname != two.hostname:
        return False
    if one.scheme == two.scheme:
        return ports[0] == ports[1]
    return (one.scheme, two.scheme) == ("http", "https") and ports == [80, 443]

"""
Removing from outgoing text what a producer wrote into it by mistake (A19).

This is a second line of defence. The first is that the text of foreign exceptions never leaves and that a producer's
message describes what the caller can do. An address, a host, a path, SQL, a stack trace or a secret that slips in
nevertheless has a shape, and the table in `rules` finds shapes. It cannot find names without a shape ("the ledger
service is down") or the meaning of an upstream's body.

`find` first runs `text.suspicious`, a few substring tests that nearly every ordinary sentence passes. Only then it runs
the rules, each after a substring test of its own. The modules `hosts`, `paths`, `tokens`, `databases` and `traces`
decide whether a match is a leak. Patterns are compiled on first use. Each runs in linear time: its start is anchored by a
look-behind or a literal and its repetitions are possessive or bounded; what a pattern cannot express that way is decided
in Python on the one match.

Decisions:

- *URLs* in free text are redacted, because a name does not show whether a service is public or internal, and a URL
  carries a host, a path and often a token. Links to documentation stay: `https`, no port, user or query, and either a
  documentation host (docs., developer., help., support., status. ...) or a documentation path on a bare or `www.`
  domain. From members declared to hold URLs (`URL_MEMBERS`) only credentials are removed.
- *Host names* are redacted below internal suffixes, with a port, with three labels under a common top-level domain, or
  where the text calls them a host. A bare `example.com` stays, because it is usually the caller's own domain; so does
  an e-mail address.
- *Versions*: four numbers with dots are an address, unless "version", "section", a comparison sign or a product name
  with a slash precedes them, or a letter touches them ("v1.2.3.4").
- *Paths* are recognised by their root (/etc, /home, /srv ...), by a source or configuration suffix, or by their context
  ("[Errno 2] ...: 'x'"). JSON Pointers and routes ("/packages/0/budget", "/v1/users") stay.
- *SQL and database messages* are removed to the end of their line, with the lines a driver adds below; a stack trace is
  removed whole.
- *Ids* (UUIDs, ULIDs, hexadecimal digests, prefixed ids) stay unless the text calls them a session, token or key.
"""

from __future__ import annotations

from amends.core.redaction.rule import KINDS, MARKER, SECRETS, Leak
from amends.core.redaction.text import find, redact
from amends.core.redaction.values import UNCHANGED_MEMBERS, URL_MEMBERS, redact_value

__all__ = [
    "KINDS",
    "MARKER",
    "SECRETS",
    "UNCHANGED_MEMBERS",
    "URL_MEMBERS",
    "Leak",
    "find",
    "redact",
    "redact_value",
]

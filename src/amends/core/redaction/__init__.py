"""
Taking out of outgoing text what a producer wrote into it by mistake (A19).

This is a net under a rope-walker, not the rope: the text of foreign exceptions never leaves in the first place, and a
message should say in our words what the caller can do. What slips in nevertheless - an address, a host, a path, a
piece of SQL, a stack trace, a secret - has a shape, and shapes can be found. Names without a shape ("the ledger
service is down") and upstream bodies cannot.

How it works. `find` first asks whether anything in the text could be a leak at all (`gate`): a few substring tests that
nearly every honest sentence passes. Only then the table in `rules` runs, each row after its own substring test. What a
match means is judged beside the words it is judged by: `hosts`, `paths`, `tokens`, `databases`, `traces`. Patterns are
compiled on first use, never at import. Each runs in linear time: a start is anchored by a look-behind or a literal,
repetition is possessive or bounded, and what a pattern cannot say that way is judged in Python on the one match.

Decisions:

- *URLs* in free text are redacted, because no rule can tell a public service from an internal one by its name, and a
  URL carries host, path and often a token. Kept are links to documentation: `https`, no port, userinfo or query, and
  either a documentation host (docs., developer., help., support., status. ...) or a documentation path on a bare or
  `www.` domain. Members declared to hold URLs are named in `keep` and left alone.
- *Host names*: below internal suffixes, with a port, with three labels under a common top-level domain, or where the
  text says it is a host. A bare `example.com` stays: it is usually the caller's own domain, and so does an e-mail
  address.
- *Versions*: four numbers with dots are an address, unless a word such as "version" or "section", a comparison sign or
  a product name with a slash stands before them, or a letter touches them ("v1.2.3.4").
- *Paths* are known by their root (/etc, /home, /srv ...), by a source or configuration suffix, or by where they stand
  ("[Errno 2] ...: 'x'"). JSON Pointers and routes ("/packages/0/budget", "/v1/users") stay.
- *SQL and database messages* go to the end of their line, with the lines a driver hangs below; a whole stack trace goes.
- *Ids* (UUIDs, ULIDs, hexadecimal digests, prefixed ids) stay unless the text calls them a session, token or key.
"""

from __future__ import annotations

from amends.core.redaction.rule import MARKER, Leak
from amends.core.redaction.text import find, redact
from amends.core.redaction.values import URL_MEMBERS, redact_value

__all__ = ["MARKER", "URL_MEMBERS", "Leak", "find", "redact", "redact_value"]

"""
Faults of exceptions and failures of other libraries.

`from_exception` serves the code that made a call: it describes what to do about the failure. `from_upstream` serves
a server that called another service: it makes the fault that the server returns to its own caller. Both follow these
rules:

1. No library is imported. Classes are recognised by their names along the MRO, failures by numbers and codes.
2. The text of an exception never decides and is never shown. A fault contains our own messages and a few facts from
   closed lists (a SQLSTATE, the name of an errno, a line number).
3. If an exception carries a response with a structured error, that error is read exactly as `extract` reads it, and
   keeps its `origin`. `from_upstream` passes it on only if it is conformant.
4. Neither function raises, whatever it is given.
"""

from __future__ import annotations

from amends.foreign.exceptions import from_exception
from amends.foreign.upstream import from_upstream, from_upstreams

__all__ = ["from_exception", "from_upstream", "from_upstreams"]

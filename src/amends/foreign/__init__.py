"""
Other libraries' failures as Faults, told from the side of whoever has to act on them.

`from_exception` answers "a call of mine failed: what now?"; `from_upstream` answers "a call of mine failed: what do
I tell the one who called me?". Rules of both:

1. Nothing is imported: classes are known by their names along the MRO, failures by numbers and code words.
2. Text never decides, and the text of an exception is never shown. What is shown is our own words, and a few
   facts from closed lists (a SQLSTATE, the name of an errno, a line number).
3. A structured error inside a response that the exception carries is no text but an answer to the caller: it is
   read exactly as `extract` reads it, and keeps its `origin`. `from_upstream` lets none of it through, unless it
   is conformant.
4. Neither raises, whatever it is given.
"""

from __future__ import annotations

from amends.foreign.exceptions import from_exception
from amends.foreign.upstream import from_upstream, from_upstreams

__all__ = ["from_exception", "from_upstream", "from_upstreams"]

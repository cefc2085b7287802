"""
Runs at the start of every Python that is started in a rehearsal: it begins the interception if amends is installed there.

It is in a folder of its own, which is the first of PYTHONPATH. A `sitecustomize` that the environment has otherwise runs, too.
"""

import os
import sys
from pathlib import Path


def _others() -> None:
    """Run the environment's own sitecustomize."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [each for each in sys.path if Path(each).resolve() != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        if ours is not None:
            sys.modules["sitecustomize"] = ours  # the import of this module is not over, and expects it


def _begin() -> None:
    """Begin the interception."""
    if "AMENDS_REHEARSAL" not in os.environ:
        return
    try:
        from amends.rehearse.inside import begin
    except ImportError:
        sys.stderr.write(
            "amends rehearse: %s has no amends, so its calls are not intercepted: they have to go to the addresses in "
            "the environment, such as OPENAI_BASE_URL\n" % (sys.executable or "this Python")
        )
        return
    begin()


_others()
_begin()

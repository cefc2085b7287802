"""
Runs external commands in their own process group, with limits on time and output, and retries them where that is safe.

    from amends.process import run

    done = run(["gh", "api", "/user"], read_only=True, profile="gh", timeout=30)
"""

from __future__ import annotations

from amends.process.evidence import PROFILE_NAMES, fault_of
from amends.process.feed import Feed
from amends.process.finished import Finished
from amends.process.passthrough import Passthrough
from amends.process.runner import arun, run

__all__ = ["PROFILE_NAMES", "Feed", "Finished", "Passthrough", "arun", "fault_of", "run"]

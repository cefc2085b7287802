"""Child processes of the program: they get the variables of the rehearsal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from amends.rehearse.interception.patches import Patches

__all__ = ["pass_on"]


def pass_on(environment: Callable[[Mapping[str, str]], dict[str, str]], patches: Patches) -> None:
    """Give every child process the variables of the rehearsal, whatever its environment. `environment` adds them."""
    original = subprocess.Popen.__init__

    def init(self: Any, args: Any, *more: Any, **options: Any) -> None:
        """Start a process with the variables of the rehearsal."""
        place = _ENV_PLACE
        if len(more) > place:
            given = more[place]
            more = (*more[:place], environment(os.environ if given is None else given), *more[place + 1 :])
        else:
            given = options.get("env")
            options["env"] = environment(os.environ if given is None else given)
        original(self, args, *more, **options)

    patches.set(subprocess.Popen, "__init__", init)


_ENV_PLACE = 9
"""The place of `env` among the arguments of Popen after `args`."""

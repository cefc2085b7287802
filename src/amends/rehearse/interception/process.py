"""The whole interception of a process: clients, guard and child processes, installed and removed together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from amends.rehearse.environment import child_environment
from amends.rehearse.interception.guard import guard
from amends.rehearse.interception.patches import Patches
from amends.rehearse.interception.processes import pass_on
from amends.rehearse.interception.stage_link import StageLink

__all__ = ["Interception"]


class Interception:
    """A context manager: inside it, the calls of this process go to a stage. There can be one at a time."""

    _active: Interception | None = None

    def __init__(self, address: str, variables: Mapping[str, str] | None = None) -> None:
        """Take the address of the stage, and the variables that hold the addresses of services."""
        self.link = StageLink(address)
        self._variables = dict(variables or {})
        self._patches = Patches()

    def install(self) -> None:
        """Install the interception."""
        if Interception._active is not None:
            raise RuntimeError(
                "a rehearsal is running in this process already; end it before the next one begins"
            )
        self.link.begin()
        Interception._active = self
        link, patches = self.link, self._patches

        def intercept_httpx(module: object) -> None:
            from amends.rehearse.interception.httpx import intercept

            intercept(module, link, patches)  # type: ignore[arg-type]

        def intercept_urllib3(module: object) -> None:
            from amends.rehearse.interception.urllib3 import intercept

            intercept(module, link, patches)  # type: ignore[arg-type]

        def intercept_aiohttp(module: object) -> None:
            from amends.rehearse.interception.aiohttp import intercept

            intercept(module, link, patches)  # type: ignore[arg-type]

        try:
            guard(link, patches)
            pass_on(
                lambda given: child_environment(given, link.address, self._variables, set_by_program=True),
                patches,
            )
            patches.when_imported("httpx", intercept_httpx)
            patches.when_imported("httpx2", intercept_httpx)
            patches.when_imported("urllib3.connectionpool", intercept_urllib3)
            patches.when_imported("aiohttp.connector", intercept_aiohttp)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the interception completely."""
        self._patches.undo()
        Interception._active = None

    def __enter__(self) -> Self:
        self.install()
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

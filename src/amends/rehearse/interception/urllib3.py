"""urllib3, and with it requests: pools of connections send to the stage."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from amends.rehearse.interception.patches import Patches
from amends.rehearse.interception.stage_link import StageLink
from amends.rehearse.server import ORIGIN

__all__ = ["intercept"]


def intercept(module: ModuleType, link: StageLink, patches: Patches) -> None:
    """Intercept the pools of `urllib3.connectionpool`."""
    pool_class = module.HTTPConnectionPool
    original = pool_class.urlopen
    stage_pool: list[Any] = []

    def urlopen(
        self: Any, method: str, url: str, body: Any = None, headers: Any = None, *more: Any, **options: Any
    ) -> Any:
        """Send a request to the stage if it covers the host."""
        parts = urlsplit(url)
        # Through a proxy the target is a whole address, and the pool is that of the proxy.
        host = parts.hostname or self.host
        scheme = parts.scheme or self.scheme
        if not link.covers(host):
            fails = link.failing_here(host, parts.port or self.port, method, url)
            if fails:
                return _fail(self, fails, method, url, body, headers, more, options)
            return original(self, method, url, body, headers, *more, **options)
        target = parts._replace(scheme="", netloc="").geturl() or "/"
        fails = link.connecting(host, method, target)
        if fails:
            return _fail(self, fails, method, url, body, headers, more, options)
        port = parts.port if parts.netloc else self.port
        netloc = host if port in {None, 80, 443} else f"{host}:{port}"
        sent = dict(self.headers if headers is None else headers)
        sent.setdefault("Host", netloc)
        sent[ORIGIN] = f"{scheme}://{netloc}"
        if not stage_pool:
            stage_pool.append(pool_class(link.host, link.port, maxsize=16))
        if not more:
            options.setdefault("timeout", self.timeout)
        options["assert_same_host"] = False
        return original(stage_pool[0], method, target, body, sent, *more, **options)

    def _fail(
        pool: Any,
        kind: str,
        method: str,
        url: str,
        body: Any,
        headers: Any,
        more: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """Let one connection fail, and do what the caller's retries say."""
        address = urlsplit(link.failing_address(kind))
        failing_class = module.HTTPSConnectionPool if address.scheme == "https" else pool_class
        from urllib3.exceptions import HTTPError

        retries = more[0] if more else options.get("retries")
        retry_class = module.Retry
        if not isinstance(retries, retry_class):
            retries = retry_class.from_int(
                retries, redirect=options.get("redirect", True), default=pool.retries
            )
        with failing_class(address.hostname, address.port, timeout=pool.timeout) as failing:
            try:
                return original(failing, method, url, body, headers, retries=False)
            except HTTPError as error:
                left = retries.increment(method, url, error=error, _pool=pool)
        left.sleep()
        if more:
            more = (left, *more[1:])
        else:
            options["retries"] = left
        return urlopen(pool, method, url, body, headers, *more, **options)

    patches.set(pool_class, "urlopen", urlopen)

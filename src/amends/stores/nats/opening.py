"""
Check a store when it is opened: its version, and whether its settings are those of the URL.

Every store has a stream for claims and dead letters, which is created first. Its metadata has the version, and its settings
are the store's: they apply to all streams that are created later, whatever URL a process uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from amends.stores.address import Address
from amends.stores.errors import DamagedStoreError, StoreMismatchError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.connection import NatsConnection
from amends.stores.nats.stream_settings import STATE, Settings
from amends.stores.nats.streams import Streams
from amends.stores.versions import other_version

__all__ = ["open_streams", "requested_settings"]

_REPLICAS = frozenset("12345")
_LOOKS, _PAUSE = 10, 0.1
"""How often the first stream is looked for where there are others, and the seconds between."""


def requested_settings(address: Address) -> dict[str, Any]:
    """
    The settings that a URL's options ask for.

    Raises:
        ValueError: an option has an invalid value.
    """
    options = address.options
    wanted: dict[str, Any] = {}
    if "replicas" in options:
        if options["replicas"] not in _REPLICAS:
            raise ValueError(f"replicas must be a number from 1 to 5, not {options['replicas']!r}")
        wanted["replicas"] = int(options["replicas"])
    if "storage" in options:
        if options["storage"] not in {"file", "memory"}:
            raise ValueError(f"storage must be file or memory, not {options['storage']!r}")
        wanted["storage"] = options["storage"]
    if "dedupe_window" in options:
        wanted["dedupe_window"] = address.seconds("dedupe_window", 0.0)
    return wanted


async def open_streams(connection: NatsConnection, store: str, wanted: Mapping[str, Any]) -> Streams:
    """
    The streams of a store; a new store is created with the settings in `wanted`.

    Raises:
        DamagedStoreError: another version of amends wrote the store.
        StoreMismatchError: the store has other settings than `wanted`.
    """
    streams = Streams(connection, store, Settings(**wanted))
    info = await streams.info(STATE, STATE)
    if info is None and await streams.any():
        # Another process may have created it just now, or a server that starts does not list all streams yet.
        for _ in range(_LOOKS):
            info = await streams.info(STATE, STATE)
            if info is not None:
                break
            await asyncio.sleep(_PAUSE)
        else:
            raise DamagedStoreError(other_version(None, _removing(store)))
    if info is None:
        try:
            await streams.ensure(STATE, STATE)
        except ApiError as error:
            if not error.exists_otherwise:
                raise
        info = await streams.info(STATE, STATE)
    if info is None:
        return streams
    config = info["config"]
    problem = other_version((config.get("metadata") or {}).get("amends.format"), _removing(store))
    if problem is not None:
        raise DamagedStoreError(problem)
    found = Settings(config["num_replicas"], config["storage"], config["duplicate_window"] / 1e9)
    for name, value in wanted.items():
        if getattr(found, name) != value:
            raise StoreMismatchError(_mismatch(connection.display_url, name, getattr(found, name), value))
    streams.settings = found
    return streams


def _removing(store: str) -> str:
    return f"remove its streams (`nats stream ls -n | grep '^amends_{store}_' | xargs -n1 nats stream rm -f`)"


def _mismatch(url: str, option: str, found: object, wanted: object) -> str:
    change = {
        "replicas": "change the replicas of all its streams (`nats stream edit STREAM --replicas N`)",
        "dedupe_window": "change all its streams (`nats stream edit STREAM --dupe-window 5m`)",
    }.get(option, "copy it to a store with another name (`amends store copy`)")
    shown = f"{found:g}" if isinstance(found, float) else found
    return f"the store at {url} has {option}={shown}, not {wanted}: write {option}={shown} or leave it out, or {change}"

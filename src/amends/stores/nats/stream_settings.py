"""How the streams of a store are configured, and whether an existing stream has the settings that the store depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amends.stores.versions import VERSION

__all__ = ["GROUPED", "NOTIFICATION", "STATE", "Settings", "differing", "stream_config"]

STATE = "state"
GROUPED = "logs"
NOTIFICATION = "bell"
"""The part of a subject that notifications of logs use."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a store's URL chooses for the streams that the store creates."""

    replicas: int = 1
    storage: str = "file"
    dedupe_window: float = 120.0


_BY_KIND: dict[str, dict[str, Any]] = {
    "log": {"retention": "limits"},
    GROUPED: {"retention": "limits"},
    "table": {"retention": "limits", "max_msgs_per_subject": 1, "allow_msg_ttl": True},
    # One message per subject, and a second one is rejected: this makes a key unique.
    "queue": {
        "retention": "workqueue",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "discard_new_per_subject": True,
    },
    STATE: {"retention": "limits", "max_msgs_per_subject": 1, "allow_msg_ttl": True},
}
# An operator may change the others: replicas, placement, limits of size and age, descriptions.
_REQUIRED = ("subjects", "retention", "allow_direct", "max_msgs_per_subject", "allow_msg_ttl", "republish")


def stream_config(
    settings: Settings, store: str, kind: str, name: str, stream: str, subject: str, notifications: str
) -> dict[str, Any]:
    """The configuration with which a stream is created; `notifications` is the subject of a log's notifications."""
    rest = "" if kind == "log" else ".>"
    config: dict[str, Any] = {
        "name": stream,
        "subjects": [f"{subject}{rest}"],
        "storage": settings.storage,
        "num_replicas": settings.replicas,
        "duplicate_window": int(settings.dedupe_window * 1e9),
        "allow_direct": True,
        "metadata": {
            "amends.kind": kind,
            "amends.name": name,
            "amends.store": store,
            "amends.format": str(VERSION),
        },
        **_BY_KIND[kind],
    }
    if kind in {"log", GROUPED}:
        config["republish"] = {"src": f"{subject}{rest}", "dest": f"{notifications}{rest}"}
    return config


def differing(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The names of required settings that an existing stream has not, such as "retention"."""
    return [name for name in _REQUIRED if name in wanted and found.get(name) != wanted[name]]

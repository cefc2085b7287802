"""Targets of a lease: names that only look like those that a pattern grants are refused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amends.errors.arcp import (
    PermissionDeniedError,
)
from tests.arcp.test_lease import NOW, allowed, lease
from tests.each import each

CLIMBS = [
    # path parameters, a query, a fragment or a stream's name behind the dots
    "..;/etc",
    "..;x=1/etc",
    ".;/etc",
    "%2e%2e;/etc",
    "..%3b/etc",
    "..%3B/etc",
    ".%2e;/etc",
    "..::$INDEX_ALLOCATION/etc",
    "..%3f/etc",
    "..%23/etc",
    # overlong and otherwise invalid encodings
    "%c0%ae%c0%ae/etc",
    "..%c0%afetc",
    "..%C0%AFetc",
    "%e0%80%ae%e0%80%ae/etc",
    "..%e0%80%afetc",
    "%f0%80%80%ae%f0%80%80%ae/etc",
    "..%c1%9cetc",
    "..%c1%afetc",
    "%u002e%u002e/etc",
    "..%u2215etc",
    "..%u2216etc",
    "a%ffb",
    "%ed%a0%80",
    # look-alikes, plain and encoded
    "..\u2215etc",
    "..\u2044etc",
    "..\u29f8etc",
    "..\u2571etc",
    "..\u2216etc",
    "..\u29f5etc",
    "..\u29f9etc",
    "a\u2215..\u2215etc",
    "..%e2%88%95etc",
    "..%E2%81%84etc",
    "..%ef%bc%8fetc",
    "%ef%bc%8e%ef%bc%8e/etc",
    "\u2024\u2024/etc",
    "\u3002\u3002/etc",
    "\uff61\uff61/etc",
    ".\u3002/etc",
    "\ua4f8\ua4f8/etc",
    "\u00b7\u00b7/etc",
    "%e3%80%82%e3%80%82/etc",
    # invisible characters after, between and before the dots, plain and encoded
    "..\u200b/etc",
    ".\u200b./etc",
    "\u200b../etc",
    "..\ufeff/etc",
    "..\u00ad/etc",
    "..\u2060/etc",
    "..\u200d/etc",
    "..\u202e/etc",
    "..\ufe0f/etc",
    "..\u034f/etc",
    "..\u115f/etc",
    "..\u3164/etc",
    "..\U000e0020/etc",
    "..\U000e0101/etc",
    "..\u00a0/etc",
    "..\u3000/etc",
    "..\u2800/etc",
    "..\u0301/etc",
    "..%e2%80%8b/etc",
    "..%c2%a0/etc",
    "..%20/etc",
    "..%09/etc",
    "..%c2%ad/etc",
    "\u200b/etc",
    "..\u200b;x/etc",
    " ..;x/etc",
]


@each("climb", CLIMBS)
def test_dots_in_disguise(climb):
    """Also refused: what is `..` for a program that decodes, folds, ignores or cuts off characters."""
    assert not allowed("fs.read", "/workspace/**", f"/workspace/{climb}")
    assert not allowed("net.fetch", "https://h.example/a/**", f"https://h.example/a/{climb}")
    assert not allowed("tool.call", "mcp:github/**", f"mcp:github/{climb}")


def test_names_that_only_look_unusual():
    """Semicolons, invisible joiners, middle dots and encoded letters are allowed where they change no segment."""
    for target in (
        "/workspace/a;v=1",
        "/workspace/..a;b",
        "/workspace/l\u00b7l",
        "/workspace/\u0646\u0627\u0645\u0647\u200c\u0647\u0627",
        "/workspace/..dots",
        "/workspace/e\u0301.txt",
        "/workspace/.hidden;x",
    ):
        assert allowed("fs.read", "/workspace/**", target), target
    for target in ("a;v=1", "gr%C3%B6%C3%9Fe", "...x", "%7Eme", "a%20b", "b?q=%e9", "%E2%82%AC"):
        assert allowed("net.fetch", "https://h.example/a/**", f"https://h.example/a/{target}"), target


def test_denials_name_their_reason():
    """Each denial says what was wrong with the target."""
    for capability, target, reason in (
        ("net.fetch", "https://user@h.example/", "user info"),
        ("net.fetch", "https://h.example:0/", "an invalid port"),
        ("net.fetch", "https://münchen.example/", "a host in another script: write it as xn--"),
        ("net.fetch", "https://h.example/%2E%2E/", "a segment of dots"),
        ("fs.read", "/a/../b", "a segment of dots"),
        ("fs.read", "/a\\b", "backslash"),
        ("fs.read", "/a/%2f", "percent-encoded separators"),
        ("fs.read", "/a/．．", "characters that fold into separators"),
        ("fs.read", "a", "not absolute"),
    ):
        pattern = "/**" if capability == "fs.read" else "https://**/**"
        assert lease({capability: [pattern]}).check(capability, target, NOW).details["reason"] == reason


@given(st.text(), st.sampled_from(["fs.read", "net.fetch", "tool.call", "agent.delegate", "model.use"]))
def test_no_target_makes_a_check_raise(target, capability):
    """A check returns a result for every target, and never allows a path with `..` segments."""
    widest = {"fs.read": "/**", "net.fetch": "https://**/**"}.get(capability, "**")
    error = lease({capability: [widest]}).check(capability, target, NOW)
    assert error is None or isinstance(error, PermissionDeniedError)
    if ".." in target.split("/"):
        assert error is not None

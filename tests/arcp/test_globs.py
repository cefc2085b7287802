"""Patterns: what they match, and which of them cover each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amends.arcp.leases import covers, parse_pattern
from amends.arcp.leases.grammar import parse_target
from tests.arcp.test_lease import allowed

SEGMENTS = st.text(st.sampled_from("ab*"), min_size=1, max_size=4).filter(lambda text: "**" not in text)


PATTERNS = st.lists(st.one_of(st.just("**"), SEGMENTS), max_size=4).map(lambda parts: "/" + "/".join(parts))


TARGETS = st.lists(st.text(st.sampled_from("ab"), min_size=1, max_size=3), max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)


def naive(pattern, target):
    """A reference implementation of the definition, by backtracking."""

    def inside(glob, text):
        if not glob:
            return not text
        if glob[0] == "*":
            return any(inside(glob[1:], text[at:]) for at in range(len(text) + 1))
        return bool(text) and text[0] == glob[0] and inside(glob[1:], text[1:])

    def walk(globs, parts):
        if not globs:
            return not parts
        if globs[0] == "**":
            return any(walk(globs[1:], parts[at:]) for at in range(len(parts) + 1))
        return bool(parts) and inside(globs[0], parts[0]) and walk(globs[1:], parts[1:])

    return walk([part for part in pattern.split("/") if part], [part for part in target.split("/") if part])


@given(PATTERNS, TARGETS)
def test_matching_equals_the_reference_implementation(pattern, target):
    """The two-pointer algorithm matches exactly what backtracking matches."""
    found = covers(parse_pattern("fs.read", pattern), parse_target("fs.read", target))
    assert found == naive(pattern, target)


@given(PATTERNS, PATTERNS, TARGETS)
def test_a_covered_pattern_matches_a_subset(parent, child, target):
    """9.4: a pattern matches everything that the patterns it covers match."""
    if covers(parse_pattern("fs.read", parent), parse_pattern("fs.read", child)) and naive(child, target):
        assert naive(parent, target)


def test_a_hostile_pattern_costs_little():
    """Many wildcards: the algorithm only goes back to the last one."""
    pattern = "/" + "*a" * 900
    assert not allowed("fs.read", pattern, "/" + "a" * 800 + "b")
    assert not allowed("fs.read", "/**/a" * 200, "/a" * 150 + "/b")

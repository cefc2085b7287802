"""Leases (sections 9 and 10): what they grant, and what is refused because it could be interpreted differently."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.arcp import leases
from amends.arcp.leases import Budget, Lease, amount_of, covers, parse_pattern
from amends.arcp.leases.grammar import parse_target
from amends.arcp.leases.targets import Refused
from amends.errors.arcp import (
    BudgetExhaustedError,
    InvalidRequestError,
    LeaseExpiredError,
    LeaseSubsetViolationError,
    PermissionDeniedError,
)
from tests.each import each

NOW = 1_778_700_000.0
LATER = "2026-05-13T23:42:00Z"


def lease(request, constraints=None):
    return leases.read(request, constraints, now=NOW)


def allowed(capability, pattern, target):
    return lease({capability: [pattern]}).check(capability, target, NOW) is None


GRANTED = [
    ("fs.read", "/workspace/myapp/**", "/workspace/myapp/src/a.py"),
    ("fs.read", "/workspace/myapp/**", "/workspace/myapp"),
    ("fs.read", "/workspace/*", "/workspace/a.txt"),
    ("fs.read", "/workspace/*.txt", "/workspace/a.txt"),
    ("fs.read", "/workspace/**/test_*.py", "/workspace/a/b/test_c.py"),
    ("fs.read", "/workspace/**/test_*.py", "/workspace/test_c.py"),
    ("fs.read", "/**", "/anything/at/all"),
    ("fs.read", "/", "/"),
    ("fs.write", "/workspace/", "/workspace"),
    ("fs.read", "/workspace/**", "/workspace//a/./b"),
    ("fs.read", "/workspace/[id].tsx", "/workspace/[id].tsx"),
    ("fs.read", "/workspace/**", "/workspace/ordner/größe.txt"),
    ("fs.read", "/workspace/**", "/workspace/.hidden/..dots"),
    ("fs.read", "/workspace/**", "/workspace/100% cotton.txt"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com/v1/items?q=../..#x"),
    ("net.fetch", "https://api.example.com/**", "HTTPS://API.Example.COM:443/v1"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com"),
    ("net.fetch", "https://api.example.com", "https://api.example.com/"),
    ("net.fetch", "https://*.example.com/**", "https://a.example.com/x"),
    ("net.fetch", "https://**.example.com/**", "https://a.b.example.com/x"),
    ("net.fetch", "https://**/**", "https://anywhere.example/x"),
    ("net.fetch", "https://api-*.example.com/v*/x", "https://api-eu.example.com/v2/x"),
    ("net.fetch", "https://h.example:*/**", "https://h.example:8443/"),
    ("net.fetch", "https://h.example:8443/**", "https://h.example:8443/a"),
    ("net.fetch", "https://xn--mnchen-3ya.example/**", "https://xn--mnchen-3ya.example/a"),
    ("net.fetch", "https://h.example/a b".replace(" ", "%20"), "https://h.example/a%20b"),
    ("net.fetch", "https://h.example/~me", "https://h.example/%7Eme"),
    ("net.fetch", "http://127.0.0.1:8080/**", "http://127.0.0.1:8080/x"),
    ("net.fetch", "http://[::1]/**", "http://[0:0:0:0:0:0:0:1]:80/x"),
    ("net.fetch", "s3://example/**", "s3://example/sales.csv"),
    ("tool.call", "mcp:github/*", "mcp:github/issues"),
    ("tool.call", "humanq.*", "humanq.ask"),
    ("tool.call", "*", "shell"),
    ("agent.delegate", "test-runner", "test-runner"),
    ("agent.delegate", "test-runner", "test-runner@1.0.0"),
    ("agent.delegate", "test-*", "test-runner@1.0.0"),
    ("agent.delegate", "test-runner@1.*", "test-runner@1.4"),
    ("model.use", "tier-fast/*", "tier-fast/small"),
    ("model.use", "anthropic/claude-3-haiku-*", "anthropic/claude-3-haiku-20240307"),
    ("x-vendor.db", "orders/*", "orders/read"),
]


@each(("capability", "pattern", "target"), GRANTED)
def test_what_a_pattern_grants(capability, pattern, target):
    """9.2: `*` is one segment or a part of one, `**` any number; anchored at both ends."""
    assert allowed(capability, pattern, target)


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

DENIED = [
    # traversal
    ("fs.read", "/workspace/**", "/workspace/../etc/passwd"),
    ("fs.read", "/workspace/**", "/workspace/a/../../etc/passwd"),
    ("fs.read", "/workspace/**", "/workspace/a/../b"),
    ("fs.read", "/workspace/**", "/workspace/.."),
    ("fs.read", "/workspace/**", "/workspace/.../x"),
    ("fs.read", "/**", "/../etc"),
    ("fs.read", "/workspace/**", "/workspacex/a"),
    ("fs.read", "/workspace/*", "/workspace/a/b"),
    ("fs.read", "/workspace/*", "/workspace"),
    ("fs.read", "/workspace/*", "/workspace/"),
    ("fs.read", "/workspace", "/workspace/a"),
    # encoded
    ("fs.read", "/workspace/**", "/workspace/%2e%2e/etc/passwd"),
    ("fs.read", "/workspace/**", "/workspace/%2E%2E/etc/passwd"),
    ("fs.read", "/workspace/**", "/workspace/%252e%252e/etc/passwd"),
    ("fs.read", "/workspace/**", "/workspace/..%2fetc"),
    ("fs.read", "/workspace/**", "/workspace/..%5cetc"),
    ("fs.read", "/workspace/**", "/workspace/a%00.txt"),
    # backslashes, controls, foreign dots and slashes
    ("fs.read", "/workspace/**", "/workspace\\..\\etc"),
    ("fs.read", "/workspace/**", "/workspace/..\\etc"),
    ("fs.read", "/workspace/**", "/workspace/a\x00.txt"),
    ("fs.read", "/workspace/**", "/workspace/a\n.txt"),
    ("fs.read", "/workspace/**", "/workspace/．．/etc"),
    ("fs.read", "/workspace/**", "/workspace/‥/etc"),
    ("fs.read", "/workspace/**", "/workspace／..／etc"),
    ("fs.read", "/workspace/**", "/workspace/\ud800"),
    # suffixes that some systems remove, relative paths, other cases, links by another name
    ("fs.read", "/workspace/**", "/workspace/secret."),
    ("fs.read", "/workspace/**", "/workspace/secret "),
    ("fs.read", "/workspace/**", "/workspace/.. /etc"),
    ("fs.read", "/workspace/**", "workspace/a"),
    ("fs.read", "/workspace/**", "~/a"),
    ("fs.read", "/workspace/**", "C:/workspace/a"),
    ("fs.read", "/workspace/**", "//server\\share"),
    ("fs.read", "/workspace/**", "/Workspace/a"),
    ("fs.read", "/workspace/**", "/WORKSPACE/A"),
    ("fs.read", "/workspace/**", "/proc/self/root/etc"),
    ("fs.read", "/workspace/**", ""),
    ("fs.read", "/workspace/**", None),
    ("fs.read", "/workspace/**", 5),
    ("fs.read", "/workspace/**", ["/workspace/a"]),
    ("fs.read", "/workspace/**", "/workspace/" + "a" * 10_000),
    # URLs
    ("net.fetch", "https://api.example.com/**", "http://api.example.com/v1"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com.evil.example/"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com@evil.example/"),
    ("net.fetch", "https://api.example.com/**", "https://user:pass@api.example.com/"),
    ("net.fetch", "https://api.example.com/**", "https://evil.example/#@api.example.com/"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com:8443/"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com:80/"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com:0443/"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com:/"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com:٤٤٣/"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com:99999/"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com./v1"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com\\@evil.example/"),
    ("net.fetch", "https://api.example.com/**", "https:\\\\api.example.com/"),
    ("net.fetch", "https://api.example.com/**", "https:/api.example.com/"),
    ("net.fetch", "https://api.example.com/**", "//api.example.com/"),
    ("net.fetch", "https://api.example.com/**", "https://"),
    ("net.fetch", "https://api.example.com/**", "javascript:alert(1)"),
    ("net.fetch", "https://api.example.com/**", "https://api.example.com/ x"),
    ("net.fetch", "https://api.example.com/**", "https://api%2eexample.com/"),
    ("net.fetch", "https://api.example.com/**", "https://аpi.example.com/"),
    ("net.fetch", "https://api.example.com/**", "https://api。example.com/"),
    ("net.fetch", "https://xn--mnchen-3ya.example/**", "https://münchen.example/a"),
    ("net.fetch", "https://h.example/public/**", "https://h.example/public/../admin"),
    ("net.fetch", "https://h.example/public/**", "https://h.example/public/%2e%2e/admin"),
    ("net.fetch", "https://h.example/public/**", "https://h.example/public/.%2E/admin"),
    ("net.fetch", "https://h.example/public/**", "https://h.example/public/%252e%252e/admin"),
    ("net.fetch", "https://h.example/public/**", "https://h.example/public/..%2fadmin"),
    ("net.fetch", "https://h.example/public/**", "https://h.example/public/%zz"),
    ("net.fetch", "https://h.example/public/**", "https://h.example//public/x"),
    ("net.fetch", "https://h.example/public/**", "https://h.example/Public/x"),
    ("net.fetch", "https://h.example/**", "https://h.example/größe"),
    ("net.fetch", "https://*.example.com/**", "https://example.com/"),
    ("net.fetch", "https://*.example.com/**", "https://a.b.example.com/"),
    ("net.fetch", "https://*.example.com/**", "https://.example.com/"),
    ("net.fetch", "https://h.example/*/x", "https://h.example//x"),
    ("net.fetch", "https://h.example/*", "https://h.example/"),
    # a wildcard matches names, not addresses, in any notation
    ("net.fetch", "http://**/**", "http://169.254.169.254/latest/meta-data"),
    ("net.fetch", "http://*.*.*.*/**", "http://169.254.169.254/latest/meta-data"),
    ("net.fetch", "http://**/**", "http://2852039166/"),
    ("net.fetch", "http://**/**", "http://0xa9fea9fe/"),
    ("net.fetch", "http://**/**", "http://0251.0376.0251.0376/"),
    ("net.fetch", "http://127.0.0.1/**", "http://127.1/"),
    ("net.fetch", "http://127.0.0.1/**", "http://[::ffff:127.0.0.1]/"),
    ("net.fetch", "http://**/**", "http://[::1]/"),
    ("net.fetch", "http://[::1]/**", "http://[::1%25lo]/"),
    ("net.fetch", "http://[::1]/**", "http://[::1/"),
    # names
    ("tool.call", "mcp:github/*", "mcp:github/issues/delete"),
    ("tool.call", "mcp:github/**", "mcp:github/../gitlab/x"),
    ("tool.call", "mcp:github/**", "mcp:github/%2e%2e/gitlab"),
    ("tool.call", "mcp:github/*", "mcp:github/"),
    ("tool.call", "mcp:github/*", "MCP:github/issues"),
    ("tool.call", "shell", " shell"),
    ("tool.call", "shell", "shell\u2028"),
    ("agent.delegate", "test-runner", "test-runner2"),
    ("agent.delegate", "test-runner@1.0", "test-runner@2.0"),
    ("agent.delegate", "test-runner@1.0", "test-runner"),
    ("model.use", "tier-fast/*", "tier-slow/large"),
]


@each(("capability", "pattern", "target"), DENIED)
def test_what_a_pattern_does_not_grant(capability, pattern, target):
    """v1.0 section 14: traversal, encodings, case, trailing dots, user info, ports, other scripts."""
    error = lease({capability: [pattern]}).check(capability, target, NOW)
    assert isinstance(error, PermissionDeniedError)
    assert error.details["capability"] == capability
    assert error.details["reason"]
    assert not error.retryable


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


def test_a_capability_that_was_not_granted():
    """9.1: a capability that is not in the lease is not granted, models included (9.7)."""
    for capability in ("fs.write", "model.use", "cost.budget", "nonsense"):
        error = lease({"fs.read": ["/a"]}).check(capability, "/a", NOW)
        assert isinstance(error, PermissionDeniedError)
        assert error.details == {
            "capability": capability,
            "target": "/a",
            "reason": "the lease does not grant this capability",
        }


def test_amounts_are_not_patterns():
    """A budget grants no target."""
    assert isinstance(
        lease({"cost.budget": ["USD:1"]}).check("cost.budget", "USD:1", NOW), PermissionDeniedError
    )
    with pytest.raises(Refused):
        parse_pattern("cost.budget", "USD:1")


REFUSED = [
    ({"fs.raed": ["/a"]}, "fs.raed"),
    ({"FS.READ": ["/a"]}, "FS.READ"),
    ({"x-": ["/a"]}, "x-"),
    ({5: ["/a"]}, "5"),
    ({"fs.read": "/a"}, "fs.read"),
    ({"fs.read": [5]}, "fs.read"),
    ({"fs.read": ["/a"] * 257}, "fs.read"),
    ({"fs.read": ["a/**"]}, "fs.read"),
    ({"fs.read": ["/a/../b"]}, "fs.read"),
    ({"fs.read": ["/a/**b"]}, "fs.read"),
    ({"fs.read": ["/a/***"]}, "fs.read"),
    ({"fs.read": [""]}, "fs.read"),
    ({"fs.read": ["/" + "a" * 3000]}, "fs.read"),
    ({"net.fetch": ["*"]}, "net.fetch"),
    ({"net.fetch": ["*://h.example/"]}, "net.fetch"),
    ({"net.fetch": ["https://h.example/?q=*"]}, "net.fetch"),
    ({"net.fetch": ["https://u@h.example/"]}, "net.fetch"),
    ({"net.fetch": ["https://münchen.example/"]}, "net.fetch"),
    ({"net.fetch": ["https://h.example:1*/"]}, "net.fetch"),
    ({"net.fetch": ["https://-*.example/"]}, "net.fetch"),
    ({"net.fetch": ["https://a**.example/"]}, "net.fetch"),
    ({"tool.call": ["a//b"]}, "tool.call"),
    ({"cost.budget": ["5.00"]}, "cost.budget"),
    ({"cost.budget": ["USD:-5"]}, "cost.budget"),
    ({"cost.budget": ["USD:1e3"]}, "cost.budget"),
    ({"cost.budget": ["USD:٥"]}, "cost.budget"),
    ({"cost.budget": ["USD:5", "USD:6"]}, "cost.budget"),
]


@pytest.mark.parametrize(("request_", "capability"), REFUSED)
def test_invalid_leases_are_rejected(request_, capability):
    """A pattern that would grant nothing, or something other than intended, is rejected."""
    with pytest.raises(InvalidRequestError) as caught:
        lease(request_)
    assert caught.value.details["capability"] == capability
    assert caught.value.details["reason"]


def test_a_lease_is_an_object():
    """Other values are rejected; a missing lease is an empty one."""
    with pytest.raises(InvalidRequestError):
        lease(["fs.read"])
    assert lease(None) == Lease() == lease({})
    assert lease({"fs.read": []}).check("fs.read", "/a", NOW) is not None


def test_expiry():
    """9.5: at or after the expiry every operation fails, whatever is granted."""
    short = lease({"fs.read": ["/**"]}, {"expires_at": LATER})
    end = short.expires_at
    assert short.check("fs.read", "/a", end - 0.001) is None
    error = short.check("fs.read", "/a", end)
    assert isinstance(error, LeaseExpiredError)
    assert error.details["expires_at"] == LATER == short.constraints()["expires_at"]
    assert not error.retryable
    assert isinstance(short.check("net.fetch", "x", end), LeaseExpiredError)
    assert lease({}).constraints() is None


@pytest.mark.parametrize(
    "expires_at",
    [
        "2020-01-01T00:00:00Z",
        "2026-05-13T23:42:00",
        "2026-05-13T23:42:00+02:00",
        "2026-05-13",
        "2026-13-13T23:42:00Z",
        "soon",
        5,
        "٢٠٢٦-05-13T23:42:00Z",
    ],
)
def test_invalid_expiry_times(expires_at):
    """9.5: times in the past, without a zone, or malformed: INVALID_REQUEST."""
    with pytest.raises(InvalidRequestError) as caught:
        lease({}, {"expires_at": expires_at})
    assert caught.value.details == {"field": "lease_constraints.expires_at"}
    assert lease({}, {"expires_at": None}).expires_at is None
    assert lease({}, {}).expires_at is None


def test_budget_arithmetic_is_decimal():
    """9.6: ten times a tenth is one; a float has the value that it prints."""
    budget = Budget.of(["USD:1.00", "credits:1000"])
    for _ in range(10):
        assert budget.exhausted is None
        budget = budget.spend("USD", 0.1)
    assert budget.left["USD"] == 0
    assert budget.exhausted == "USD"
    assert budget.counters() == {"USD": "0.00", "credits": "1000"}
    assert budget.spend("USD", "0.50").counters()["USD"] == "-0.50"
    assert budget.spend("USD", 1).amounts() == ["USD:0", "credits:1000"]


@pytest.mark.parametrize(
    "cost",
    [
        -1,
        -0.1,
        True,
        None,
        "x",
        float("nan"),
        "1e9999",
        "-5",
        [],
        Decimal("NaN"),
        "USD:-1",
    ],
)
def test_invalid_costs_change_nothing(cost):
    """9.6: negative values are rejected and produce no decrement."""
    budget = Budget.of(["USD:1.00"])
    assert budget.spend("USD", cost) is budget
    assert budget.spend("EUR", 1) is budget
    assert budget.spend(None, 1) is budget


def test_the_smallest_cost_is_counted():
    """Rounding never increases the budget."""
    budget = Budget.of(["USD:1"]).spend("USD", 1e-300)
    assert budget.left["USD"] < 1


@pytest.mark.parametrize(
    ("received", "amount"),
    [(5.0, "5.0"), (5, "5"), ("5.00", "5.00"), ("USD:5.00", "5.00"), (0, "0"), ("0.1e-3", "0.0001")],
)
def test_amounts_as_peers_write_them(received, amount):
    """A number, a string, or a string with its currency."""
    assert amount_of(received) == Decimal(amount)
    assert Budget.read({"USD": received}).left == {"USD": Decimal(amount)}
    assert Budget.read({"USD": "x"}).left == {} == Budget.read(None).left


def test_an_exhausted_budget_stops_every_operation():
    """9.6: checked before any operation, after the permission, so that a denied target is reported as such."""
    paid = lease({"tool.call": ["*"], "cost.budget": ["USD:0"]})
    error = paid.check("tool.call", "shell", NOW, paid.budget)
    assert isinstance(error, BudgetExhaustedError)
    assert error.details == {"capability": "tool.call", "target": "shell", "currency": "USD"}
    assert not error.retryable
    assert isinstance(paid.check("fs.read", "/a", NOW, paid.budget), PermissionDeniedError)
    assert paid.check("tool.call", "shell", NOW, Budget.of(["USD:0.01"])) is None
    assert paid.check("tool.call", "shell", NOW) is None


SUBSETS = [
    ("fs.read", "/a/**", "/a/**"),
    ("fs.read", "/a/**", "/a/b/*"),
    ("fs.read", "/a/**", "/a/*/c/**"),
    ("fs.read", "/a/*", "/a/b*"),
    ("fs.read", "/**", "/a/**/b"),
    ("fs.read", "/a/**/c", "/a/b/c"),
    ("fs.read", "/a*c", "/ab*c"),
    ("net.fetch", "https://**.example.com/**", "https://*.eu.example.com/v1/*"),
    ("net.fetch", "https://h.example:*/**", "https://h.example:8443/**"),
    ("tool.call", "mcp:*/**", "mcp:github/*"),
    ("agent.delegate", "test-*", "test-runner@1.0"),
    ("model.use", "tier-fast/*", "tier-fast/small"),
]
NO_SUBSETS = [
    ("fs.read", "/a/*", "/a/**"),
    ("fs.read", "/a/b", "/a/*"),
    ("fs.read", "/a/**", "/**"),
    ("fs.read", "/a/b*", "/a/*"),
    ("fs.read", "/a/*b", "/a/*c"),
    ("fs.read", "/a/*/c", "/a/**/c"),
    ("fs.read", "/a/**", "/a*/**"),
    ("net.fetch", "https://*.example.com/**", "https://**.example.com/**"),
    ("net.fetch", "https://h.example/**", "https://h.example:*/**"),
    ("net.fetch", "https://**/**", "https://10.0.0.1/**"),
    ("net.fetch", "https://h.example/**", "http://h.example/**"),
    ("agent.delegate", "test-runner@1.0", "test-runner"),
    ("tool.call", "mcp:github/*", "mcp:*"),
]


@pytest.mark.parametrize(("capability", "parent", "child"), SUBSETS)
def test_a_smaller_lease_can_be_delegated(capability, parent, child):
    """9.4: every grant of the child is covered by one of the parent's."""
    granted = lease({capability: [parent]}).narrow(lease({capability: [child]}), None, NOW)
    assert granted == lease({capability: [child]})


@pytest.mark.parametrize(("capability", "parent", "child"), NO_SUBSETS)
def test_a_larger_lease_cannot_be_delegated(capability, parent, child):
    """9.4: a grant that is not provably covered is refused."""
    error = lease({capability: [parent]}).narrow(lease({capability: [child]}), None, NOW)
    assert isinstance(error, LeaseSubsetViolationError)
    assert error.details == {"capability": capability, "pattern": child}


def test_a_capability_that_the_parent_lacks():
    """9.4."""
    assert isinstance(lease({}).narrow(lease({"fs.read": ["/a"]}), None, NOW), LeaseSubsetViolationError)


def test_a_delegated_budget():
    """9.4: at most the rest of the parent's, in every currency; currencies it does not name are the parent's."""
    parent = lease({"cost.budget": ["USD:5.00", "EUR:1"]})
    left = parent.budget.spend("USD", 3)
    granted = parent.narrow(lease({"cost.budget": ["USD:2.00"]}), left, NOW)
    assert granted.grants["cost.budget"] == ("USD:2.00", "EUR:1")
    error = parent.narrow(lease({"cost.budget": ["USD:2.01"]}), left, NOW)
    assert isinstance(error, LeaseSubsetViolationError)
    assert error.details == {"capability": "cost.budget", "currency": "USD", "remaining": "2.00"}
    assert isinstance(parent.narrow(lease({"cost.budget": ["YEN:1"]}), left, NOW), LeaseSubsetViolationError)
    assert parent.narrow(lease({}), left, NOW).grants["cost.budget"] == ("USD:2.00", "EUR:1")
    assert parent.narrow(lease({}), None, NOW).budget == parent.budget
    # A budget only limits: a parent without one may give its child one.
    assert lease({}).narrow(lease({"cost.budget": ["USD:1"]}), None, NOW).budget.left == {"USD": 1}
    overdrawn = parent.budget.spend("USD", 9)
    assert parent.narrow(lease({}), overdrawn, NOW).budget.exhausted == "USD"


def test_a_delegated_expiry():
    """9.4: never later than the parent's expiry, which is also the default."""
    parent = lease({}, {"expires_at": LATER})
    sooner = lease({}, {"expires_at": "2026-05-13T23:00:00Z"})
    assert parent.narrow(sooner, None, NOW).expires_at == sooner.expires_at
    assert parent.narrow(lease({}), None, NOW).expires_at == parent.expires_at
    assert isinstance(sooner.narrow(parent, None, NOW), LeaseSubsetViolationError)
    assert lease({}).narrow(sooner, None, NOW) == sooner


def test_the_wire_form_is_the_requested_lease():
    """As in `job.accepted`."""
    asked = {"fs.read": ["/a/**"], "cost.budget": ["USD:5.00"]}
    assert lease(asked).wire() == asked


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


@given(st.text(), st.sampled_from(["fs.read", "net.fetch", "tool.call", "agent.delegate", "model.use"]))
def test_no_target_makes_a_check_raise(target, capability):
    """A check returns a result for every target, and never allows a path with `..` segments."""
    widest = {"fs.read": "/**", "net.fetch": "https://**/**"}.get(capability, "**")
    error = lease({capability: [widest]}).check(capability, target, NOW)
    assert error is None or isinstance(error, PermissionDeniedError)
    if ".." in target.split("/"):
        assert error is not None


def test_a_hostile_pattern_costs_little():
    """Many wildcards: the algorithm only goes back to the last one."""
    pattern = "/" + "*a" * 900
    assert not allowed("fs.read", pattern, "/" + "a" * 800 + "b")
    assert not allowed("fs.read", "/**/a" * 200, "/a" * 150 + "/b")

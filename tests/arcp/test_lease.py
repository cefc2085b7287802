"""Leases (sections 9 and 10): what they grant, and what is refused because it could be interpreted differently."""

import pytest

from amends.arcp import leases
from amends.errors.arcp import (
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

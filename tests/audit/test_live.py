"""C11: real tools, audited for real. Only with `make soak`: it takes minutes and needs the tools."""

import shutil

import pytest

from amends.audit import observe, score
from tests.audit.test_rubric import EXPECTED, side

CALLS = {
    "curl": ("-sS -f {url}/x", {}),
    "git": ("ls-remote {url}/repo.git", {}),
    "kubectl": ("--server {url} get pods", {}),
    "http": ("--check-status --ignore-stdin {url}/x", {}),
    "aws": (
        "--endpoint-url {url} s3api list-buckets",
        {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"},
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize("tool", sorted(CALLS))
def test_a_real_tool_against_the_fixture(tool):
    """C11: none of them says whether to retry; how often each asks again is as recorded."""
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    call, env = CALLS[tool]
    report = score(observe([path], call=call, env=env, timeout=100))
    if report.evidence.observations[0].exit not in {0, 252}:
        pytest.skip(f"{tool} does not run in an empty home")
    assert report.at_most == (1 if tool == "kubectl" else 0)
    assert side(report, "amplification").score == EXPECTED[tool]["amplification"]

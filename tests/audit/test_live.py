"""C11: audits of real tools. Only `make soak` runs them: it installs the tools and takes minutes."""

import pytest

from tests.audit.test_rubric import EXPECTED, assert_report
from tests.audit.tools import TOOLS, audit_tool


@pytest.mark.soak
@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_a_real_tool_against_the_fixture(tool):
    """C11: none of the tools reports whether to retry; their failures are as recorded."""
    assert_report(audit_tool(tool), EXPECTED[tool])

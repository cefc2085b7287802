"""C11: real tools, audited for real. Only with `make soak`, which brings the tools: it takes minutes."""

import pytest

from tests.audit.test_rubric import EXPECTED, agrees
from tests.audit.tools import TOOLS, audited


@pytest.mark.soak
@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_a_real_tool_against_the_fixture(tool):
    """C11: none of them says whether to retry; what each does with a failure is as recorded."""
    agrees(audited(tool), EXPECTED[tool])

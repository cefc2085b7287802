"""The matrix for CrewAI, in its own environment."""

import pytest

from tests.frameworks import matrix
from tests.frameworks.test_matrix import check


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shape", matrix.SHAPES)
def test_no_cell_pays_twice_or_ends_with_a_false_statement(shape):
    """In each cell an order is paid once, or it is in doubt and the model says so."""
    check("crewai", shape)

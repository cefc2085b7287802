"""The matrix of faults, ways of writing a call once more, and shapes of a run, in each framework."""

import importlib

import pytest

from tests.frameworks import matrix

NAMES = (
    "agent_framework",
    "claude_agent_sdk",
    "google_adk",
    "langchain",
    "llama_index",
    "openai_agents",
    "pydantic_ai",
    "smolagents",
    "strands",
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shape", matrix.SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_no_cell_pays_twice_or_ends_with_a_false_statement(name, shape):
    """In each cell an order is paid once, or it is in doubt and the model says so."""
    check(name, shape)


def check(name, shape):
    driver = importlib.import_module(f"tests.frameworks.drivers.{name}")
    results = [matrix.run_cell(driver, cell) for cell in matrix.cells(driver) if cell.shape == shape]
    assert results
    assert [
        (result.cell, problem, result.read) for result in results if (problem := matrix.wrong(result))
    ] == []

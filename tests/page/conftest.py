"""The token of the pages that these tests open."""

import pytest

TOKEN = "the-token-of-these-tests"


@pytest.fixture(autouse=True)
def token(monkeypatch):
    """Set the token of pages that are given none."""
    monkeypatch.setenv("AMENDS_PAGE_TOKEN", TOKEN)

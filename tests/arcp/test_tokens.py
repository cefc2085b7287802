"""Tokens in the environment and on the command line."""

import pytest

from amends.arcp.tokens import OPERATOR, VARIABLE, environment_tokens, parse_token


@pytest.mark.parametrize(
    ("text", "token", "principal"),
    [
        ("secret", "secret", OPERATOR),
        ("alice=secret", "secret", "alice"),
        ("alice=a=b", "a=b", "alice"),
        ("c2VjcmV0cw==", "c2VjcmV0cw==", OPERATOR),
        ("=x", "=x", OPERATOR),
    ],
)
def test_parsing(text, token, principal):
    assert parse_token(text) == (token, principal)


def test_the_environment(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert environment_tokens() == {}
    monkeypatch.setenv(VARIABLE, "alice=secret")
    assert environment_tokens() == {"secret": "alice"}

"""Bearer tokens in the environment and on the command line: TOKEN or PRINCIPAL=TOKEN."""

from __future__ import annotations

import os

__all__ = ["OPERATOR", "VARIABLE", "environment_tokens", "parse_token"]

VARIABLE = "AMENDS_RUNTIME_TOKEN"
"""The variable with the bearer token. Other users of the machine can see a command line, but not the environment."""

OPERATOR = "operator"
"""The principal of a token without one."""


def parse_token(text: str) -> tuple[str, str]:
    """
    The token of TOKEN or PRINCIPAL=TOKEN, and its principal.

    >>> parse_token("alice=secret"), parse_token("c2VjcmV0cw==")
    (('secret', 'alice'), ('c2VjcmV0cw==', 'operator'))
    """
    principal, _, token = text.partition("=")
    # The padding of base64 is not a separator.
    return (token, principal) if principal and token.strip("=") else (text, OPERATOR)


def environment_tokens() -> dict[str, str]:
    """The token in the environment with its principal; empty if there is none."""
    text = os.environ.get(VARIABLE)
    return dict([parse_token(text)]) if text else {}

"""`amends.arcp.errors`."""

from __future__ import annotations

import amends.arcp.errors
import amends.errors.arcp


def test_the_same_classes_in_both_places():
    """R1: fifteen classes and their root, importable without an extra from either place."""
    assert amends.arcp.errors.__all__ == amends.errors.arcp.__all__
    for name in amends.arcp.errors.__all__:
        assert getattr(amends.arcp.errors, name) is getattr(amends.errors.arcp, name)

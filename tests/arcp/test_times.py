"""Times on the wire."""

from __future__ import annotations

from amends.arcp import wire


def test_times():
    """UTC with a Z, in both directions."""
    assert wire.text_of(0) == "1970-01-01T00:00:00Z"
    assert wire.text_of(1_778_715_720.5) == "2026-05-13T23:42:00.500Z"
    assert wire.seconds_of("2026-05-13T23:42:00.500Z") == 1_778_715_720.5
    assert wire.seconds_of("2026-05-13t23:42:00z") == wire.seconds_of("2026-05-13T23:42:00+00:00")
    for text in (
        None,
        5,
        "",
        "now",
        "2026-05-13T23:42:00",
        "2026-02-30T00:00:00Z",
        "2026-05-13T23:42:00-01:00",
    ):
        assert wire.seconds_of(text) is None
    one, two = wire.now_text(), wire.now_text()
    assert wire.seconds_of(one) <= wire.seconds_of(two)

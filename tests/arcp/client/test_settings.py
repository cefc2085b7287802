"""The settings of a client."""

import pytest

from amends.arcp import Settings, connect


def test_defaults_are_bounded():
    """Everything that waits or grows has a limit."""
    settings = Settings()
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert 0 < value < float("inf"), name
    assert settings.resuming.max_wait is not None


async def test_single_settings_as_arguments():
    async def never():
        raise AssertionError

    with pytest.raises(TypeError):
        connect(never, no_such_setting=1)
    with pytest.raises(AttributeError):
        Settings().buffer = 5

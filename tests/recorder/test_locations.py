"""The store that is used if none is named."""

from amends.recorder import default_url
from amends.stores.address import parse


def test_the_environment_variable_then_the_users_state(monkeypatch, tmp_path):
    """AMENDS_RECORD, XDG_STATE_HOME, the home directory."""
    monkeypatch.setenv("AMENDS_RECORD", "nats://localhost/x")
    assert default_url() == "nats://localhost/x"
    monkeypatch.setenv("AMENDS_RECORD", " ")
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}/a b")
    assert parse(default_url()).path == f"{tmp_path}/a b/amends/record.db"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_url() == "sqlite:////home/ada/.local/state/amends/record.db"

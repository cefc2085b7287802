"""Tests of who is believed: the user's word, the secret of a system, and nobody else."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import Fault, FaultError
from amends.core.fault import Origin
from amends.dialects.record import attach, record_of
from amends.foreign import trust
from amends.foreign.own_service import is_from_own_service
from amends.foreign.trust import (
    believed,
    child_environment,
    is_own_address,
    is_own_command,
    is_system_call,
    new_call,
    own,
    signed,
    trusted,
)

SECRET = "a secret of this system"
SENT = Fault(code="RATE_LIMITED", message="Too many", retry_after=2.0)
READ = Fault(code="SERVICE_UNAVAILABLE", vocabulary="adcp", origin=Origin("adcp", "structuredContent"))


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch):
    """Each test declares its own services."""
    monkeypatch.setattr(trust, "_ADDRESSES", [])
    monkeypatch.setattr(trust, "_COMMANDS", [])
    monkeypatch.delenv(trust.SYSTEM, raising=False)


@pytest.fixture
def secret(monkeypatch):
    monkeypatch.setenv(trust.SYSTEM, SECRET)


def read(record):
    return attach(READ, record)


def test_addresses():
    """A star is a part of one host name; the scheme counts; the port and the path count if they are named."""
    own("https://*.corp", "http://127.0.0.1:*/orders", "wss://runtime.example:7777")
    for address in (
        "https://shop.corp",
        "https://a.b.corp:8443/x?y",
        "http://127.0.0.1:5000/orders",
        "http://127.0.0.1:5000/orders/7",
        "wss://runtime.example:7777/arcp",
        "https://SHOP.corp/",
    ):
        assert is_own_address(address), address
    for address in (
        "http://shop.corp",
        "https://corp",
        "https://shop.corp.evil.example",
        "https://evil.example/.corp",
        "https://evil.example?x=.corp",
        "https://evil.example#a.corp",
        "https://shop.corp@evil.example/",
        "https://evil.example\\.corp/",
        "http://127.0.0.1:5000/ordersx",
        "http://127.0.0.1:5000/orders/../admin",
        "http://127.0.0.2:5000/orders",
        "wss://runtime.example/arcp",
        "ftp://shop.corp",
        "shop.corp",
        "https://[",
        7,
        None,
    ):
        assert not is_own_address(address), address


@pytest.mark.parametrize("wrong", ["shop.corp", "ftp://shop.corp", "https://", "*://shop", "https://a b", ""])
def test_a_wrong_address_is_refused(wrong):
    with pytest.raises(ValueError, match="own address has a scheme"):
        own(wrong)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="addresses as text"):
        own(7)
    with pytest.raises(TypeError, match="names of commands"):
        own(command=[7])
    with pytest.raises(ValueError, match="name or the path"):
        own(command="")


def test_commands():
    """By name or by path; what a shell or an interpreter runs is not seen."""
    own(command=["shop", "/opt/till"])
    assert is_own_command(["shop", "x"])
    assert is_own_command(("/usr/local/bin/shop",))
    assert is_own_command(["/opt/till"])
    for argv in (["till"], ["sh", "-c", "shop"], ["shop.evil"], [], "shop", None, [7]):
        assert not is_own_command(argv)


def test_the_secret_reaches_own_children_only():
    """Foreign tools are children, too."""
    own(command="shop")
    env = {"PATH": "/bin", trust.SYSTEM: SECRET}
    assert child_environment(env, ["shop"]) == env
    assert child_environment(env, ["curl"]) == {"PATH": "/bin"}


def test_a_signed_record_is_believed_for_its_call_alone(secret):
    """Whatever the address: also behind an intermediary."""
    call, other = new_call(), new_call()
    record = signed(record_of(SENT, "adcp"), call)
    assert believed(read(record), own=False, call=call).code == "RATE_LIMITED"
    assert believed(read(record), own=False, call=call).executed.value == "no"
    for wrong in (other, None, "", call[:-1], call.upper(), 7):
        assert believed(read(record), own=False, call=wrong) == read(record)
    error = trusted(FaultError.from_fault(read(record)), own=False, call=call)
    assert is_from_own_service(error)
    assert not is_from_own_service(FaultError.from_fault(read(record)))


def test_whole_numbers_may_become_floats(secret):
    """Protobuf, which carries A2A, has no integers."""
    call = new_call()
    record = signed(record_of(SENT, "adcp"), call)
    sent = {name: float(value) if isinstance(value, int) else value for name, value in record.items()}
    assert believed(read(sent), own=False, call=call).code == "RATE_LIMITED"


def test_another_secret_or_a_short_one_signs_nothing(secret, monkeypatch, caplog):
    call = new_call()
    record = signed(record_of(SENT, "adcp"), call)
    monkeypatch.setenv(trust.SYSTEM, "another secret than before")
    assert believed(read(record), own=False, call=call) == read(record)
    assert not is_system_call(call)
    assert signed(record, call) is record
    monkeypatch.setenv(trust.SYSTEM, "short")
    trust._warn_of_short_secret.cache_clear()
    assert new_call() is None
    assert is_system_call(call) is None
    assert "at least 16 characters" in caplog.text
    assert "short" not in caplog.text


CHANGES = st.dictionaries(
    st.sampled_from(["code", "recovery", "executed", "tries", "message", "sig", "v", "new"]),
    st.sampled_from(["no", "maybe", "transient", "X", 1, 7, None, "0" * 32]),
    min_size=1,
)


@given(CHANGES)
def test_a_changed_record_is_not_believed(changes):
    """Any change of a signed record makes it a stranger's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(trust.SYSTEM, SECRET)
        call = new_call()
        record = signed(record_of(SENT, "adcp"), call)
        forged = {**record, **changes}
        found = read(forged)
        if forged != record:
            assert believed(found, own=False, call=call) == found


@given(st.text() | st.binary() | st.integers() | st.none() | st.lists(st.integers()))
def test_a_forged_call_is_nobodys(call):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(trust.SYSTEM, SECRET)
        assert is_system_call(call) is False
        assert signed({"v": 1}, call) == {"v": 1}


def test_the_users_word():
    """`own=True` restores what was raised, and nothing else does."""
    record = record_of(SENT, "adcp")
    assert believed(read(record), own=True).code == "RATE_LIMITED"
    assert believed(read(record), own=False).code == "SERVICE_UNAVAILABLE"
    bare = Fault(code="TIMEOUT")
    assert believed(bare, own=True) is bare


def test_an_error_of_our_own_keeps_its_attributes():
    error = FaultError.from_fault(read(record_of(SENT, "adcp")))
    error.result = "the answer"
    found = trusted(error, own=True)
    assert (type(found).__name__, found.result, found.own) == ("RateLimitedError", "the answer", True)
    assert msgspec.structs.replace(found.fault, origin=None).code == "RATE_LIMITED"

"""FaultError, and classes with codes of the user's own."""

import copy
import pickle
import traceback
from enum import IntEnum, StrEnum
from http import HTTPStatus

import pytest

from amends import errors
from amends.core.enums import Actor, Executed, Recovery
from amends.core.exits import exit_code
from amends.core.fault import Fault, Origin
from amends.core.vocabularies import app
from amends.core.vocabulary import row_for
from amends.dialects import decode, encode
from amends.errors import (
    CancelledError,
    ConflictError,
    FaultError,
    NotFoundError,
    RateLimitedError,
    ServiceUnavailableError,
    base,
)
from amends.errors import adcp as adcp_errors
from amends.errors import cli as cli_errors
from amends.errors.base import class_for


@pytest.fixture(autouse=True)
def unregister():
    """Remove the codes and classes that a test registered."""
    rows, user_classes = dict(app._ROWS), dict(base._USER_CLASSES)
    yield
    for kept, now in ((rows, app._ROWS), (user_classes, base._USER_CLASSES)):
        now.clear()
        now.update(kept)


class Sold(FaultError):
    """Everything is sold. Nothing is left."""

    code = "SOLD_OUT"
    recovery = "correctable"
    status = 409
    exit = 6


def test_it_carries_a_fault():
    """Design 3: the constructor takes the fields of a Fault and builds one."""
    error = FaultError(
        "The kettle is cold",
        code="CONFLICT",
        retry_after=30,
        details={"kettle": 1},
        suggestions="Boil it",
        field="kettle",
        trace_id="t",
        status=418,
        recovery="terminal",
    )
    assert error.fault == Fault(
        code="CONFLICT",
        message="The kettle is cold",
        retry_after=30,
        details={"kettle": 1},
        suggestions=("Boil it",),
        field="kettle",
        trace_id="t",
        status=418,
        recovery=Recovery.TERMINAL,
    )
    assert (error.decision, error.history) == (None, ())


def test_the_default_message_is_the_codes():
    """Without a message the error has the code's message; an empty message is kept, and `str` shows the code."""
    assert RateLimitedError().fault.message == row_for("everyday", "RATE_LIMITED").message
    assert (
        FaultError(code="BAD_REQUEST", vocabulary="http").fault.message
        == row_for("http", "BAD_REQUEST").message
    )
    assert (
        FaultError(code="X", vocabulary="http", status=429).fault.message
        == row_for("http", "RATE_LIMITED").message
    )
    assert (RateLimitedError("").fault.message, str(RateLimitedError(""))) == ("", "RATE_LIMITED")


def test_code_vocabulary_and_message_are_the_faults():
    """R5: `code` of an instance is the fault's code, because clients read `err.code`."""
    error = FaultError("x", code="CONFLICT", vocabulary="cli")
    assert (error.code, error.vocabulary, error.message) == ("CONFLICT", "cli", "x")
    assert FaultError.code == "INTERNAL_ERROR"
    assert Sold("Gone").message == "Gone"


def test_invalid_arguments_raise():
    """House style 3: an invalid argument raises in the constructor."""
    with pytest.raises(TypeError):
        FaultError("x", nonsense=1)
    with pytest.raises(TypeError):
        FaultError(5)
    with pytest.raises(ValueError):
        FaultError("x", recovery="sometimes")
    with pytest.raises(TypeError):
        FaultError("x", headers={"Retry-After": 5})


@pytest.mark.parametrize("status", [0, 200, 204, 302, 399, 600, 999, -1])
def test_a_status_that_is_no_error_is_refused_when_raised(status):
    """A success or redirect is returned, not raised; the message says so."""
    with pytest.raises(ValueError, match="400 to 599"):
        FaultError("x", status=status)
    with pytest.raises(ValueError, match="400 to 599"):
        type("Odd", (FaultError,), {"code": "ODD_STATUS", "status": status})


@pytest.mark.parametrize("wait", [float("nan"), float("inf"), float("-inf"), -1, -0.5, 10**400])
def test_a_wait_that_cannot_be_meant_counts_as_none(wait):
    """A computed wait never replaces the error that it was computed for."""
    assert RateLimitedError("x", retry_after=wait).fault.retry_after is None


def test_a_huge_wait_is_a_year():
    """No reader waits longer, and the number stays one that every format can write."""
    assert RateLimitedError("x", retry_after=1e300).fault.retry_after == 365 * 86400


@pytest.mark.parametrize(
    ("error", "executed"),
    [
        (ServiceUnavailableError("x", retry_after=1), "no"),
        (ServiceUnavailableError("x"), "maybe"),
        (ServiceUnavailableError("x", retry_after=0), "maybe"),
        (ServiceUnavailableError("x", retry_after=1, executed="maybe"), "maybe"),
        (ServiceUnavailableError("x", retry_after=1, recovery="uncertain"), "maybe"),
        (ServiceUnavailableError("x", retry_after=1, status=502), "maybe"),
        (ServiceUnavailableError("x", retry_after=1, intent={"operation": "pay"}), "maybe"),
        (errors.TimeoutError("x", retry_after=1), "maybe"),
        (FaultError("x", retry_after=1, recovery="transient"), "maybe"),
        (CancelledError("x", retry_after=1, recovery="transient"), "maybe"),
        (adcp_errors.ServiceUnavailableError("x", retry_after=1), "no"),
        (ConflictError("x", recovery="transient", retry_after=1), "no"),
    ],
)
def test_a_transient_error_with_a_wait_had_no_effect(error, executed):
    """M3: raised with a wait it invites a repeat, unless `executed=` or one of the exceptions says otherwise."""
    assert error.fault.executed == executed


def test_a_class_that_says_executed_is_believed():
    """M3: `executed` of a class says otherwise, too."""
    cls = type(
        "Slow",
        (FaultError,),
        {"code": "SLOW_LANE", "recovery": "transient", "status": 503, "executed": "maybe"},
    )
    assert cls(retry_after=1).fault.executed == "maybe"


def test_type_and_title_of_a_class():
    """A class states its problem type and title once; an instance may state others."""
    cls = type(
        "Full", (FaultError,), {"code": "HALL_FULL", "type": "urn:hall:full", "title": "The hall is full"}
    )
    assert (cls().fault.type, cls().fault.title) == ("urn:hall:full", "The hall is full")
    assert cls(title="Row 3 is full").fault.title == "Row 3 is full"
    assert encode(cls().fault, "problem")["title"] == "The hall is full"


def test_headers_of_an_error():
    """Headers are kept beside the fault, through copies and pickles."""
    error = NotFoundError("x", headers={"X-Shop": "north"})
    assert error.headers == (("X-Shop", "north"),)
    assert NotFoundError("x", headers=[("A", "1"), ("A", "2")]).headers == (("A", "1"), ("A", "2"))
    assert pickle.loads(pickle.dumps(error)).headers == error.headers
    assert copy.copy(error).headers == error.headers
    assert NotFoundError("x").headers == ()


def test_str_repr_and_args():
    """`str`, `repr` and `args` are derived from the fault."""
    error = RateLimitedError("Slow down")
    assert (str(error), error.args) == ("Slow down", ("Slow down",))
    assert repr(error) == "RateLimitedError('Slow down', code='RATE_LIMITED')"


def test_assigning_details_replaces_them():
    """R10: assigning `details` replaces the fault; the old fault does not change."""
    error = ConflictError("x", details={"a": 1})
    before = error.fault
    error.details = {**error.details, "job": "j"}
    assert (error.details, error.fault.details) == ({"a": 1, "job": "j"}, {"a": 1, "job": "j"})
    assert before.details == {"a": 1}
    error.details = None
    assert encode(error.fault, "arcp").get("details") is None


class Counted(FaultError):
    """A class with its own constructor and attribute."""

    code = "COUNTED"

    def __init__(self, count):
        super().__init__(f"{count} are left", details={"count": count})
        self.count = count


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copies_are_complete(again):
    """House style mistake 9: copies keep notes, history, decision and own attributes, whatever the constructor."""
    error = Counted(3)
    error.add_note("seen at checkout")
    error.history = ("a",)
    error.decision = "d"
    other = again(error)
    assert type(other) is Counted
    assert (other.fault, other.args, other.count) == (error.fault, error.args, 3)
    assert (other.__notes__, other.history, other.decision) == (["seen at checkout"], ("a",), "d")
    other.add_note("and here")
    assert error.__notes__ == ["seen at checkout"]


def test_assigning_details_of_a_copy():
    """R10: assigning details of a copy does not change the original."""
    error = ConflictError("x", details={"a": 1})
    other = copy.copy(error)
    other.details = {"b": 2}
    assert (error.details, other.details) == ({"a": 1}, {"b": 2})


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(code="CONFLICT"), ConflictError),
        (Fault(code="CONFLICT", vocabulary="http"), ConflictError),
        (Fault(code="BAD_REQUEST", vocabulary="http"), FaultError),
        (Fault(code="CONFLICT", vocabulary="adcp"), adcp_errors.ConflictError),
        (Fault(code="CONFLICT", vocabulary="cli"), cli_errors.ConflictError),
        (Fault(code="X_ACME_ODD", vocabulary="adcp"), FaultError),
        (Fault(code="conflict", vocabulary="adcp"), FaultError),
        (Fault(code="FAULT", vocabulary="everyday"), FaultError),
        (Fault(code="ÉTÉ"), FaultError),
        (Fault(code="CONFLICT", vocabulary="nowhere"), FaultError),
        (Fault(code="SOLD_OUT", vocabulary="app"), Sold),
        (Fault(code="UNREGISTERED", vocabulary="app"), FaultError),
    ],
)
def test_from_fault_picks_the_class(fault, expected):
    """Design 3: the class is that of the code in its vocabulary; FaultError if there is none."""
    error = FaultError.from_fault(fault)
    assert type(error) is expected
    assert (error.fault, error.code, error.args) == (fault, fault.code, (fault.message,))


def test_from_fault_keeps_the_fault():
    """The error carries the same fault object, with its origin."""
    fault = Fault(code="CANCELLED", vocabulary="http", origin=Origin("problem"), attempt=3)
    error = FaultError.from_fault(fault)
    assert isinstance(error, CancelledError)
    assert error.fault is fault


def test_defining_a_class_registers_its_code():
    """Design 3: recovery, status and exit come from the class, the message from its docstring."""
    error = Sold()
    assert (error.fault.code, error.fault.vocabulary) == ("SOLD_OUT", "app")
    assert (error.fault.recovery, error.fault.message) == (
        Recovery.CORRECTABLE,
        "Everything is sold. Nothing is left.",
    )
    assert (encode(error.fault, "problem")["status"], exit_code(error.fault)) == (409, 6)
    assert class_for("app", "SOLD_OUT") is Sold
    assert encode(error.fault, "envelope")["error"]["code"] == "SOLD_OUT"


@pytest.mark.parametrize(
    ("recovery", "everyday"),
    [
        ("transient", "SERVICE_UNAVAILABLE"),
        ("correctable", "VALIDATION_ERROR"),
        ("terminal", "PERMISSION_DENIED"),
        ("uncertain", "INTERNAL_ERROR"),
    ],
)
def test_missing_attributes_follow_from_the_recovery(recovery, everyday):
    """The nearest everyday code supplies status, exit, actor and message."""
    cls = type("Own", (FaultError,), {"code": "OWN", "recovery": recovery})
    row, base = row_for("app", "OWN"), row_for("everyday", everyday)
    assert (row.status, row.exit, row.everyday, row.actor) == (base.status, base.exit, everyday, base.actor)
    assert (row.message, cls().fault.message) == (base.message, base.message)
    assert cls().fault.recovery == recovery


def test_a_class_with_a_code_alone_is_terminal():
    """Without a recovery the class is terminal, so it is not retried."""

    class Odd(FaultError):
        code = "ODD_ALONE"

    assert Odd().fault.recovery is Recovery.TERMINAL


def test_every_field_of_a_row_can_be_set():
    """Every field of the code's row can be set by an attribute of the class."""

    class Full(FaultError):
        """Unused, because `message` is set."""

        code = "FULL_CODE"
        recovery = Recovery.TRANSIENT
        everyday = "RATE_LIMITED"
        message = "It is full"
        suggestion = "Come back"
        user_message = "Later, please."
        executed = "no"
        actor = "provider"
        status = 507
        exit = 99
        wait = 2.5

    row = row_for("app", "FULL_CODE")
    assert (row.everyday, row.message, row.suggestion, row.user_message) == (
        "RATE_LIMITED",
        "It is full",
        "Come back",
        "Later, please.",
    )
    assert (row.executed, row.actor, row.status, row.exit, row.wait) == (
        Executed.NO,
        Actor.PROVIDER,
        507,
        99,
        2.5,
    )
    assert Full().fault.message == "It is full"


def test_attributes_may_be_enum_members():
    """A status may be an HTTPStatus, a code a member of a StrEnum; what is written is the plain number and text."""

    class Codes(StrEnum):
        GONE = "EXHIBIT_GONE"

    class Exits(IntEnum):
        GONE = 17

    class ExhibitGone(FaultError):
        """The exhibit is gone"""

        code = Codes.GONE
        recovery = Recovery.CORRECTABLE
        status = HTTPStatus.GONE
        exit = Exits.GONE

    row = row_for("app", "EXHIBIT_GONE")
    assert (row.status, row.exit) == (410, 17)
    assert {type(row.code), type(row.status), type(row.exit)} == {str, int}
    written = encode(ExhibitGone().fault, "problem")
    assert (written["status"], type(written["status"])) == (410, int)
    assert (written["code"], type(written["code"])) == ("EXHIBIT_GONE", str)


def test_a_class_inherits_from_its_parent():
    """Missing attributes come from the parent class, which may be a user's or a generated one."""

    class Parent(FaultError):
        """The parent."""

        code = "PARENT"
        recovery = "transient"
        status = 507
        exit = 98
        wait = 7.0

    class Child(Parent):
        code = "CHILD"
        exit = 97

    row = row_for("app", "CHILD")
    assert (row.recovery, row.status, row.exit, row.wait, row.message) == (
        "transient",
        507,
        97,
        7.0,
        "The parent.",
    )
    assert isinstance(Child(), Parent)

    class Quota(RateLimitedError):
        code = "QUOTA"

    row = row_for("app", "QUOTA")
    assert (row.recovery, row.status, row.everyday) == ("transient", 429, "RATE_LIMITED")


def test_a_base_class_without_a_code():
    """A base class without a code has no row; its subclasses inherit its attributes."""

    class Root(FaultError):
        recovery = "transient"
        status = 507

    class Plain(FaultError):
        pass

    class Leaf(Root):
        code = "LEAF"

    class Other(Plain):
        code = "OTHER"

    row = row_for("app", "LEAF")
    assert (row.recovery, row.status) == ("transient", 507)
    assert row_for("app", "OTHER").recovery is Recovery.TERMINAL
    assert Root().fault.vocabulary == "everyday"


def test_a_second_exception_base():
    """A class that also derives from KeyError is caught as one."""

    class Missing(FaultError, KeyError):
        code = "MISSING_KEY"
        recovery = "correctable"

    with pytest.raises(KeyError):
        raise Missing("no such key")


def test_defining_a_code_again_replaces_it():
    """A second class with the same code replaces the first, as when a module is reloaded."""
    for number in (1, 2):
        cls = type("Again", (FaultError,), {"code": "AGAIN", "exit": 90 + number})
    assert row_for("app", "AGAIN").exit == 92
    assert class_for("app", "AGAIN") is cls


@pytest.mark.parametrize("wrong", [{"recovery": "sometimes"}, {"executed": "perhaps"}, {"actor": "nobody"}])
def test_invalid_attributes_raise_at_definition(wrong):
    """An invalid attribute raises when the class is defined, not when it is raised."""
    with pytest.raises(ValueError):
        type("Wrong", (FaultError,), {"code": "WRONG", **wrong})


@pytest.mark.parametrize("status", ["409", 409.0, True, 200])
def test_a_class_with_a_wrong_status_raises_at_definition(status):
    """A status is a whole number from 400 to 599."""
    with pytest.raises((TypeError, ValueError), match="status is "):
        type("Wrong", (FaultError,), {"code": "WRONG", "status": status})


def test_a_class_with_a_vocabulary_is_not_registered():
    """A class that sets `vocabulary` belongs to that table and adds no row."""
    cls = type("Vendor", (FaultError,), {"code": "X_ACME_ODD", "vocabulary": "adcp"})
    assert cls().fault.vocabulary == "adcp"
    assert "X_ACME_ODD" not in app._ROWS


@pytest.mark.parametrize("dialect", ["problem", "envelope"])
def test_a_decoded_user_code_gets_its_class(dialect):
    """S1 and S2 allow any code, so a received code that this program registered gets its class."""
    received = decode(encode(Sold("The last one is gone").fault, dialect), dialect)
    error = FaultError.from_fault(received)
    assert type(error) is Sold
    assert (error.fault, str(error)) == (received, "The last one is gone")


def test_a_user_code_does_not_replace_a_published_one():
    """A code in HTTP's table keeps its class, and closed vocabularies ignore registered codes."""

    class Missing(FaultError):
        code = "NOT_FOUND"

    assert class_for("app", "NOT_FOUND") is Missing
    assert class_for("http", "NOT_FOUND") is NotFoundError
    assert class_for("task", "SOLD_OUT") is FaultError


def test_the_text_of_a_received_error_is_stripped_and_bounded():
    """A20: str, repr and args of a received error have no control characters and at most 256 bytes; `.fault` has all."""
    message = "\x1b[31mpay\u202e now\n" + "x" * 100_000 + "\ud800"
    received = FaultError.from_fault(
        Fault(code="CONFLICT", vocabulary="adcp", message=message, origin=Origin("adcp"))
    )
    for text in (str(received), *received.args):
        assert text.startswith("[31mpay nowxxx")
        assert len(text.encode()) <= 256
    assert len(repr(received)) < 400
    assert "\x1b" not in "".join(traceback.format_exception(received))
    assert received.fault.message == received.message == message
    assert str(pickle.loads(pickle.dumps(received))) == str(received)
    unnamed = FaultError.from_fault(Fault(code="\x07BEL", vocabulary="adcp", origin=Origin("adcp")))
    assert str(unnamed) == "BEL"
    own = FaultError("Line one\nline two " + "x" * 1000)
    assert str(own) == own.fault.message


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("suggestion", "ConflictError() has no option 'suggestion'; use suggestions"),
        ("detail", "ConflictError() has no option 'detail'; use details"),
        ("header", "ConflictError() has no option 'header'; use headers"),
        ("zzz", "ConflictError() has no option 'zzz'; there are actor, attempt, code, details"),
    ],
)
def test_an_option_that_errors_do_not_have(option, message):
    """The message names the class, and the option that was meant."""
    with pytest.raises(TypeError) as raised:
        ConflictError("It changed", **{option: "x"})
    assert str(raised.value).startswith(message)

"""FaultError, and users' own codes as classes."""

import copy
import pickle

import pytest

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
    classes,
)
from amends.errors import adcp as adcp_errors
from amends.errors import cli as cli_errors
from amends.errors.classes import class_for


@pytest.fixture(autouse=True)
def forget():
    """Remove codes that a test defined."""
    rows, own = dict(app._ROWS), dict(classes._OWN)
    yield
    for kept, now in ((rows, app._ROWS), (own, classes._OWN)):
        now.clear()
        now.update(kept)


class Sold(FaultError):
    """Everything is sold. Nothing is left."""

    code = "SOLD_OUT"
    recovery = "correctable"
    status = 409
    exit = 6


def test_it_carries_a_fault():
    """Design 3: the signature, and any other field of a Fault."""
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
    """Without a message the code's is used; an empty message is kept, and str() gives the code."""
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


def test_an_instance_has_the_code_of_its_fault():
    """R5: clients read err.code, which is that of the fault and not of the class."""
    error = FaultError("x", code="CONFLICT", vocabulary="cli")
    assert (error.code, error.vocabulary, error.message) == ("CONFLICT", "cli", "x")
    assert FaultError.code == "INTERNAL_ERROR"
    assert Sold("Gone").message == "Gone"


def test_wrong_arguments_raise():
    """House style 3: a producer's mistake raises in the producer."""
    with pytest.raises(TypeError):
        FaultError("x", nonsense=1)
    with pytest.raises(TypeError):
        FaultError(5)
    with pytest.raises(ValueError):
        FaultError("x", recovery="sometimes")
    with pytest.raises(ValueError):
        FaultError("x", retry_after=float("nan"))


def test_str_and_repr():
    """They are derived from the attributes."""
    error = RateLimitedError("Slow down")
    assert (str(error), error.args) == ("Slow down", ("Slow down",))
    assert repr(error) == "RateLimitedError('Slow down', code='RATE_LIMITED')"


def test_assigning_details_replaces_them():
    """R10: context can be added before raising again; the fault is replaced."""
    error = ConflictError("x", details={"a": 1})
    before = error.fault
    error.details = {**error.details, "job": "j"}
    assert (error.details, error.fault.details) == ({"a": 1, "job": "j"}, {"a": 1, "job": "j"})
    assert before.details == {"a": 1}
    error.details = None
    assert encode(error.fault, "arcp").get("details") is None


class Counted(FaultError):
    """An error with its own constructor and attribute."""

    code = "COUNTED"

    def __init__(self, count):
        super().__init__(f"{count} are left", details={"count": count})
        self.count = count


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_everything_survives_pickling_and_copying(again):
    """House style mistake 9: notes, decision, history and own attributes, with any constructor."""
    error = Counted(3)
    error.add_note("seen at the till")
    error.history = ("a",)
    error.decision = "d"
    other = again(error)
    assert type(other) is Counted
    assert (other.fault, other.args, other.count) == (error.fault, error.args, 3)
    assert (other.__notes__, other.history, other.decision) == (["seen at the till"], ("a",), "d")
    other.add_note("and here")
    assert error.__notes__ == ["seen at the till"]


def test_a_copy_has_its_own_details():
    """R10: assigning to a copy does not change the original."""
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
        (Fault(code="UNHEARD_OF", vocabulary="app"), FaultError),
    ],
)
def test_from_a_fault(fault, expected):
    """Design 3: the class of the code in its vocabulary; for a code without one, the base class."""
    error = FaultError.from_fault(fault)
    assert type(error) is expected
    assert (error.fault, error.code, error.args) == (fault, fault.code, (fault.message,))


def test_from_a_fault_that_came_from_outside():
    """The fault is kept unchanged, with its origin."""
    fault = Fault(code="CANCELLED", vocabulary="http", origin=Origin("problem"), attempt=3)
    error = FaultError.from_fault(fault)
    assert isinstance(error, CancelledError)
    assert error.fault is fault


def test_a_users_own_code_is_one_class():
    """Design 3: registered by its definition; recovery, status, exit, and the message from the docstring."""
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
def test_missing_facts_follow_from_the_recovery(recovery, everyday):
    """Status, exit and actor are those of the nearest everyday code."""
    cls = type("Own", (FaultError,), {"code": "OWN", "recovery": recovery})
    row, base = row_for("app", "OWN"), row_for("everyday", everyday)
    assert (row.status, row.exit, row.everyday, row.actor) == (base.status, base.exit, everyday, base.actor)
    assert (row.message, cls().fault.message) == (base.message, base.message)
    assert cls().fault.recovery == recovery


def test_a_code_alone_is_terminal():
    """Without a recovery class a code is not retried."""

    class Odd(FaultError):
        code = "ODD_ALONE"

    assert Odd().fault.recovery is Recovery.TERMINAL


def test_every_fact_is_an_attribute():
    """A class can define every fact of a row."""

    class Full(FaultError):
        """Not this line."""

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


def test_a_class_inherits_the_facts_of_its_parent():
    """The parent may be a user's class or a generated one."""

    class Parent(FaultError):
        """Above."""

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
        "Above.",
    )
    assert isinstance(Child(), Parent)

    class Quota(RateLimitedError):
        code = "QUOTA"

    row = row_for("app", "QUOTA")
    assert (row.recovery, row.status, row.everyday) == ("transient", 429, "RATE_LIMITED")


def test_the_attributes_of_a_base_class_without_a_code_are_inherited():
    """An application's base class has no row; its attributes count for its subclasses."""

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


def test_mixed_with_other_exceptions():
    """An existing except clause still catches it."""

    class Missing(FaultError, KeyError):
        code = "MISSING_KEY"
        recovery = "correctable"

    with pytest.raises(KeyError):
        raise Missing("no such key")


def test_defining_a_code_again_replaces_it():
    """As reloading a module does."""
    for number in (1, 2):
        cls = type("Again", (FaultError,), {"code": "AGAIN", "exit": 90 + number})
    assert row_for("app", "AGAIN").exit == 92
    assert class_for("app", "AGAIN") is cls


@pytest.mark.parametrize("wrong", [{"recovery": "sometimes"}, {"executed": "perhaps"}, {"actor": "nobody"}])
def test_a_wrong_class_definition_raises(wrong):
    """It raises at the definition and not when the error is raised."""
    with pytest.raises(ValueError):
        type("Wrong", (FaultError,), {"code": "WRONG", **wrong})


def test_another_vocabulary_may_be_named():
    """A class that names its vocabulary is not registered: the vocabulary has the row."""
    cls = type("Vendor", (FaultError,), {"code": "X_ACME_ODD", "vocabulary": "adcp"})
    assert cls().fault.vocabulary == "adcp"
    assert "X_ACME_ODD" not in app._ROWS


@pytest.mark.parametrize("dialect", ["problem", "envelope"])
def test_a_received_own_code_has_its_own_class(dialect):
    """S1 and S2 allow any code, so a client that defines the class can catch it by its name."""
    received = decode(encode(Sold("The last one is gone").fault, dialect), dialect)
    error = FaultError.from_fault(received)
    assert type(error) is Sold
    assert (error.fault, str(error)) == (received, "The last one is gone")


def test_an_own_code_does_not_replace_a_published_one():
    """A code of HTTP keeps HTTP's class, and closed vocabularies have no codes of others."""

    class Missing(FaultError):
        code = "NOT_FOUND"

    assert class_for("app", "NOT_FOUND") is Missing
    assert class_for("http", "NOT_FOUND") is NotFoundError
    assert class_for("task", "SOLD_OUT") is FaultError

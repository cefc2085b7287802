"""What a client raises when recovery gave up."""

import pytest

from amends import FaultError
from amends.http.raising import check_raises, original_of, return_or_raise


def test_an_error_without_a_response_is_raised():
    """With `raises="nothing"` an error without a response raises its cause, or itself."""
    error = FaultError(code="CONFLICT")
    with pytest.raises(FaultError) as caught:
        return_or_raise(error, "nothing")
    assert caught.value is error
    error.__cause__ = cause = TimeoutError()
    with pytest.raises(TimeoutError) as late:
        return_or_raise(error, "nothing")
    assert late.value is cause


def test_the_cause_below_typed_errors_is_the_librarys():
    """The exception of the library is found below the typed errors that were made from it."""
    cause = ConnectionError()
    inner, outer = FaultError(code="CONFLICT"), FaultError(code="CONFLICT")
    inner.__cause__, outer.__cause__ = cause, inner
    assert original_of(outer) is cause
    assert cause.fault is outer.fault
    assert cause.__notes__ == ["amends: CONFLICT"]
    with pytest.raises(ConnectionError):
        return_or_raise(outer, "original")
    with pytest.raises(FaultError):
        return_or_raise(FaultError(code="CONFLICT"), "original")


def test_unknown_values_are_refused():
    """The option has three values."""
    with pytest.raises(ValueError, match="fault"):
        check_raises("return")


def test_a_failed_response_raises_what_its_library_raises():
    """With the fault, the decision and the history attached, and a note for the traceback."""

    class Response:
        def __init__(self, error):
            self.error = error

        def raise_for_status(self):
            if self.error is not None:
                raise self.error

    failed = OSError("404")
    error = FaultError(code="NOT_FOUND")
    error.response = Response(failed)
    assert original_of(error) is failed
    assert (failed.fault, failed.decision, failed.history) == (error.fault, error.decision, error.history)
    assert failed.__notes__ == ["amends: NOT_FOUND"]
    error.response = Response(None)
    assert original_of(error) is None


def test_the_cause_is_looked_for_below_sixteen_errors():
    """A chain may contain itself, so the search ends."""
    for depth, found in ((15, True), (16, False)):
        error: BaseException = ConnectionError()
        cause = error
        for _ in range(depth):
            outer = FaultError(code="CONFLICT")
            outer.__cause__, error = error, outer
        assert (original_of(error) is cause) is found

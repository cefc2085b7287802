"""The codes an AdCP producer may send (A15), and the check of its details (A14)."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from amends import Fault, FaultError, encode, for_llm, translate
from amends.core.crosswalk import transfer
from amends.core.fault import Origin
from amends.errors import adcp


def test_a_producer_uses_standard_or_vendor_codes():
    """A15: a code outside the table must have the form of a vendor code; otherwise a class with it is refused."""
    assert (
        FaultError("x", code="X_SHOP_SOLD_OUT", vocabulary="adcp", recovery="correctable").fault.code
        == "X_SHOP_SOLD_OUT"
    )
    with pytest.raises(ValueError, match="X_ACME_"):
        type("SoldOut", (FaultError,), {"code": "SOLD_OUT", "vocabulary": "adcp"})
    type("SoldOut", (FaultError,), {"code": "X_SHOP_SOLD_OUT", "vocabulary": "adcp"})


@pytest.mark.parametrize(
    ("recovery", "sent"),
    [
        ("correctable", "INVALID_REQUEST"),
        ("transient", "SERVICE_UNAVAILABLE"),
        ("terminal", "CONFIGURATION_ERROR"),
    ],
)
def test_a_code_chosen_at_run_time(recovery, sent, caplog):
    """A15: it gets the prefix; without one, a published code of the same recovery is sent and the log says so."""
    fault = FaultError("It is gone", code="SOLD_OUT", vocabulary="adcp", recovery=recovery).fault
    prefixed = transfer(fault, "adcp", prefix="ACME")
    assert encode(prefixed, "adcp")["code"] == "X_ACME_SOLD_OUT"
    assert caplog.text == ""
    written = encode(replace(fault, errors=(fault,)), "adcp")
    assert (written["code"], written["recovery"], written["errors"][0]["code"]) == (sent, recovery, sent)
    assert "code_prefix=" in caplog.text
    caplog.clear()
    received = replace(fault, origin=Origin("adcp"))
    assert encode(received, "adcp")["code"] == transfer(received, "adcp", prefix="ACME").code == "SOLD_OUT"
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("recovery", "sent"), [("correctable", "INVALID_REQUEST"), ("terminal", "CONFIGURATION_ERROR")]
)
def test_a_code_without_a_vocabulary(recovery, sent):
    """A15: so does a code that no class and no table has, in an error that names no vocabulary."""
    fault = FaultError("It is gone", code="SOLD_OUT_NOW", recovery=recovery).fault
    assert transfer(fault, "adcp", prefix="ACME").code == "X_ACME_SOLD_OUT_NOW"
    assert transfer(fault, "adcp").code == sent
    received = replace(fault, origin=Origin("problem"))
    assert transfer(received, "adcp", prefix="ACME").code == "SERVICE_UNAVAILABLE"


def test_a_code_of_a_class_is_known_everywhere():
    """Also where it is raised by its name: with the class's recovery, status, suggestion and code in AdCP."""

    class GoneForGood(FaultError):
        """It is gone."""

        code = "GONE_FOR_GOOD"
        recovery = "correctable"
        status = 410
        adcp_code = "X_SHOP_GONE"
        suggestion = "Choose another seat"

    fault = FaultError(code="GONE_FOR_GOOD").fault
    assert fault == GoneForGood().fault
    assert transfer(fault, "adcp").code == "X_SHOP_GONE"
    assert "Choose another seat" in for_llm(fault)
    assert FaultError(code="NOT_FOUND").fault.vocabulary == "everyday"


def test_a_user_code_can_have_a_vendor_code():
    """A15: translation into AdCP uses the `adcp_code` of a user's class."""

    class SoldOut(FaultError):
        """Sold out."""

        code = "SOLD_OUT"
        recovery = "correctable"
        adcp_code = "X_SHOP_SOLD_OUT"

    translated, _ = translate(SoldOut().fault, to="adcp")
    assert (translated.code, translated.recovery) == ("X_SHOP_SOLD_OUT", "correctable")
    with pytest.raises(ValueError, match="X_"):
        type("Wrong", (FaultError,), {"code": "WRONG", "adcp_code": "SHOP_WRONG"})


def test_details_of_a_producer_are_checked(caplog):
    """A14: encoding logs wrong types in a producer's own details, but not in received ones."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        encode(adcp.RateLimitedError("x", details={"limit": "many"}).fault, "adcp")
    assert "RATE_LIMITED" in caplog.text
    caplog.clear()
    received = Fault(code="RATE_LIMITED", vocabulary="adcp", details={"limit": "many"}, origin=Origin("adcp"))
    assert encode(received, "adcp")["details"] == {"limit": "many"}
    assert caplog.text == ""

"""The codes an AdCP producer may send (A15), and the check of its details (A14)."""

from __future__ import annotations

import logging

import pytest

from amends import Fault, FaultError, encode, translate
from amends.core.fault import Origin
from amends.errors import adcp


def test_a_producer_uses_standard_or_vendor_codes():
    """A15: a code outside the table must have the form of a vendor code; otherwise the constructor raises."""
    assert (
        FaultError("x", code="X_SHOP_SOLD_OUT", vocabulary="adcp", recovery="correctable").fault.code
        == "X_SHOP_SOLD_OUT"
    )
    with pytest.raises(ValueError, match="X_"):
        FaultError("x", code="SOLD_OUT", vocabulary="adcp")


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

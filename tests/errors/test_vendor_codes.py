"""Codes that a producer may send in AdCP (A15), and warnings about its details (A14)."""

from __future__ import annotations

import logging

import pytest

from amends import Fault, FaultError, encode, translate
from amends.core.fault import Origin
from amends.errors import adcp


def test_a_producer_uses_standard_or_vendor_codes():
    """A15: a code outside the table must have the form of a vendor's; the message says so."""
    assert (
        FaultError("x", code="X_SHOP_SOLD_OUT", vocabulary="adcp", recovery="correctable").fault.code
        == "X_SHOP_SOLD_OUT"
    )
    with pytest.raises(ValueError, match="X_"):
        FaultError("x", code="SOLD_OUT", vocabulary="adcp")


def test_an_own_code_can_have_a_vendor_name():
    """A15: translation into AdCP uses the vendor code that the class defines."""

    class SoldOut(FaultError):
        """Sold out."""

        code = "SOLD_OUT"
        recovery = "correctable"
        adcp_code = "X_SHOP_SOLD_OUT"

    told, _ = translate(SoldOut().fault, to="adcp")
    assert (told.code, told.recovery) == ("X_SHOP_SOLD_OUT", "correctable")
    with pytest.raises(ValueError, match="X_"):
        type("Wrong", (FaultError,), {"code": "WRONG", "adcp_code": "SHOP_WRONG"})


def test_own_details_are_checked(caplog):
    """A14: wrong types and sizes are logged for faults made here, not for received ones."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        encode(adcp.RateLimitedError("x", details={"limit": "many"}).fault, "adcp")
    assert "RATE_LIMITED" in caplog.text
    caplog.clear()
    received = Fault(code="RATE_LIMITED", vocabulary="adcp", details={"limit": "many"}, origin=Origin("adcp"))
    assert encode(received, "adcp")["details"] == {"limit": "many"}
    assert caplog.text == ""

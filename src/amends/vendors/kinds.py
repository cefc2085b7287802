"""The kinds of failures that the vendor tables distinguish."""

from __future__ import annotations

from amends.core.enums import Actor, Executed, Recovery
from amends.vendors.model import Kind

__all__ = [
    "ABORTED",
    "BAD_KEY",
    "CANCELLED",
    "CARD",
    "CONFLICT",
    "CONTEXT",
    "DISABLED",
    "EXPIRED",
    "FORBIDDEN",
    "INTERNAL",
    "INVALID",
    "IN_PROGRESS",
    "LOST",
    "NOT_FOUND",
    "NOT_READY",
    "OVERLOADED",
    "PAY",
    "PERMANENT",
    "QUOTA",
    "RATE",
    "REFUSED",
    "SIGN_IN",
    "STEP_UP",
    "TIMEOUT",
    "TOO_LARGE",
    "UNAVAILABLE",
]

_TRANSIENT, _CORRECTABLE, _TERMINAL = Recovery.TRANSIENT, Recovery.CORRECTABLE, Recovery.TERMINAL
_NO, _MAYBE = Executed.NO, Executed.MAYBE
_CALLER, _USER, _OPERATOR = Actor.CALLER, Actor.USER, Actor.OPERATOR

RATE = Kind("RATE_LIMITED", _TRANSIENT, _CALLER, _NO)
"""Too many calls in a short time."""
QUOTA = Kind("QUOTA_EXCEEDED", _TERMINAL, _USER, _NO)
"""A quota of a long period, credit or a spending limit is used up."""
OVERLOADED = Kind("OVERLOADED", _TRANSIENT)
UNAVAILABLE = Kind("SERVICE_UNAVAILABLE", _TRANSIENT)
LOST = Kind("SERVICE_UNAVAILABLE", _TRANSIENT, _CALLER, _MAYBE)
"""The connection ended; what was sent on it may have had its effect."""
CONTEXT = Kind("CONTEXT_TOO_LONG", _CORRECTABLE, _CALLER, _NO)
TOO_LARGE = Kind("CONTENT_TOO_LARGE", _CORRECTABLE, _CALLER, _NO)
"""The request can never fit: its size, or the amount asked for, is above a fixed limit."""
REFUSED = Kind("CONTENT_REFUSED", _CORRECTABLE, _CALLER, _NO)
BAD_KEY = Kind("UNAUTHENTICATED", _CORRECTABLE, _CALLER, _NO)
"""A key or token that was never valid here, or is missing."""
EXPIRED = Kind("UNAUTHENTICATED", _CORRECTABLE, _CALLER, _NO)
"""A token that has to be refreshed."""
SIGN_IN = Kind("UNAUTHENTICATED", _CORRECTABLE, _USER, _NO)
"""A person has to sign in or consent again."""
STEP_UP = Kind("PERMISSION_DENIED", _CORRECTABLE, _USER, _NO)
"""The token lacks a scope or a claim; with another token the same call succeeds."""
FORBIDDEN = Kind("PERMISSION_DENIED", _TERMINAL, _USER, _NO)
DISABLED = Kind("PERMISSION_DENIED", _TERMINAL, _USER, _NO)
"""The account, project or feature is switched off; its owner has to act."""
NOT_FOUND = Kind("NOT_FOUND", _CORRECTABLE, _CALLER, _NO)
INVALID = Kind("VALIDATION_ERROR", _CORRECTABLE, _CALLER, _NO)
CONFLICT = Kind("CONFLICT", _CORRECTABLE, _CALLER, _NO)
IN_PROGRESS = Kind("CONFLICT", _TRANSIENT, _CALLER, _NO)
"""Another operation or the same key is in progress; the same call succeeds afterwards."""
ABORTED = Kind("CONFLICT", _TRANSIENT, _CALLER, _NO)
"""A concurrent change won; the sequence is repeated from its beginning."""
NOT_READY = Kind("NOT_READY", _TRANSIENT, _CALLER, _NO)
INTERNAL = Kind("INTERNAL_ERROR", Recovery.UNCERTAIN, _OPERATOR, _MAYBE)
TIMEOUT = Kind("TIMEOUT", _TRANSIENT, _CALLER, _MAYBE)
CANCELLED = Kind("CANCELLED", _TERMINAL, _CALLER, _MAYBE)
PERMANENT = Kind("SERVICE_UNAVAILABLE", _TERMINAL, _OPERATOR, _NO)
"""Permanent, though its status is that of a transient failure."""
PAY = Kind("PAYMENT_REQUIRED", _CORRECTABLE, _CALLER, _NO)
"""The response says how to pay; the call is then sent again with the payment."""
CARD = Kind("PAYMENT_REQUIRED", _CORRECTABLE, _USER, _NO)
"""A card or another means of payment was declined; another one may work."""

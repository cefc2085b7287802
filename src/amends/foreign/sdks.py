"""
Exceptions of the SDKs of services, as responses: status, headers and body from their attributes.

An SDK keeps the response in attributes of its own, sometimes without the response object: during a stream there is only
the error object of an event. The attributes are read by name and nothing is imported. What is found is read as `extract`
reads a response of that vendor; the text of the exception and of the body is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from amends.carriers.extraction import examine
from amends.carriers.objects import read_object
from amends.core.enums import Executed
from amends.core.executed import executed_as_proved, executed_by_status
from amends.core.fault import Fault
from amends.core.wire import plain
from amends.foreign.attributes import body_of, headers_of, status_of, usual
from amends.foreign.converted import litellm_response
from amends.foreign.safe_attr import attribute
from amends.foreign.sdk_names import sdk_of
from amends.foreign.without_text import without_text
from amends.proof import Claim, Proof, rests_on
from amends.vendors.registry import has_hosts, vendor_of_origin

__all__ = ["sdk_fault"]


def sdk_fault(exc: BaseException, vendor: str | None = None) -> Fault | None:
    """Return the fault of an SDK's exception by its attributes, or None; `vendor`: for SDKs that many services share."""
    found = sdk_of(type(exc))
    if found is None:
        return None
    root, own = found
    make = _SPECIAL.get(root, usual)
    response = make(exc)
    if response is None:
        return None
    via = "http" if "status" in response else None
    document = response if via else response["body"]
    named = own or vendor or _called_service(exc)
    fault = examine(plain(document), via, vendor=named, in_success=root in _IN_SUCCESS)[1].fault
    if fault is None:
        return None
    if vendor is None and own is not None and fault.executed is Executed.NO and _is_elsewhere(exc, own):
        status = fault.status if via else None
        executed = executed_as_proved(fault.executed, executed_by_status(status), known=False)
        fault = replace(fault, executed=executed)
    return without_text(fault)


@rests_on(Claim.OURS, Proof.HOST)
def _is_elsewhere(exc: BaseException, vendor: str) -> bool:
    """
    Return whether the request went to a host that is not the vendor's: an SDK can be given the address of another service.

    False if the exception does not say where it went, or the vendor has no hosts of its own.
    """
    origin = _called_origin(exc)
    return origin is not None and has_hosts(vendor) and vendor_of_origin(origin) != vendor


@rests_on(Claim.OURS, Proof.HOST)
def _called_service(exc: BaseException) -> str | None:
    """Return the service whose host the request went to; None if it is not known. An SDK that many services share does not say it."""
    origin = _called_origin(exc)
    return None if origin is None else vendor_of_origin(origin)


def _called_origin(exc: BaseException) -> str | None:
    """Return the origin that the SDK's request went to, if the exception keeps the address."""
    response = attribute(exc, "response")
    holders = (attribute(exc, "request"), response, attribute(response, "request"))
    url = next((found for each in holders if (found := attribute(each, "url")) is not None), None)
    if url is None:
        return None
    scheme, _, rest = str(url).partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


_IN_SUCCESS = frozenset({"slack_sdk", "gql", "simple_salesforce", "elasticsearch"})


def _google(exc: BaseException) -> dict[str, object] | None:
    """google.api_core: the reason and its metadata; the details are protobuf messages."""
    code = attribute(exc, "code")
    status = int(code) if isinstance(code, int) else None
    if status is None:
        return None
    sent = body_of(exc) if attribute(exc, "response") is not None else None
    if isinstance(sent, (str, bytes)):
        # Over REST the response is kept, and says more than the class: ABORTED becomes Conflict.
        return {"status": status, "headers": headers_of(exc), "body": sent}
    details: list[object] = []
    reason, metadata = attribute(exc, "reason"), attribute(exc, "metadata")
    if isinstance(reason, str):
        details.append(
            {"reason": reason, "metadata": dict(metadata) if isinstance(metadata, Mapping) else {}}
        )
    given = attribute(exc, "details")
    for item in given[:_MAX_DETAILS] if isinstance(given, (list, tuple)) else ():
        delay = attribute(item, "retry_delay")
        seconds = attribute(delay, "seconds")
        document = item if isinstance(item, Mapping) else read_object(item)[1]
        if isinstance(seconds, int) and not isinstance(seconds, bool):
            details.append({"retryDelay": {"seconds": seconds, "nanos": attribute(delay, "nanos") or 0}})
        elif isinstance(document, Mapping):
            details.append(document)
    name = attribute(attribute(exc, "grpc_status_code"), "name")
    if not isinstance(name, str):
        # Without grpc installed there is only the class: ResourceExhausted is RESOURCE_EXHAUSTED.
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(exc).__name__).upper()
    errors = attribute(exc, "errors")
    error: dict[str, object] = {
        "code": status,
        "status": name,
        "details": details,
    }
    if isinstance(errors, (list, tuple)):
        error["errors"] = [item for item in errors if isinstance(item, Mapping)]
    return {"status": status, "headers": headers_of(exc), "body": {"error": error}}


def _elasticsearch(exc: BaseException) -> dict[str, object] | None:
    """elasticsearch: the helper for bulk requests keeps the items that failed."""
    items = attribute(exc, "errors")
    if type(exc).__name__ == "BulkIndexError" and isinstance(items, list):
        return {"status": 200, "headers": {}, "body": {"errors": True, "items": items[:_MAX_ITEMS]}}
    return usual(exc)


def _azure(exc: BaseException) -> dict[str, object] | None:
    """azure.core: the OData error object; Storage adds its code as an attribute."""
    status = status_of(exc)
    if status is None:
        return None
    error = attribute(exc, "error")
    word = attribute(exc, "error_code") or attribute(error, "code")
    if word is None:
        # Table storage wraps its error object in another name, which azure-core does not know.
        return usual(exc)
    inner = attribute(error, "innererror")
    given = attribute(error, "details")
    codes = [attribute(item, "code") for item in given[:8]] if isinstance(given, list) else []
    body = {
        "error": {
            "code": str(attribute(word, "value") or word),
            "innererror": inner if isinstance(inner, Mapping) else None,
            "target": attribute(error, "target"),
            "details": [{"code": code} for code in codes if isinstance(code, str)],
        }
    }
    return {"status": status, "headers": headers_of(exc), "body": body}


def _twilio(exc: BaseException) -> dict[str, object] | None:
    status, code = status_of(exc), attribute(exc, "code")
    if status is None:
        return None
    return {
        "status": status,
        "headers": {},
        "body": {"code": code, "message": "", "more_info": "", "status": status},
    }


def _telegram(exc: BaseException) -> dict[str, object] | None:
    wait = attribute(exc, "_retry_after") or attribute(exc, "retry_after")
    seconds = attribute(wait, "total_seconds")
    amount = seconds() if callable(seconds) else wait
    if not isinstance(amount, (int, float)) or isinstance(amount, bool):
        return None
    return {
        "status": 429,
        "headers": {},
        "body": {"ok": False, "error_code": 429, "parameters": {"retry_after": amount}},
    }


def _databricks(exc: BaseException) -> dict[str, object] | None:
    word = attribute(exc, "error_code")
    if not isinstance(word, str):
        return None
    return {"body": {"error_code": word, "retry_after": attribute(exc, "retry_after_secs")}}


def _postgrest(exc: BaseException) -> dict[str, object] | None:
    """postgrest: the members of the body, and neither a status nor the response."""
    word = attribute(exc, "code")
    return {"body": {"code": word, "message": ""}} if isinstance(word, str) else usual(exc)


def _authlib(exc: BaseException) -> dict[str, object] | None:
    """Authlib: the error of RFC 6749. Its classes for servers have a status of what the application answers."""
    word = attribute(exc, "error")
    return {"body": {"error": word, "error_description": ""}} if isinstance(word, str) else None


_MAX_DETAILS = 16
_MAX_ITEMS = 1000

_SPECIAL: dict[str, Callable[[BaseException], dict[str, object] | None]] = {
    "google.api_core": _google,
    "litellm": litellm_response,
    "azure": _azure,
    "elasticsearch": _elasticsearch,
    "twilio": _twilio,
    "telegram": _telegram,
    "databricks": _databricks,
    "postgrest": _postgrest,
    "authlib": _authlib,
}

"""
XML error documents, and the pages of an edge.

Regular expressions over the first part of the text, not an XML parser: error documents are small and flat, and a parser
would have to be protected against hostile input. Only elements that hold code words are read.
"""

from __future__ import annotations

import re

from amends.vendors.evidence import Evidence, token

__all__ = ["collect", "is_error_document", "is_soap_fault", "part_failed"]

_MAX = 65536

_CODE = re.compile(
    r"<(?:\w+:)?(exceptionCode|errorCode|faultcode|ErrorCode|error_code|Code|code|reason)(?:\s[^<>]*)?>\s*([^<>]{1,96}?)\s*<"
)
_MESSAGE = re.compile(
    r"<(?:\w+:)?(?:Message|message|faultstring|exceptionMessage)(?:\s[^<>]*)?>\s*([^<>]{1,1000}?)\s*<"
)
_REQUEST = re.compile(r"<(?:RequestId|RequestID|requestId|x-ms-request-id)>\s*([^<>]{1,128}?)\s*<")
_ATTRIBUTE = re.compile(r"<Error code=[\"'](\w{1,32})[\"']")
"""QuickBooks: <Fault type="SERVICE"><Error code="3001">."""
_EDGE = re.compile(r"cf-error-code[\"']?\s*>\s*(\d{3,4})\s*<|^\s*error code: (\d{3,4})\s*$")
_CALLERS = frozenset({"Client", "Sender"})
_RANKS = {
    "exceptionCode": 10,
    "errorCode": 12,
    "ErrorCode": 12,
    "error_code": 12,
    "reason": 20,
    "faultcode": 24,
}


def collect(text: str, evidence: Evidence) -> str | None:
    """Add what a text says to the evidence, and return the vendor that its form shows, or None."""
    text = text[:_MAX]
    edge = _EDGE.search(text)
    if edge is not None:
        evidence.ranked.append((5, edge[1] or edge[2]))
        return "cloudflare"
    if "<" not in text[:64]:
        return None
    lowered = text[:256].lower()
    if "<html" in lowered or "<!doctype html" in lowered:
        return None
    for name, value in _CODE.findall(text)[:8]:
        # SOAP puts a prefix before the code word: sf:INVALID_LOGIN, soap:Client.
        word = token(value.rpartition(":")[2])
        if word is not None:
            evidence.ranked.append((_RANKS.get(name, 30), word))
            if name == "faultcode" and word.partition(".")[0] in _CALLERS:
                # SOAP sends the caller's mistakes under 500, too.
                evidence.ranked += [(25, part) for part in word.split(".")[:0:-1]]
                evidence.ranked.append((90, "@soap-caller"))
    for value in _ATTRIBUTE.findall(text)[:8]:
        evidence.ranked.append((12, value))
    message = _MESSAGE.search(text)
    if message is not None:
        evidence.message = message[1]
    request = _REQUEST.search(text)
    if request is not None:
        evidence.trace_id = request[1]
    if evidence.ranked and ("<Error>" in text or "<ErrorResponse" in text or "<Response><Errors>" in text):
        return "aws" if "RequestId" in text or "RequestID" in text or "HostId" in text else None
    return None


def is_error_document(text: str) -> bool:
    """
    Return whether a text is an XML error document, as S3 also sends inside a successful answer.

    >>> is_error_document("<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>")
    True
    """
    head = re.sub(r"^\s*<\?xml[^<>]{0,200}\?>", "", text[:1024]).lstrip()
    return head.startswith(("<Error>", "<Error ", "<ErrorResponse"))


_SOAP = re.compile(r"<(?:[\w-]{1,32}:)?Body(?:\s[^<>]{0,500})?>\s{0,200}<(?:[\w-]{1,32}:)?Fault[\s>]")


def is_soap_fault(text: str) -> bool:
    """
    Return whether a text is a SOAP envelope with a fault, which some services send with status 200.

    >>> is_soap_fault("<s:Envelope><s:Body><s:Fault><faultcode>s:Client</faultcode></s:Fault></s:Body></s:Envelope>")
    True
    """
    head = text[:_HEAD]
    return head.lstrip()[:1] == "<" and "Envelope" in head and _SOAP.search(head) is not None


_HEAD = 8192


def part_failed(text: str) -> list[str]:
    """Return the error documents inside the answer to a deletion of several objects (S3)."""
    head = re.sub(r"^\s*<\?xml[^<>]{0,200}\?>", "", text[:1024]).lstrip()
    if not head.startswith("<DeleteResult"):
        return []
    parts = text[:_MAX].split("</Error>")[:-1]
    return [f"<Error>{part.rpartition('<Error>')[2]}</Error>" for part in parts[:1000] if "<Error>" in part]

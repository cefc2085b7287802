"""Failures inside successful answers of services that are known by their host, and answers of theirs that are none."""

import pytest

from amends import extract
from amends.vendors import check, hosts
from amends.vendors.registry import _BOOK, vendor_of_origin

# (origin, body, code, ordinary answer of the same service). Sources: the error references that the service files name.
ANSWERS = {
    "kraken": (
        "https://api.kraken.com",
        {"error": ["EAPI:Rate limit exceeded"], "result": {}},
        "RATE_LIMITED",
        {"error": [], "result": {"XXBT": "1.0"}},
    ),
    "etherscan": (
        "https://api.etherscan.io",
        {"status": "0", "message": "NOTOK", "result": "Max rate limit reached"},
        "RATE_LIMITED",
        {"status": "1", "message": "OK", "result": "40891626854930000000000"},
    ),
    "alphavantage": (
        "https://www.alphavantage.co",
        {"Information": "…"},
        "QUOTA_EXCEEDED",
        {"Meta Data": {"1. Information": "Daily Prices"}, "Time Series (Daily)": {}},
    ),
    "wechat": (
        "https://api.weixin.qq.com",
        {"errcode": 45009, "errmsg": "reach max api daily quota limit"},
        "QUOTA_EXCEEDED",
        {"errcode": 0, "errmsg": "ok"},
    ),
    "feishu": (
        "https://open.feishu.cn",
        {"code": 99991400, "msg": "request trigger frequency limit"},
        "RATE_LIMITED",
        {"code": 0, "msg": "success", "data": {}},
    ),
    "tencent": (
        "https://cvm.tencentcloudapi.com",
        {"Response": {"Error": {"Code": "AuthFailure.SignatureFailure", "Message": "…"}, "RequestId": "r"}},
        "UNAUTHENTICATED",
        {"Response": {"TotalCount": 0, "RequestId": "r"}},
    ),
    "minimax": (
        "https://api.minimax.io",
        {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
        "QUOTA_EXCEEDED",
        {"base_resp": {"status_code": 0, "status_msg": "success"}, "choices": []},
    ),
    "dashscope": (
        "https://dashscope.aliyuncs.com",
        {"code": "InvalidApiKey", "message": "…", "request_id": "r"},
        "UNAUTHENTICATED",
        {"output": {"text": "…"}, "usage": {}, "request_id": "r", "code": "", "message": ""},
    ),
    "dynamodb": (
        "https://dynamodb.eu-west-1.amazonaws.com",
        {"UnprocessedItems": {"orders": [{"PutRequest": {"Item": {}}}]}},
        "PARTIAL_FAILURE",
        {"UnprocessedItems": {}},
    ),
    "sqs": (
        "https://sqs.eu-west-1.amazonaws.com",
        {"Failed": [{"Id": "1", "SenderFault": False, "Code": "InternalError"}], "Successful": []},
        "INTERNAL_ERROR",
        {"Failed": [], "Successful": [{"Id": "1"}]},
    ),
    "bigquery": (
        "https://bigquery.googleapis.com",
        {"kind": "x", "insertErrors": [{"index": 0, "errors": [{"reason": "invalid", "location": "a", "message": "…"}]}]},
        "BAD_REQUEST",
        {"kind": "bigquery#tableDataInsertAllResponse"},
    ),
    "google maps": (
        "https://maps.googleapis.com",
        {"status": "OVER_QUERY_LIMIT", "candidates": []},
        "RATE_LIMITED",
        {"status": "ZERO_RESULTS", "results": []},
    ),
    "quickbooks": (
        "https://quickbooks.api.intuit.com",
        {"Fault": {"Error": [{"Message": "…", "code": "3200"}], "type": "AUTHENTICATION"}, "time": "…"},
        "UNAUTHENTICATED",
        {"QueryResponse": {"Invoice": []}, "time": "…"},
    ),
    "zoho": (
        "https://www.zohoapis.com",
        {"data": [{"status": "error", "code": "DUPLICATE_DATA", "details": {}, "message": "…"}]},
        "CONFLICT",
        {"data": [{"status": "success", "code": "SUCCESS", "details": {"id": "1"}, "message": "…"}]},
    ),
    "amazon-sp": (
        "https://sellingpartnerapi-eu.amazon.com",
        {"responses": [{"status": {"statusCode": 429}, "body": {"errors": [{"code": "QuotaExceeded", "message": "…"}]}}]},
        "RATE_LIMITED",
        {"responses": [{"status": {"statusCode": 200}, "body": {}}]},
    ),
    "openai": (
        "https://api.openai.com",
        {"type": "response.failed", "response": {"id": "r", "status": "failed", "error": {"code": "server_error", "message": "…"}}},
        "INTERNAL_ERROR",
        {"id": "r", "object": "response", "status": "completed", "error": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("origin", "failed", "code", "ordinary"), ANSWERS.values(), ids=ANSWERS)
def test_a_failure_inside_a_successful_answer(origin, failed, code, ordinary):
    """The host says which service it is; the answer is a failure, and an ordinary one of the service is none."""
    vendor = vendor_of_origin(origin)
    assert vendor is not None
    fault = extract({"status": 200, "headers": {}, "body": failed}, vendor=vendor, in_success=True)
    assert fault is not None
    assert fault.code == code
    assert extract({"status": 200, "headers": {}, "body": ordinary}, vendor=vendor, in_success=True) is None


def test_a_soap_fault_in_a_successful_answer():
    """Some services send the envelope with status 200."""
    fault = "<faultcode>s:Client</faultcode><faultstring>…</faultstring>"
    text = f"<?xml version='1.0'?><s:Envelope xmlns:s='x'><s:Body><s:Fault>{fault}</s:Fault></s:Body></s:Envelope>"
    found = extract({"status": 200, "headers": {}, "body": text}, in_success=True)
    assert (found.code, found.status) == ("VALIDATION_ERROR", None)
    ordinary = "<s:Envelope xmlns:s='x'><s:Body><Order><Fault/></Order></s:Body></s:Envelope>"
    assert extract({"status": 200, "headers": {}, "body": ordinary}, in_success=True) is None


@pytest.mark.parametrize(
    "origin",
    [
        "https://sqs.acme.s3.amazonaws.com",
        "https://acme.execute-api.eu-west-1.amazonaws.com",
        "https://acme-1.eu-west-1.elb.amazonaws.com",
        "http://sqs.eu-west-1.amazonaws.com",
        "https://sqs.eu-west-1.amazonaws.com:8443",
        "https://api.kraken.com.evil.example",
    ],
)
def test_addresses_where_customers_answer_are_not_the_service(origin):
    """A host is evidence only where the service itself answers."""
    assert vendor_of_origin(origin) is None


def test_the_applications_own_addresses():
    """A self-hosted server is what the application says that it is."""
    try:
        hosts({"https://llm.corp.example": "vllm", "http://127.0.0.1:8000/": "ollama"})
        assert vendor_of_origin("https://llm.corp.example") == check("vllm")
        assert vendor_of_origin("http://127.0.0.1:8000") == "ollama"
        assert vendor_of_origin("https://llm.corp.example:444") is None
        with pytest.raises(LookupError, match="vlmm"):
            hosts({"https://llm.corp.example": "vlmm"})
        with pytest.raises(ValueError, match="is no origin"):
            hosts({"llm.corp": "vllm"})
    finally:
        _BOOK.origins = {}
        vendor_of_origin.cache_clear()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"status": "error", "code": 429, "message": "…"}, "RATE_LIMITED"),
        ({"success": False, "error": "…", "code": "quota_exceeded"}, "QUOTA_EXCEEDED"),
        ({"ok": False, "error_code": "INVALID_API_KEY", "message": "…", "data": None}, "UNAUTHENTICATED"),
        ({"status": "failed", "code": 429, "message": "…"}, None),
        ({"id": "1", "status": "error", "code": "quota_exceeded"}, None),
        ({"status": "error", "code": "quota_exceeded", "data": {"rows": 1}}, None),
        ({"status": "error", "code": "E_17", "message": "…"}, None),
        ({"status": "error", "type": "rate_limited", "code": 429}, None),
    ],
)
def test_an_answer_that_says_nothing_but_that_it_failed(body, code):
    """A flag and a code with a meaning; a record of something that failed has more members, and a result is no failure."""
    fault = extract({"status": 200, "headers": {}, "body": body}, in_success=True)
    assert (None if fault is None else fault.code) == code


@pytest.mark.parametrize("vendor", [None, "hubspot"])
def test_the_parts_of_a_207_are_read_by_the_code_words_of_services(vendor):
    """A part without a status or a code of ours has the sender's."""
    body = {
        "status": "COMPLETE",
        "results": [],
        "errors": [{"status": "error", "category": "OBJECT_NOT_FOUND"}],
    }
    fault = extract({"status": 207, "headers": {}, "body": body}, vendor=vendor)
    assert (fault.code, [part.code for part in fault.errors]) == ("PARTIAL_FAILURE", ["NOT_FOUND"])


def test_batches_whose_answer_is_a_list():
    """CouchDB's bulk documents and Mandrill's recipients: one of two failed."""
    saved = [{"ok": True, "id": "a", "rev": "1"}, {"id": "b", "error": "conflict", "reason": "…"}]
    fault = extract({"status": 201, "headers": {}, "body": saved}, in_success=True)
    assert (fault.code, [part.code for part in fault.errors]) == ("PARTIAL_FAILURE", ["CONFLICT"])
    assert extract({"status": 201, "headers": {}, "body": saved[:1]}, in_success=True) is None

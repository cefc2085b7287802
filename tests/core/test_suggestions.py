"""What a caller is advised to do never contradicts the recovery class: all codes, classes, translations and formats."""

import json
import re

import pytest

from amends import Fault, FaultError, extract
from amends.cli.documents import failure
from amends.core.crosswalk import TARGETS, suggestion_for, transfer, transfer_plainly
from amends.core.enums import Recovery
from amends.core.user_messages import user_message
from amends.core.vocabulary import names, row_for, vocabulary
from amends.dialects.outgoing import outgoing
from amends.errors import RateLimitedError
from amends.foreign import from_upstream
from amends.http.application_errors import fault_for
from amends.http.batch import Batch, Item
from amends.http.openapi import problems
from amends.http.request_info import RequestInfo
from amends.http.responses import Settings, error_response

INVITES = re.compile(
    r"(?i)^(try (again|once more)|wait|run it (again|once more)|submit it again|send it again|make the same request)"
    r"|waiting longer|again later,"
)
"""Advice to repeat the request as it is."""
FORBIDS = re.compile(r"(?i)^(do not repeat|correct\b|change\b|stop\b|never\b)")
CASES = [
    (name, code, recovery)
    for name in names()
    if name != "app"
    for code in vocabulary(name).rows
    for recovery in Recovery
]


def contradicts(suggestion, recovery):
    lasting = recovery in {Recovery.TERMINAL, Recovery.CORRECTABLE}
    return bool((INVITES if lasting else FORBIDS).search(suggestion))


def documents(fault):
    """Yield the first suggestion of the fault in every format that adds one."""
    response = error_response(fault, RequestInfo(path="/orders"), Settings(), serve_pages=False)
    yield "problem", json.loads(response.body)["suggestions"][0]
    command = outgoing(transfer(fault, "cli"), "envelope")
    yield "text", failure(command, {}, "text").decode().partition("fix: ")[2].splitlines()[0]
    yield "cli problem", json.loads(failure(command, {}, "problem"))["suggestions"][0]
    error = json.loads(failure(command, {}, "json"))["error"]
    if "fix_required" in error:
        yield "fix_required", error["fix_required"]
    yield "envelope", error["suggestions"][0]


@pytest.mark.parametrize("name", [name for name in names() if name != "app"])
def test_no_suggestion_contradicts_the_recovery(name):
    """Each code under each class, as it is, translated into each vocabulary, and in each document."""
    wrong = []
    for _, code, recovery in (case for case in CASES if case[0] == name):
        fault = Fault(code=code, vocabulary=name, recovery=recovery)
        translated = [move(fault, target) for target in TARGETS for move in (transfer, transfer_plainly)]
        # A cancellation has another class outside HTTP (M5).
        found = [(each.vocabulary, suggestion_for(each), each.recovery) for each in (fault, *translated)]
        wrong += [
            (code, where, advice, kind.value) for where, advice, kind in found if contradicts(advice, kind)
        ]
        if row_for(name, code).recovery is not recovery and code != "CANCELLED":
            wrong += [
                (code, where, advice, recovery.value)
                for where, advice in documents(fault)
                if contradicts(advice, recovery)
            ]
    assert wrong == []


@pytest.mark.parametrize("name", [name for name in names() if name != "app"])
def test_no_message_for_the_user_asks_to_wait_in_vain(name):
    """Of a failure that no repeat helps, the user is not told to try later."""
    wrong = []
    for _, code, recovery in (case for case in CASES if case[0] == name):
        if recovery in {Recovery.TERMINAL, Recovery.CORRECTABLE}:
            if row_for(name, code).recovery is recovery:
                continue
            told = user_message(Fault(code=code, vocabulary=name, recovery=recovery))
            if re.search(r"(?i)again (later|in a)|like to try again|want me to try again", told):
                wrong.append((code, recovery.value, told))
    assert wrong == []


@pytest.mark.parametrize("status", [401, 403, 404, 409, 410, 422, 501])
def test_a_refusal_of_an_upstream(status):
    """A handler whose upstream refused answers "terminal", and does not say "try again later"."""
    refused = {"status": status, "headers": {}, "body": {"detail": "No"}}
    fault = fault_for(FaultError.from_fault(extract(refused, "http")))
    assert fault.recovery is Recovery.TERMINAL
    for _, advice in documents(fault):
        assert advice == "Do not repeat it; report it to the operator of the service"
    assert "again later" not in user_message(fault)
    assert suggestion_for(from_upstream(refused)) == suggestion_for(fault)


def test_the_page_of_a_status_and_the_schema():
    """The row of a status and the examples of an OpenAPI document have the class and the advice of that status."""
    row = vocabulary("http").status_row(526)
    assert (row.recovery, contradicts(row.suggestion, row.recovery)) == (Recovery.TERMINAL, False)
    assert "again" not in row.user_message
    content = problems(526)[526]["content"]["application/problem+json"]
    example = content["examples"]["SERVICE_UNAVAILABLE"]
    assert (example["value"]["is_retriable"], contradicts(example["summary"], Recovery.TERMINAL)) == (
        False,
        False,
    )


def test_a_class_of_the_application():
    """A class that makes an inherited code terminal does not inherit the advice to wait."""

    class UsedUp(RateLimitedError):
        """The trial is over"""

        code = "SUGGESTIONS_TEST_USED_UP"
        recovery = "terminal"

    assert not contradicts(suggestion_for(UsedUp().fault), Recovery.TERMINAL)
    assert "try again" not in user_message(UsedUp().fault)
    assert not any(contradicts(advice, Recovery.TERMINAL) for _, advice in documents(UsedUp().fault))


def test_a_batch_of_refusals():
    """The batch has advice that fits the class of the whole."""
    gone = Fault(code="PERMISSION_DENIED", vocabulary="http", status=403, recovery=Recovery.TERMINAL)
    document = Batch([Item(0, fault=gone), Item(1, fault=gone)]).body()
    assert not contradicts(document["suggestions"][0], Recovery(document["recovery"]))

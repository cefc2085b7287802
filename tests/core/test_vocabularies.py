"""The vocabulary tables, compared with the specifications and mappings.md (AdCP has its own test module)."""

import re
from http import HTTPStatus
from pathlib import Path

import pytest

from amends import Fault, encode
from amends.core.enums import Actor, Executed, Recovery
from amends.core.exits import exit_code
from amends.core.vocabularies import app, everyday
from amends.core.vocabularies.task import CATEGORIES
from amends.core.vocabulary import EVERYDAY, Row, names, row_for, vocabulary

PUBLISHED = [name for name in names() if name != "app"]
HTTP, CLI, TASK, ARCP = (vocabulary(name) for name in ("http", "cli", "task", "arcp"))

M1_STATUS_ROWS = {
    "correctable": (400, 401, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 422, 428, 431),
    "terminal": (402, 403, 451, 501, 505, 508, 510, 511, 526),
    "transient": (408, 425, 429, 502, 503, 504, 520, 521, 522, 523, 524, 525, 529),
    "uncertain": (500,),
}
M3_NO = {*range(400, 499), 501, 505, 508, 510, 511, 521, 523, 525, 526, 529} - {408}
M3_MAYBE = {408, 499, 500, 502, 503, 504, 520, 522, 524}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_row_is_complete(name):
    """Every row has a message, a suggestion, a user message and an everyday code (M5)."""
    table = vocabulary(name)
    for code, row in {**table.rows, table.unknown.code: table.unknown}.items():
        assert row.code == code
        assert row.message
        assert row.suggestion
        assert row.user_message
        assert row.everyday in everyday.VOCABULARY.rows
        assert row.status is None or 200 < row.status < 600
        assert row.exit is None or 0 < row.exit < 256
        assert set(re.findall(r"\{(\w+)\}", row.user_message)) <= {"name"}
        assert row.message[-1] != "."
        assert row.suggestion[-1] != "."


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_form_of_codes(name):
    """Codes have at most 64 capital letters, digits and underscores, which every dialect can carry."""
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]{1,63}", code) for code in vocabulary(name).rows)


@pytest.mark.parametrize(
    ("recovery", "status"),
    [(recovery, status) for recovery, statuses in M1_STATUS_ROWS.items() for status in statuses],
)
def test_status_rows(recovery, status):
    """M1: each HTTP status has its recovery."""
    assert HTTP.status_row(status).recovery == recovery


@pytest.mark.parametrize(
    ("status", "like"),
    [
        (399, 500),
        (418, 400),
        (499, 400),
        (407, 400),
        (507, 500),
        (512, 500),
        (599, 500),
        (200, 500),
        (600, 500),
    ],
)
def test_other_statuses(status, like):
    """M1: other 4xx are read as 400, all others as 500. M3: a 4xx had no effect, except 499."""
    row, family = HTTP.status_row(status), HTTP.status_row(like)
    assert (row.code, row.recovery, row.actor) == (family.code, family.recovery, family.actor)
    assert row.executed is (Executed.NO if status in {407, 418} else Executed.MAYBE)


def test_the_effect_by_status():
    """M3: these statuses mean no effect, these an unknown effect, and 207 a partial effect."""
    assert all(HTTP.status_row(status).executed is Executed.NO for status in M3_NO)
    assert all(HTTP.status_row(status).executed is Executed.MAYBE for status in M3_MAYBE)
    assert HTTP.status_row(207).executed is Executed.YES


def test_a_bare_408_is_a_time_out():
    """M5: a 408 without an intent is a time-out; CANCELLED also has status 408."""
    assert HTTP.status_row(408).code == "TIMEOUT"
    assert HTTP.rows["CANCELLED"].status == 408


def test_every_http_code_has_its_status_and_its_title():
    """P1: every http code has a status, and its problem document a title."""
    assert all(row.status for row in HTTP.rows.values())
    titles = {code: encode(Fault(code=code, vocabulary="http"), "problem")["title"] for code in HTTP.rows}
    assert all(titles.values())
    registered = {code: HTTPStatus[code] for code in HTTP.rows if code in HTTPStatus.__members__}
    assert len(registered) > 10
    assert {code: HTTP.rows[code].status for code in registered} == registered


@pytest.mark.parametrize("code", ["VALIDATION_ERROR", "CONTEXT_TOO_LONG", "CONTENT_REFUSED"])
def test_a_request_that_can_never_succeed_is_a_422(code):
    """RFC 9110: the content is understood and cannot be processed."""
    row = vocabulary(EVERYDAY).rows[code]
    assert (row.status, row.recovery) == (HTTPStatus.UNPROCESSABLE_ENTITY, Recovery.CORRECTABLE)


@pytest.mark.parametrize(
    "code",
    # An exhausted quota shares 429 with a rate limit, and NOT_READY shares 503, but both are more exact.
    [code for code in vocabulary(EVERYDAY).rows if code not in {"CANCELLED", "QUOTA_EXCEEDED", "NOT_READY"}],
)
def test_everyday_codes_match_their_status(code):
    """M5: recovery and effect of an everyday code are those of its HTTP status."""
    row = vocabulary(EVERYDAY).rows[code]
    of_status = HTTP.status_row(row.status)
    assert (row.recovery, row.executed) == (of_status.recovery, of_status.executed)


def test_a_cancellation_depends_on_the_vocabulary():
    """M5: CANCELLED is transient in http and terminal elsewhere; its effect is unknown."""
    assert vocabulary(EVERYDAY).rows["CANCELLED"].recovery is Recovery.TERMINAL
    assert HTTP.rows["CANCELLED"].recovery is Recovery.TRANSIENT
    assert ARCP.rows["CANCELLED"].recovery is Recovery.TERMINAL
    assert {table.rows["CANCELLED"].executed for table in (vocabulary(EVERYDAY), HTTP, ARCP)} == {
        Executed.MAYBE
    }


def test_the_reserved_jsonrpc_numbers():
    """A3: three AdCP codes have a JSON-RPC number for rejections before dispatch."""
    numbers = {code: row.jsonrpc for code, row in vocabulary("adcp").rows.items() if row.jsonrpc is not None}
    assert numbers == {"RATE_LIMITED": -32029, "AUTH_MISSING": -32028, "SERVICE_UNAVAILABLE": -32027}


@pytest.mark.parametrize(
    ("code", "recovery", "exit"),
    [
        ("VALIDATION_ERROR", "correctable", 2),
        ("NOT_FOUND", "correctable", 4),
        ("PERMISSION_DENIED", "terminal", 8),
        ("CONFLICT", "correctable", 6),
        ("TIMEOUT", "transient", 7),
        ("SERVICE_UNAVAILABLE", "transient", 12),
        ("RATE_LIMITED", "transient", 9),
        ("NETWORK_ERROR", "transient", 12),
        ("INTERNAL_ERROR", "uncertain", 1),
    ],
)
def test_the_taxonomy_of_the_command_line(code, recovery, exit):
    """C6, C8, M1: each code has the recovery of S2's three lists and the exit code of M4."""
    row = CLI.rows[code]
    assert (row.recovery, row.exit) == (recovery, exit)


def test_the_waits_of_the_command_line():
    """M4: RATE_LIMITED (9) waits 5 s without a hint, TIMEOUT (7) 0 s; no other row has a wait."""
    waits = {(name, code): row.wait for name in PUBLISHED for code, row in vocabulary(name).rows.items()}
    assert {key: wait for key, wait in waits.items() if wait is not None} == {
        ("cli", "RATE_LIMITED"): 5.0,
        ("cli", "TIMEOUT"): 0.0,
    }


def test_an_unknown_command_line_code_is_uncertain():
    """M1: an unknown cli code is uncertain; C12 limits its retries."""
    assert CLI.unknown.recovery is Recovery.UNCERTAIN


S3 = {
    "input": ("INVALID_INPUT", "MISSING_REQUIRED_FIELD", "INVALID_FIELD_TYPE", "INVALID_FIELD_VALUE"),
    "agent": ("AGENT_NOT_FOUND", "CAPABILITY_NOT_FOUND", "AGENT_UNAVAILABLE", "AGENT_BUSY"),
    "mcp": ("MCP_NOT_CONNECTED", "MCP_AUTH_FAILED", "MCP_RATE_LIMITED", "MCP_ERROR"),
    "coordination": ("COORDINATION_FAILED", "TASK_GRAPH_CYCLE", "DELEGATION_FAILED", "TIMEOUT"),
    "system": ("INTERNAL_ERROR", "KNOWLEDGE_NOT_FOUND", "RATE_LIMITED"),
}
M1_TASK_ROWS = {
    "correctable": (*S3["input"], "MCP_NOT_CONNECTED", "MCP_AUTH_FAILED"),
    "transient": ("AGENT_BUSY", "MCP_RATE_LIMITED", "TIMEOUT", "RATE_LIMITED"),
    "uncertain": (
        *("AGENT_UNAVAILABLE", "MCP_ERROR", "COORDINATION_FAILED", "DELEGATION_FAILED", "INTERNAL_ERROR"),
    ),
    "terminal": ("AGENT_NOT_FOUND", "CAPABILITY_NOT_FOUND", "TASK_GRAPH_CYCLE", "KNOWLEDGE_NOT_FOUND"),
}
M3_TASK_NO = {
    *S3["input"],
    *("AGENT_NOT_FOUND", "CAPABILITY_NOT_FOUND", "AGENT_BUSY", "MCP_NOT_CONNECTED", "MCP_AUTH_FAILED"),
    *("MCP_RATE_LIMITED", "TASK_GRAPH_CYCLE", "KNOWLEDGE_NOT_FOUND", "RATE_LIMITED"),
}


def test_nineteen_codes_in_five_groups():
    """T2: codes and groups are those of S3's table."""
    groups = {category: [] for category in CATEGORIES}
    for code, row in TASK.rows.items():
        groups[row.category].append(code)
    assert {category: tuple(codes) for category, codes in groups.items()} == S3
    assert len(TASK.rows) == 19


@pytest.mark.parametrize("recovery", M1_TASK_ROWS)
def test_task_rows(recovery):
    """M1: each task code has its recovery."""
    assert {code for code, row in TASK.rows.items() if row.recovery == recovery} == set(
        M1_TASK_ROWS[recovery]
    )


def test_the_effect_by_task_code():
    """M3: these task codes mean that the task had no effect."""
    assert {code for code, row in TASK.rows.items() if row.executed is Executed.NO} == M3_TASK_NO


def test_qualifiers_of_task_codes():
    """T2: four codes have a qualifier: setup, reauth or wait."""
    assert {code: row.qualifier for code, row in TASK.rows.items() if row.qualifier} == {
        "MCP_NOT_CONNECTED": "setup",
        "MCP_AUTH_FAILED": "reauth",
        "MCP_RATE_LIMITED": "wait",
        "RATE_LIMITED": "wait",
    }


S5 = {
    "transient": ("TIMEOUT", "INTERNAL_ERROR", "HEARTBEAT_LOST"),
    "terminal": ("CANCELLED", "BUDGET_EXHAUSTED"),
    "correctable": (
        *("INVALID_REQUEST", "UNAUTHENTICATED", "PERMISSION_DENIED", "JOB_NOT_FOUND", "AGENT_NOT_AVAILABLE"),
        *("AGENT_VERSION_NOT_AVAILABLE", "LEASE_SUBSET_VIOLATION", "LEASE_EXPIRED"),
        *("RESUME_WINDOW_EXPIRED", "DUPLICATE_KEY"),
    ),
}


@pytest.mark.parametrize("recovery", S5)
def test_arcp_rows(recovery):
    """R1, M1: the fifteen codes have their recovery; three of them are retryable, as in S5."""
    assert {code for code, row in ARCP.rows.items() if row.recovery == recovery} == set(S5[recovery])
    assert len(ARCP.rows) == 15


def test_the_effect_by_arcp_code():
    """M3: these ARCP codes mean that the effect is unknown."""
    assert {code for code, row in ARCP.rows.items() if row.executed is Executed.MAYBE} == {
        *("TIMEOUT", "INTERNAL_ERROR", "HEARTBEAT_LOST", "CANCELLED", "LEASE_EXPIRED"),
        *("BUDGET_EXHAUSTED", "RESUME_WINDOW_EXPIRED"),
    }


@pytest.mark.parametrize("name", ["task", "arcp", "adcp"])
def test_unknown_codes_are_terminal(name):
    """M1, A12: an unknown code is terminal, and its effect is unknown."""
    unknown = vocabulary(name).unknown
    assert (unknown.recovery, unknown.executed) == (Recovery.TERMINAL, Executed.MAYBE)


@pytest.mark.parametrize("name", PUBLISHED)
def test_rate_limits_had_no_effect(name):
    """M3: RATE_LIMITED had no effect in any vocabulary."""
    row = vocabulary(name).rows.get("RATE_LIMITED")
    assert row is None or (row.executed, row.recovery) == (Executed.NO, Recovery.TRANSIENT)


@pytest.mark.parametrize("name", PUBLISHED)
def test_terminal_codes_have_another_actor_than_the_caller(name):
    """Design 3: the actor of a terminal code is not the caller, except for a cancellation, which the caller requested."""
    for code, row in vocabulary(name).rows.items():
        if row.recovery is Recovery.TERMINAL and code != "CANCELLED":
            assert row.actor is not Actor.CALLER, code


def test_a_users_code_can_be_replaced():
    """Adding a code again replaces its row, as when a module is reloaded."""
    first = vocabulary("cli").rows["CONFLICT"]
    row = Row(
        **{**{name: getattr(first, name) for name in Row.__struct_fields__}, "code": "MINE_VOCABULARIES"}
    )
    app.add(row)
    try:
        assert vocabulary("app").row("MINE_VOCABULARIES") is row
        again = Row(**{**{name: getattr(row, name) for name in Row.__struct_fields__}, "exit": 99})
        app.add(again)
        assert vocabulary("app").row("MINE_VOCABULARIES").exit == 99
    finally:
        app._ROWS.pop("MINE_VOCABULARIES")
    assert vocabulary("app").row("MINE_VOCABULARIES") == everyday.VOCABULARY.unknown


@pytest.mark.parametrize("name", ["everyday", "http", "cli", "task", "adcp", "arcp"])
def test_statuses_are_registered(name):
    """A status of a table is one that HTTP has; 499 and 529 are in use without being registered."""
    statuses = {row.status for row in vocabulary(name).rows.values()} - {None, 499, 529}
    assert statuses <= set(HTTPStatus)


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_catalogue_has_these_rows(name):
    """Recovery, effect, status, exit code, actor and message of each code are those that the docs publish."""
    published = re.findall(
        r"^\| \[`(\w+)`\]\(#\w+\) \| (.*) \|$", (DOCS / f"catalogue-{name}.md").read_text(), re.MULTILINE
    )
    found = {
        code: [
            row.recovery.value,
            row.executed.value,
            str(row.status or row_for(EVERYDAY, row.everyday).status),
            str(exit_code(Fault(code=code, vocabulary=name))),
            row.actor.value,
            row.message,
        ]
        for code, row in vocabulary(name).rows.items()
    }
    assert {code: cells.split(" | ") for code, cells in published} == found


def test_the_jsonrpc_numbers_of_everyday_codes():
    """Those of JSON-RPC 2.0 for invalid parameters and internal errors, and those that AdCP reserves."""
    for name in (EVERYDAY, "http"):
        assert {
            code: row.jsonrpc for code, row in vocabulary(name).rows.items() if row.jsonrpc is not None
        } == {
            "VALIDATION_ERROR": -32602,
            "INTERNAL_ERROR": -32603,
            "SERVICE_UNAVAILABLE": -32027,
            "UNAUTHENTICATED": -32028,
            "RATE_LIMITED": -32029,
        }

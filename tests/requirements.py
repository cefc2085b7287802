"""
The requirements ledger as data: every clause of the five source documents, with the tests that prove it.

`tests` are node ids or globs of them ("tests/core/test_exits.py::*"). `deferral` names, first thing, the subject of the
later issue that does the rest, and what the rest is. A clause that is proven in part has both; one that has neither
fails tests/test_requirements.py. Ids are never renumbered; new ones are added at the end of their letter.
"""

from dataclasses import dataclass

SUBJECTS = (
    *("recovery", "stores", "HTTP", "command line", "MCP and A2A", "ARCP", "agent tasks"),
    *("many machines", "first ten minutes"),
)
"""What the later issues are about."""

VECTORS = "tests/test_vectors.py::test_every_vector_holds"
"""Proof by those of the shipped vectors that name the id."""


@dataclass(frozen=True)
class Requirement:
    """One clause, in our own words, and what became of it."""

    id: str
    clause: str
    tests: tuple[str, ...] = ()
    deferral: str | None = None


def _(id: str, clause: str, *tests: str, deferral: str | None = None) -> Requirement:
    return Requirement(id, clause, tests, deferral)


_PROBLEM = "tests/dialects/test_problem.py::"
_ENVELOPE = "tests/dialects/test_envelope.py::"
_TASK = "tests/dialects/test_task.py::"
_ADCP_ERROR = "tests/dialects/test_adcp.py::"
_ARCP = "tests/dialects/test_arcp.py::"
_OUTGOING = "tests/dialects/test_outgoing.py::"
_ROUND = "tests/dialects/test_roundtrips.py::"
_ANSWERS = "tests/bindings/test_cli_answers.py::"
_ROWS = "tests/core/test_vocabularies.py::"
_ADCP = "tests/core/test_adcp_vocabulary.py::"
_EXITS = "tests/core/test_exits.py::"
_FILLING = "tests/core/test_filling.py::"
_DECISIONS = "tests/test_decisions.py::"
_S4_FORM = "tests/test_vectors.py::test_every_vector_in_s4s_form_holds"

ALL = (
    # S1: problem details for agents over HTTP
    _(
        "P1",
        "The five core members; title, status and detail always written, missing ones accepted; the media type",
        VECTORS,
        f"{_PROBLEM}test_title_status_and_detail_are_always_written",
        f"{_ROWS}test_every_http_code_has_its_status_and_its_title",
        deferral="HTTP: responses are sent as application/problem+json",
    ),
    _(
        "P2",
        "is_retriable: might the same request, unchanged, succeed",
        VECTORS,
        f"{_PROBLEM}test_is_retriable_answers_its_own_question",
    ),
    _(
        "P3",
        "retry_after_ms before the header; the header sent too, rounded up, and read in both forms",
        VECTORS,
        f"{_PROBLEM}test_precedence_of_waits",
        f"{_PROBLEM}test_milliseconds_are_whole_and_rounded_up",
        deferral="HTTP: the Retry-After header that goes out",
    ),
    _(
        "P4",
        "doc_uri opens a page about this very error",
        VECTORS,
        deferral="HTTP: the service serves the page of every registered code",
    ),
    _(
        "P5",
        "trace_id: one id in the response, the log line and the span",
        VECTORS,
        deferral="HTTP: the server's log line and its span",
    ),
    _(
        "P6",
        "suggestions: ordered steps, the most likely fix first",
        VECTORS,
        f"{_PROBLEM}test_suggestions_keep_their_order_and_only_strings",
    ),
    _(
        "P7",
        "errors: nested problems of the same schema",
        VECTORS,
        f"{_PROBLEM}test_nested_parts_are_bounded_over_all_levels",
        f"{_PROBLEM}test_a_nested_problem_takes_its_parents_status",
    ),
    _(
        "P8",
        "One schema for responses and command lines; wrong types ignored when read, never written",
        VECTORS,
        f"{_PROBLEM}test_wrong_types_are_ignored_and_never_emitted",
        f"{_FILLING}test_a_value_of_the_wrong_kind_is_refused",
        deferral="command line: `--output problem` of the bindings",
    ),
    _(
        "P9",
        "An agent's branches: give up with what is known, wait and repeat, or hand back for a change",
        VECTORS,
        deferral="HTTP: the client that takes the branches",
    ),
    _(
        "P10",
        "A batch that failed in part answers 207 and loses no success; one that failed whole answers 422",
        VECTORS,
        deferral="HTTP: collecting the items of a batch and answering with them",
    ),
    _(
        "P11",
        "An aborted request answers 408 with the intent it had",
        VECTORS,
        f"{_PROBLEM}test_a_408_with_an_intent_is_a_cancellation",
        deferral="HTTP: noticing that the client went away, and recording it",
    ),
    # S2: retry hints of a command line
    _(
        "C1",
        "One JSON envelope on stdout and nothing else",
        VECTORS,
        f"{_ENVELOPE}test_the_envelope_is_ok_error_meta",
        f"{_ANSWERS}test_nothing_else_reaches_stdout",
        f"{_ANSWERS}test_failures_and_exits",
        f"{_ANSWERS}test_signals",
    ),
    _(
        "C2",
        "retryable in every error: true, false or maybe",
        VECTORS,
        f"{_ENVELOPE}test_retryable_is_written_in_every_error",
    ),
    _(
        "C3",
        "retry_after_ms, from the upstream's header where there is one; always there for rate limits",
        VECTORS,
        f"{_ENVELOPE}test_a_rate_limit_always_says_how_long",
        f"{_ENVELOPE}test_waits_are_kept_as_received",
        f"{_ANSWERS}test_an_upstreams_failure_is_told_in_our_words",
    ),
    _(
        "C4",
        "retry_strategy and max_retries",
        VECTORS,
        f"{_ENVELOPE}test_everything_s2_shows_is_read",
        f"{_ROUND}test_writing_then_reading_gives_the_fault_minus_losses",
    ),
    _(
        "C5",
        "fix_required where the arguments have to change",
        VECTORS,
        f"{_ENVELOPE}test_what_has_to_be_fixed",
    ),
    _(
        "C6",
        "Which codes are retryable, which not, and which maybe",
        VECTORS,
        f"{_ROWS}test_the_taxonomy_of_the_command_line",
    ),
    _("C7", "Exit codes carry retryability", VECTORS, f"{_EXITS}*", f"{_DECISIONS}test_no_decision_changed"),
    _(
        "C8",
        "Every error class has its default in one registry",
        VECTORS,
        f"{_ROWS}test_the_taxonomy_of_the_command_line",
        f"{_EXITS}test_every_code_has_an_exit_and_none_is_success",
    ),
    _(
        "C9",
        "The framework itself retries when asked",
        f"{_ANSWERS}test_retries_of_a_command_that_changes_nothing",
        f"{_ANSWERS}test_retries_with_a_key",
        f"{_ANSWERS}test_retries_are_refused_for_all_other_commands",
    ),
    _(
        "C10",
        "meta.attempt and meta.max_attempts",
        VECTORS,
        f"{_ENVELOPE}test_everything_s2_shows_is_read",
        f"{_ANSWERS}test_retries_of_a_command_that_changes_nothing",
        f"{_ANSWERS}test_what_recovery_gave_up_on",
    ),
    _("C11", "The rubric from 0 to 3 and its check, as a program", "tests/audit/*"),
    _(
        "C12",
        "The runner of other people's commands: envelope, then exit code, then one careful retry",
        VECTORS,
        "tests/process/test_run.py::*",
        "tests/process/test_command.py::*",
    ),
    # S3: the error contract of an agent system
    _(
        "T1",
        "The shape: code, message, details, recoverable",
        VECTORS,
        f"{_ROUND}*",
        f"{_TASK}*",
    ),
    _(
        "T2",
        "The nineteen codes in five groups, with message, answer and qualifier",
        VECTORS,
        f"{_ROWS}test_nineteen_codes_in_five_groups",
        f"{_ROWS}test_task_rows",
        f"{_ROWS}test_what_has_to_be_done_first",
    ),
    _(
        "T3",
        "A failed task's response and its metadata",
        VECTORS,
        f"{_TASK}test_s3s_example",
        deferral="agent tasks: responses of running agents, with their times",
    ),
    _("T4", "An agent wraps, adds context, judges, and returns the error", deferral="agent tasks: the agent"),
    _(
        "T5",
        "An orchestrator retries what is recoverable, else surfaces it and cleans up",
        deferral="agent tasks: the orchestrator",
    ),
    _(
        "T6",
        "A message for people per code, the missing thing named",
        f"{_ROWS}test_every_row_is_complete",
        deferral="agent tasks: the name filled in",
    ),
    _(
        "T7",
        "Retry policy by group; a no is never retried",
        f"{_DECISIONS}test_the_recorded_series_are_those_of_the_documents",
        f"{_DECISIONS}test_no_decision_changed",
        deferral="agent tasks: set-up and re-auth hooks before a retry",
    ),
    _(
        "T8",
        "A task's own retryPolicy overrides the defaults",
        deferral="agent tasks: the request's retryPolicy",
    ),
    _("T9", "Fallbacks, declared in code or Markdown", deferral="agent tasks: fallbacks"),
    _("T10", "Span attributes on errors", deferral="agent tasks: telemetry of agents"),
    _("T11", "A structured log record", deferral="agent tasks: logs of agents"),
    _(
        "T12",
        "Nothing swallowed, no hopeless retry, no internals to users, no needless codes",
        VECTORS,
        deferral="agent tasks: held over a whole run of the orchestrator",
    ),
    # S4: AdCP errors over MCP and A2A
    _(
        "A1",
        "Application errors in the response, transport errors in the protocol's own channel",
        VECTORS,
        _S4_FORM,
        deferral="MCP and A2A: servers that keep them apart",
    ),
    _(
        "A2",
        "An MCP tool error in both places, with at most one sentence beside it",
        VECTORS,
        _S4_FORM,
        deferral="MCP and A2A: what a guarded server sends, by protocol version",
    ),
    _(
        "A3",
        "Three reserved JSON-RPC codes for rejections before dispatch",
        VECTORS,
        _S4_FORM,
        f"{_ROWS}test_the_reserved_jsonrpc_numbers",
        f"{_ADCP}test_reserved_jsonrpc_codes",
        deferral="MCP and A2A: rejecting in front of a server",
    ),
    _(
        "A4",
        "A failed A2A task: one artifact, a text part and a data part with the error alone",
        VECTORS,
        _S4_FORM,
        deferral="MCP and A2A: what a guarded executor sends",
    ),
    _(
        "A5",
        "Two layers: fatal fills both, a remark only the payload, fatal in the payload alone is a gap",
        VECTORS,
        deferral="MCP and A2A: both layers filled by servers",
    ),
    _("A6", "The detection order, seven steps", VECTORS, _S4_FORM),
    _(
        "A7",
        "An object, a code of 1 to 64 characters, at most 4096 bytes",
        VECTORS,
        _S4_FORM,
        f"{_ADCP_ERROR}test_the_length_of_a_code",
        f"{_ADCP_ERROR}test_4096_bytes_and_one_more",
        f"{_ADCP_ERROR}test_an_error_may_be_nested_but_not_without_end",
    ),
    _(
        "A8",
        "check: error_code, and error_code_not_resolvable",
        VECTORS,
        deferral="MCP and A2A: the storyboard check itself",
    ),
    _(
        "A9",
        "Extraction keeps raw values",
        VECTORS,
        f"{_FILLING}test_any_finite_wait_is_kept",
        f"{_ADCP_ERROR}test_waits_are_kept_as_received",
    ),
    _(
        "A10",
        "Acting by recovery, with the wait rounded up and clamped; a producer sends 1 to 3600 only",
        VECTORS,
        f"{_FILLING}test_a_wait_is_finite",
        f"{_DECISIONS}test_a_hint_is_never_undercut_and_never_counts_for_more_than_an_hour",
        f"{_ADCP_ERROR}test_a_producer_sends_whole_seconds_from_1_to_3600",
    ),
    _(
        "A11",
        "A ceiling of attempts and waiting per operation; past it, escalate",
        f"{_DECISIONS}test_the_recorded_series_are_those_of_the_documents",
        f"{_DECISIONS}test_no_decision_changed",
        deferral="recovery: held by the engine over whole operations",
    ),
    _(
        "A12",
        "No recovery: the code table; unknown code or unknown recovery: terminal",
        VECTORS,
        _S4_FORM,
        f"{_ADCP}test_an_unknown_code_is_terminal",
        f"{_ROWS}test_unknown_codes_are_for_a_person",
        f"{_ADCP_ERROR}test_without_a_recovery_the_table_speaks",
        f"{_ADCP_ERROR}test_an_unknown_recovery_is_terminal_and_written_back",
    ),
    _(
        "A13",
        "The standard code table; deprecated aliases kept verbatim",
        VECTORS,
        f"{_ADCP}test_the_codes_are_the_published_ones_in_their_order",
        f"{_ADCP}test_aliases_are_kept_verbatim",
    ),
    _(
        "A14",
        "Recommended details, checked on the producing side, under 500 bytes, required by no reader",
        VECTORS,
        "tests/core/test_details.py::*",
    ),
    _(
        "A15",
        "Vendor codes by their two patterns; unknown ones handled by recovery",
        VECTORS,
        f"{_ADCP}test_the_patterns_are_s4s",
        f"{_ADCP}test_vendor_codes",
        f"{_ADCP}test_codes_a_producer_may_not_send",
        f"{_ADCP_ERROR}test_what_is_said_counts",
    ),
    _(
        "A16",
        "A client library's eight duties, typed classes, a retry policy",
        VECTORS,
        deferral="MCP and A2A: the clients",
    ),
    _("A17", "Vectors in S4's form", _S4_FORM),
    _(
        "A18",
        "Chains translate, classify from the caller's side, and strip nothing",
        VECTORS,
        "tests/core/test_crosswalk.py::test_parts_are_translated_too",
        f"{_ADCP_ERROR}test_every_member_is_read_and_passed_on",
        f"{_ADCP_ERROR}test_what_came_from_an_adcp_peer_is_not_rewritten",
        deferral="MCP and A2A: the chain between hops",
    ),
    _(
        "A19",
        "A producer never emits internals, and suggestions reveal nothing",
        f"{_PROBLEM}test_what_we_raise_is_redacted",
        f"{_ADCP}test_suggestions_reveal_nothing",
        "tests/core/test_details.py::test_warnings_repeat_no_value",
        f"{_ADCP_ERROR}test_what_we_raise_is_redacted",
        f"{_OUTGOING}*",
        deferral="MCP and A2A: waits that reflect the caller's state alone",
    ),
    _(
        "A20",
        "A consumer decides by code and recovery, fences, truncates and strips",
        VECTORS,
        "tests/core/test_fence.py::*",
        "tests/core/test_text.py::*",
        f"{_ADCP_ERROR}test_wrong_types_are_ignored",
    ),
    _("A21", "URLs from errors: https, no userinfo, the known host", "tests/core/test_urls.py::*"),
    # S5: ARCP errors
    _(
        "R1",
        "Fifteen codes, one class each, default retryability, override per error",
        VECTORS,
        f"{_ROWS}test_arcp_rows",
        f"{_ARCP}test_recovery_of_every_code",
        deferral="ARCP: the class of every code, as the client raises it",
    ),
    _(
        "R2",
        "One wire shape in session.error, job.error and tool_result",
        VECTORS,
        f"{_ROUND}*",
        f"{_ARCP}test_the_shape_is_closed",
        deferral="ARCP: what the runtime sends",
    ),
    _(
        "R3",
        "A raised ARCP error becomes job.error; anything else INTERNAL_ERROR without its text",
        VECTORS,
        deferral="ARCP: the runtime",
    ),
    _(
        "R4",
        "details arrive exactly as raised",
        VECTORS,
        f"{_ROUND}test_writing_then_reading_gives_the_fault_minus_losses",
        f"{_ARCP}test_details_arrive_as_raised",
        deferral="ARCP: over a real connection",
    ),
    _(
        "R5",
        "done raises the typed error on every terminal failure",
        VECTORS,
        deferral="ARCP: the client's handle",
    ),
    _(
        "R6",
        "session.error is fatal; recovery is a new session",
        VECTORS,
        deferral="ARCP: connect and resume",
    ),
    _("R7", "A tool_result with an error leaves the job alive", VECTORS, deferral="ARCP: the runtime's jobs"),
    _(
        "R8",
        "A denied lease check appears as a tool_result error on the parent",
        VECTORS,
        deferral="ARCP: leases and delegation",
    ),
    _("R9", "An idempotency key collapses retries to one job", deferral="ARCP: idempotency keys"),
    _("R10", "A caller may add to details while re-raising", deferral="ARCP: on errors raised by a handle"),
    _("R11", "The conditions behind every code really exist", deferral="ARCP: the runtime"),
)

REQUIREMENTS = {item.id: item for item in ALL}

"""
The requirements: every clause of the five specifications, with the tests that cover it.

`tests` are node ids or globs of them ("tests/core/test_exits.py::*"). `deferral` is "subject: rest", where `subject` is
that of the later issue and `rest` what is missing. A clause that is covered in part has both; one that has neither fails
tests/test_requirements.py. Ids are never renumbered; new ones are added at the end of their letter.
"""

from dataclasses import dataclass

SUBJECTS = (
    *("recovery", "stores", "HTTP", "command line", "MCP and A2A", "ARCP", "agent tasks"),
    *("many machines", "first ten minutes"),
)
"""The subjects of later issues."""

VECTORS = "tests/test_vectors.py::test_every_vector_holds"
"""The shipped vectors that name the id."""


@dataclass(frozen=True)
class Requirement:
    """One clause in short, with the tests that cover it."""

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
_HANDSHAKE = "tests/arcp/client/test_handshake.py::"
_CLIENT_RECOVERY = "tests/arcp/client/test_recovery.py::"
_RECONNECT = "tests/arcp/client/test_reconnect.py::"
_SUBMITTING = "tests/arcp/client/test_submit.py::"
_INTEROP = "tests/arcp/test_interop.py::"
_CODES = "tests/arcp/test_codes.py::"
_JOBS = "tests/arcp/test_jobs.py::"
_OUTGOING = "tests/dialects/test_outgoing.py::"
_ROUND = "tests/dialects/test_roundtrips.py::"
_CLI_DOCUMENTS = "tests/bindings/test_cli_documents.py::"
_ROWS = "tests/core/test_vocabularies.py::"
_ADCP = "tests/core/test_adcp_vocabulary.py::"
_EXITS = "tests/core/test_exits.py::"
_DECIDE = "tests/core/test_decision.py::"
_POLICY = "tests/core/test_policy.py::"
_CLASSES = "tests/errors/test_generated.py::"
_RAISED = "tests/errors/test_base.py::"
_ARCP_RAISED = "tests/errors/test_arcp.py::"
_VENDORS = "tests/errors/test_vendor_codes.py::"
_UPSTREAM = "tests/foreign/test_upstream.py::"
_LEAKS = "tests/foreign/test_leaks.py::"
_STEPPER = "tests/recovery/test_stepper.py::"
_RECOVER = "tests/recovery/test_recover.py::"
_OVER_HTTP = "tests/carriers/test_http.py::"
_OVER_MCP = "tests/carriers/test_mcp.py::"
_OVER_A2A = "tests/carriers/test_a2a.py::"
_OVER_RPC = "tests/carriers/test_jsonrpc.py::"
_OVER_ARCP = "tests/carriers/test_arcp.py::"
_ASGI = "tests/bindings/test_asgi.py::"
_DJANGO = "tests/bindings/test_django.py::"
_FLASK = "tests/bindings/test_flask.py::"
_FASTAPI = "tests/bindings/test_fastapi.py::"
_HTTPX = "tests/bindings/test_httpx.py::"
_A2A_GUARD = "tests/bindings/test_a2a_guard.py::"
_A2A_CLIENT = "tests/bindings/a2a_client/test_failures.py::"
_DEFAULTS = "tests/core/test_defaults.py::"
_MCP_GUARD = "tests/bindings/test_mcp_guard.py::"
_MCP_CLIENT = "tests/bindings/test_mcp_client.py::"
_MCP_REJECT = "tests/bindings/test_mcp_reject.py::"
_FASTMCP = "tests/bindings/test_fastmcp.py::"
_DECISIONS = "tests/test_decisions.py::"
_S4_FORM = "tests/test_vectors.py::test_every_vector_in_adcps_format_holds"

ALL = (
    # S1: problem details for agents over HTTP
    _(
        "P1",
        "The five core members (title, status and detail are always written, missing ones accepted) and the media type",
        VECTORS,
        f"{_PROBLEM}test_title_status_and_detail_are_always_written",
        f"{_ROWS}test_every_http_code_has_its_status_and_its_title",
        f"{_ASGI}test_a_raised_error_has_every_member",
        f"{_DJANGO}test_failures_are_problems_with_every_header",
        f"{_FLASK}test_failures_are_problems_with_every_header",
        "tests/bindings/test_starlette.py::test_failures_keep_cors_and_security_headers",
        f"{_FASTAPI}test_schemathesis_finds_nothing_undocumented",
    ),
    _(
        "P2",
        "is_retriable: whether the same request may succeed unchanged",
        VECTORS,
        f"{_PROBLEM}test_is_retriable",
    ),
    _(
        "P3",
        "retry_after_ms takes precedence over the header; the header is sent too, rounded up, and read in both forms",
        VECTORS,
        f"{_PROBLEM}test_precedence_of_waits",
        f"{_PROBLEM}test_milliseconds_are_whole_and_rounded_up",
        f"{_ASGI}test_a_raised_error_has_every_member",
        f"{_DJANGO}test_waits_headers_and_failing_middleware",
        f"{_OVER_HTTP}test_precedence_of_waits",
        "tests/carriers/test_headers.py::test_seconds",
        "tests/carriers/test_headers.py::test_dates",
    ),
    _(
        "P4",
        "doc_uri opens a page about this error",
        VECTORS,
        f"{_CLI_DOCUMENTS}test_pages_about_the_codes",
        f"{_ASGI}test_every_page_equals_explain_and_shows_what_is_answered",
        f"{_ASGI}test_users_own_codes_groups_and_challenges",
        f"{_ASGI}test_real_connections_stay_usable_and_half_responses_break",
        f"{_DJANGO}test_behind_real_servers",
        f"{_FLASK}test_behind_gunicorn",
    ),
    _(
        "P5",
        "trace_id: one id in the response, the log line and the span",
        VECTORS,
        f"{_ASGI}test_an_unexpected_exception_shows_nothing_of_itself",
        f"{_ASGI}test_response_log_and_span_have_one_id",
        f"{_ASGI}test_the_trace_is_the_callers",
    ),
    _(
        "P6",
        "suggestions: ordered steps, the most likely fix first",
        VECTORS,
        f"{_PROBLEM}test_suggestions_keep_their_order_and_only_strings",
        f"{_FASTAPI}test_every_field_is_named_with_what_to_do",
        f"{_DJANGO}test_validation_errors_field_by_field",
    ),
    _(
        "P7",
        "errors: nested problems of the same schema",
        VECTORS,
        f"{_PROBLEM}test_the_number_of_nested_problems_is_limited",
        f"{_PROBLEM}test_a_nested_problem_takes_its_parents_status",
        f"{_FASTAPI}test_every_field_is_named_with_what_to_do",
    ),
    _(
        "P8",
        "One schema for responses and command lines; wrong types are ignored when read and never written",
        VECTORS,
        f"{_PROBLEM}test_wrong_types_are_ignored_and_never_emitted",
        f"{_DEFAULTS}test_a_value_of_the_wrong_type_raises",
        f"{_FASTAPI}test_schemathesis_finds_nothing_undocumented",
        f"{_CLI_DOCUMENTS}test_the_problem_document",
        "tests/commands/test_console.py::test_output_applies_when_parsing_fails",
    ),
    _(
        "P9",
        "The agent's choices: give up with the details, wait and repeat, or return the request for a change",
        VECTORS,
        f"{_HTTPX}test_waits_as_asked_and_repeats_unchanged",
        f"{_HTTPX}test_what_cannot_be_retried_is_raised_with_everything",
        "tests/bindings/test_requests.py::test_waits_repeats_and_keys",
        "tests/bindings/test_aiohttp.py::test_waits_repeats_and_keys",
        f"{_DECIDE}test_correctable_is_handed_back_and_terminal_escalated",
        f"{_RECOVER}test_on_fix_returns_the_call_to_make_instead",
        "tests/http/test_demo.py::test_the_agent_finishes",
    ),
    _(
        "P10",
        "A partly failed batch answers 207 with all results; a completely failed one what its items are",
        VECTORS,
        f"{_OVER_HTTP}test_a_batch_that_failed_in_part",
        f"{_OVER_HTTP}test_a_batch_that_failed_completely",
        "tests/http/test_batch.py::test_partial_success_is_207_with_everything",
        "tests/http/test_batch.py::test_all_or_none",
        "tests/http/test_batch.py::test_the_status_if_all_items_failed",
        "tests/http/test_batch.py::test_the_sample_server_of_the_specification",
        "tests/http/test_batch.py::test_only_what_may_be_retried_is_sent_again",
    ),
    _(
        "P11",
        "An aborted request answers 408 with its intent",
        VECTORS,
        f"{_PROBLEM}test_a_408_with_an_intent_is_a_cancellation",
        "tests/http/test_cancellation.py::test_a_deadline_answers_408_with_the_intent",
        "tests/http/test_cancellation.py::test_a_client_that_goes_away_stops_the_handler",
        "tests/http/test_cancellation.py::test_a_clean_up_that_fails",
        "tests/http/test_cancellation.py::test_a_client_that_leaves_before_its_body_is_read",
    ),
    _(
        "P12",
        "Several failures of one handler are one problem with each of them in errors, the same in every binding",
        "tests/foreign/test_groups.py::*",
        "tests/bindings/test_groups.py::*",
    ),
    _(
        "P13",
        "Suggestions fit the failure: none contradicts its recovery class, in any format; an author's words are sent",
        "tests/core/test_suggestions.py::*",
        "tests/bindings/test_words.py::*",
    ),
    _(
        "P14",
        "Failures beside plain requests: WebSockets before and after they are accepted, streams before their first chunk",
        "tests/bindings/test_sockets.py::*",
        "tests/bindings/test_streams_that_fail.py::*",
        "tests/bindings/test_wsgi_streams.py::*",
    ),
    # S2: retry hints of a command line
    _(
        "C1",
        "stdout has one JSON envelope and nothing else",
        VECTORS,
        f"{_ENVELOPE}test_the_envelope_is_ok_error_meta",
        f"{_CLI_DOCUMENTS}test_the_three_outputs_say_the_same",
        "tests/carriers/test_process.py::test_output_in_utf_16",
        "tests/carriers/test_process.py::test_output_with_colours",
        f"{_CLI_DOCUMENTS}test_nothing_else_reaches_stdout",
        f"{_CLI_DOCUMENTS}test_failures_and_exits",
        f"{_CLI_DOCUMENTS}test_signals",
        f"{_CLI_DOCUMENTS}test_a_success_carries_data_and_meta",
    ),
    _(
        "C2",
        "retryable in every error: true, false or maybe",
        VECTORS,
        f"{_ENVELOPE}test_retryable_is_written_in_every_error",
        f"{_CLI_DOCUMENTS}test_failures_and_exits",
    ),
    _(
        "C3",
        "retry_after_ms, from the upstream's header if there is one; always present for rate limits",
        VECTORS,
        f"{_CLI_DOCUMENTS}test_waits_that_nobody_named",
        f"{_ENVELOPE}test_a_rate_limit_always_has_a_wait",
        f"{_ENVELOPE}test_waits_are_kept_as_received",
        f"{_CLI_DOCUMENTS}test_an_upstreams_failure_without_its_text",
        "tests/foreign/test_http_clients.py::test_a_response_is_read_with_its_headers",
    ),
    _(
        "C4",
        "retry_strategy and max_retries",
        VECTORS,
        f"{_ENVELOPE}test_the_example_of_s2",
        f"{_ROUND}test_writing_then_reading_gives_the_fault_minus_losses",
        f"{_CLI_DOCUMENTS}test_failures_and_exits",
    ),
    _(
        "C5",
        "fix_required if the arguments have to change",
        VECTORS,
        f"{_CLI_DOCUMENTS}test_the_three_outputs_say_the_same",
        f"{_ENVELOPE}test_fix_required",
        "tests/bindings/test_cli_errors.py::test_one_mistake",
    ),
    _(
        "C6",
        "The codes that are retryable, not retryable, and maybe retryable",
        VECTORS,
        f"{_ROWS}test_the_taxonomy_of_the_command_line",
    ),
    _(
        "C7",
        "Exit codes show retryability",
        VECTORS,
        f"{_EXITS}*",
        f"{_DECISIONS}test_no_decision_changed",
        f"{_CLI_DOCUMENTS}test_failures_and_exits",
        "tests/bindings/test_cli_errors.py::test_one_mistake",
        "tests/commands/test_console.py::test_own_failures_are_envelopes_with_their_exit_code",
        "tests/carriers/test_process.py::test_a_named_profile_reads_its_numbers",
    ),
    _(
        "C8",
        "Every error class has its default in one registry",
        VECTORS,
        f"{_ROWS}test_the_taxonomy_of_the_command_line",
        f"{_EXITS}test_every_code_has_an_exit_and_none_is_success",
        f"{_CLASSES}test_every_class_has_its_rows_facts_and_can_be_copied",
    ),
    _(
        "C9",
        "The framework retries on request",
        f"{_CLI_DOCUMENTS}test_retries_of_a_read_only_command",
        f"{_CLI_DOCUMENTS}test_retries_with_a_key",
        f"{_CLI_DOCUMENTS}test_retries_are_refused_for_all_other_commands",
    ),
    _(
        "C10",
        "meta.attempt and meta.max_attempts",
        VECTORS,
        f"{_ENVELOPE}test_the_example_of_s2",
        f"{_CLI_DOCUMENTS}test_retries_of_a_read_only_command",
        f"{_CLI_DOCUMENTS}test_attempts_of_recovery_inside_the_command",
    ),
    _("C11", "The rubric from 0 to 3 and its check, as a program", "tests/audit/*"),
    _(
        "C12",
        "A runner of any command: envelope, then exit code, then one careful retry",
        VECTORS,
        "tests/process/test_run.py::*",
        "tests/process/test_command.py::*",
        "tests/carriers/test_process.py::*",
        "tests/process/test_profiles.py::*",
        f"{_STEPPER}test_adcp_and_cli_policies_stop_after_three_attempts",
    ),
    _(
        "C13",
        "The three outputs of a command have the same facts, and each error its wait",
        "tests/bindings/test_cli_documents.py::*",
    ),
    _(
        "C14",
        "A printed error is the command's own only in the form of the specification",
        "tests/forgery/test_carriers.py::test_no_body_or_record_says_that_nothing_happened",
        "tests/forgery/test_carriers.py::test_no_forged_output_makes_a_command_run_again",
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
        f"{_ROWS}test_qualifiers_of_task_codes",
    ),
    _(
        "T3",
        "A failed task's response and its metadata",
        VECTORS,
        f"{_TASK}test_the_example_of_s3",
        "tests/carriers/test_task.py::*",
        "tests/tasks/test_documents.py::test_a_response_survives_reading_and_writing",
        "tests/tasks/test_orchestrator.py::test_a_failed_task",
        "tests/tasks/remote/test_mcp.py::test_an_mcp_server_that_is_missing_at_first",
    ),
    _(
        "T4",
        "An agent wraps the error, adds context, sets recoverable, and returns it",
        "tests/tasks/test_agent.py::*",
        "tests/tasks/test_inputs.py::*",
        "tests/tasks/remote/*",
    ),
    _(
        "T5",
        "An orchestrator retries recoverable errors, else reports them and cleans up",
        f"{_DECIDE}test_without_a_hint_the_wait_grows",
        f"{_RECOVER}test_the_final_error_has_fault_decision_history_and_cause",
        "tests/tasks/test_undoing.py::test_finished_steps_are_undone_in_reverse",
        "tests/tasks/test_undoing.py::test_undoing_is_retried",
        "tests/tasks/test_durability.py::test_undoing_goes_on_after_a_crash",
        "tests/tasks/test_chaos.py::*",
        "tests/tasks/test_recovery.py::test_the_retry_table_of_the_contract",
    ),
    _(
        "T6",
        "A user message per code, which names the missing thing",
        f"{_ROWS}test_every_row_is_complete",
        "tests/core/test_user_messages.py::*",
        "tests/tasks/test_message_catalogue.py::*",
        "tests/core/test_user_messages.py::test_every_message_is_a_sentence",
    ),
    _(
        "T7",
        "Retry policy by group; an error that is not recoverable is never retried",
        f"{_DECISIONS}test_the_waits_are_those_of_the_specifications",
        f"{_DECISIONS}test_no_decision_changed",
        "tests/core/test_backoff.py::test_growth_by_kind",
        f"{_POLICY}test_task_errors_go_by_category",
        f"{_STEPPER}test_the_task_policy_depends_on_the_category",
        f"{_STEPPER}test_some_failures_have_a_remedy",
        f"{_RECOVER}test_a_missing_connection_is_set_up_once",
        f"{_RECOVER}test_credentials_are_renewed_once",
        "tests/tasks/test_recovery.py::test_the_retry_table_of_the_contract",
        "tests/tasks/test_recovery.py::test_remedies",
    ),
    _(
        "T8",
        "A task's own retryPolicy overrides the defaults",
        f"{_STEPPER}test_a_task_may_have_its_own_retry_policy",
        f"{_STEPPER}test_invalid_members_of_a_retry_policy_are_ignored",
        "tests/tasks/test_documents.py::test_a_request_survives_reading_and_writing",
        "tests/tasks/test_recovery.py::test_the_retry_policy_of_a_request",
        "tests/tasks/test_recovery.py::test_an_input_error_is_never_retried",
        "tests/tasks/test_retry_policy.py::test_an_unknown_name_is_refused_with_the_nearest",
    ),
    _(
        "T9",
        "Fallbacks, declared in code or Markdown",
        f"{_DECIDE}test_a_fallback_replaces_escalation",
        f"{_RECOVER}test_a_fallback_gets_the_same_arguments",
        "tests/tasks/test_fallbacks.py::*",
        "tests/tasks/test_recovery.py::test_fallbacks_in_code",
        "tests/tasks/test_recovery.py::test_fallbacks_in_prose",
        "tests/test_examples.py::test_examples_print_the_output_shown",
    ),
    _(
        "T10",
        "Span attributes on errors",
        "tests/bindings/test_otel.py::test_giving_up_sets_the_error_attributes",
        f"{_ASGI}test_response_log_and_span_have_one_id",
        "tests/tasks/test_telemetry.py::test_spans_of_a_failed_task",
    ),
    _(
        "T11",
        "A structured log record",
        "tests/bindings/test_structlog.py::test_one_record_per_event",
        "tests/bindings/test_structlog.py::test_giving_up_is_a_warning",
        "tests/tasks/test_telemetry.py::test_the_log_record",
        "tests/tasks/test_telemetry.py::test_structlog",
    ),
    _(
        "T12",
        "No swallowed error, no hopeless retry, no internals shown to users, no unnecessary codes",
        VECTORS,
        f"{_STEPPER}test_the_task_policy_depends_on_the_category",
        f"{_LEAKS}*",
        "tests/tasks/test_agent.py::test_any_exception_becomes_a_standard_code",
        "tests/tasks/test_agent.py::test_the_exception_is_logged_and_not_returned",
        "tests/tasks/test_leaks.py::*",
        f"{_TASK}test_a_leak_is_redacted",
        "tests/tasks/test_message_catalogue.py::test_messages_contain_nothing_internal",
        "tests/tasks/test_recovery.py::test_the_retry_table_of_the_contract",
    ),
    _(
        "T13",
        "A failed task says how to fix it: the field, the suggestions and the errors of several fields survive reading",
        f"{_TASK}test_the_wrong_field_is_written_and_read",
        f"{_TASK}test_what_the_producer_names_stays",
        f"{_TASK}test_a_record_cannot_make_a_caller_less_careful",
        "tests/tasks/test_leaks.py::test_documents_of_failed_tasks",
    ),
    _(
        "T14",
        "A refused task, and a delegation whose failure is handled, leave a log record, a span and metadata",
        "tests/tasks/test_refusals.py::*",
    ),
    _(
        "T15",
        "A retryPolicy is read as it is meant, and a wrong one is refused by the name of its member",
        "tests/tasks/test_retry_policy.py::*",
    ),
    # S4: AdCP errors over MCP and A2A
    _(
        "A1",
        "Application errors in the response, transport errors in the protocol's error channel",
        VECTORS,
        _S4_FORM,
        f"{_OVER_HTTP}test_a_gateway_in_front_of_an_mcp_server",
        f"{_A2A_GUARD}test_a_broken_store_is_an_error_without_its_text",
        f"{_A2A_GUARD}test_a_rejection_before_the_agent",
        f"{_MCP_GUARD}test_typed_errors_are_sent_completely",
        f"{_MCP_GUARD}test_resources_and_prompts_fail_as_json_rpc_errors",
        f"{_MCP_REJECT}test_other_codes_are_sent_in_the_tools_result",
        f"{_FASTMCP}test_a_guarded_server_answers_with_adcp_errors",
    ),
    _(
        "A2",
        "An MCP tool error in structured content and text, with at most one further sentence",
        VECTORS,
        _S4_FORM,
        f"{_OVER_MCP}test_the_example_of_s4",
        f"{_OVER_MCP}test_a_written_result_is_read_on_every_path",
        f"{_OVER_MCP}test_older_protocols_get_only_text",
        f"{_OVER_MCP}test_the_sentence_is_the_second_item",
        f"{_MCP_GUARD}test_typed_errors_are_sent_completely",
        f"{_MCP_GUARD}test_older_protocols_get_text_alone",
        f"{_MCP_GUARD}test_over_standard_streams",
        f"{_MCP_GUARD}test_over_streamable_http",
        "tests/bindings/test_mcp_adcp.py::*",
        "tests/bindings/test_mcp_adcp_live.py::*",
        "tests/bindings/test_mcp_sse.py::test_a_guarded_server",
    ),
    _(
        "A3",
        "Three reserved JSON-RPC codes for rejections before dispatch",
        VECTORS,
        _S4_FORM,
        f"{_ROWS}test_the_reserved_jsonrpc_numbers",
        f"{_ADCP}test_reserved_jsonrpc_codes",
        f"{_OVER_RPC}test_the_error_is_read_with_any_number",
        f"{_OVER_RPC}test_the_reserved_numbers_by_protocol_version",
        f"{_OVER_RPC}test_three_codes_are_reserved",
        f"{_OVER_RPC}test_a_written_error_is_read",
        f"{_A2A_GUARD}test_a_rejection_before_the_agent",
        f"{_A2A_CLIENT}test_rejections_before_the_agent_are_recovered",
        f"{_MCP_REJECT}test_the_numbers_depend_on_the_protocol",
        f"{_MCP_REJECT}test_other_codes_are_sent_in_the_tools_result",
        f"{_MCP_REJECT}test_over_http_with_a_body_that_official_clients_keep",
    ),
    _(
        "A4",
        "A failed A2A task: one artifact, a text part and a data part with the error alone",
        VECTORS,
        _S4_FORM,
        f"{_OVER_A2A}test_the_example_of_s4",
        f"{_OVER_A2A}test_the_mime_type_is_never_required",
        f"{_OVER_A2A}test_a_written_task_is_read",
        f"{_OVER_A2A}test_the_text_part",
        f"{_A2A_GUARD}test_a_typed_error_is_a_failed_task",
        f"{_A2A_GUARD}test_the_mime_type_is_optional",
        f"{_A2A_CLIENT}test_a_plain_servers_failed_task_is_a_typed_error",
    ),
    _(
        "A5",
        "Two layers: a fatal error is in both, a non-fatal one only in the payload; fatal only in the payload is a gap",
        VECTORS,
        f"{_OVER_MCP}test_a_written_result_is_read_on_every_path",
        f"{_OVER_MCP}test_the_payload_layer_of_a_failure",
        f"{_OVER_MCP}test_the_payload_layer_of_a_success",
        f"{_OVER_A2A}test_the_payload_layer",
        f"{_MCP_GUARD}test_typed_errors_are_sent_completely",
        f"{_MCP_GUARD}test_the_parts_of_a_failure_are_sent",
        f"{_MCP_CLIENT}test_errors_in_a_successful_result_are_not_fatal",
    ),
    _("A6", "The detection order, seven steps", VECTORS, _S4_FORM, "tests/carriers/test_detection.py::*"),
    _(
        "A7",
        "An object, a code of 1 to 64 characters, at most 4096 bytes",
        VECTORS,
        _S4_FORM,
        f"{_ADCP_ERROR}test_the_length_of_a_code",
        f"{_ADCP_ERROR}test_4096_bytes_and_one_more",
        f"{_ADCP_ERROR}test_the_depth_of_an_error_is_limited",
        "tests/dialects/test_adcp_size.py::*",
    ),
    _(
        "A8",
        "check: error_code, and error_code_not_resolvable",
        VECTORS,
        "tests/test_storyboard.py::*",
    ),
    _(
        "A9",
        "Extraction keeps raw values",
        VECTORS,
        f"{_DEFAULTS}test_any_finite_wait_is_kept",
        f"{_ADCP_ERROR}test_waits_are_kept_as_received",
    ),
    _(
        "A10",
        "Acting by recovery, with the wait rounded up and clamped; a producer sends 1 to 3600 only",
        VECTORS,
        f"{_DEFAULTS}test_a_wait_is_finite",
        f"{_DECISIONS}test_a_hint_is_waited_for_up_to_an_hour",
        f"{_ADCP_ERROR}test_a_producer_sends_whole_seconds_from_1_to_3600",
        "tests/core/test_hints.py::*",
        f"{_DECIDE}test_a_hint_is_waited_for",
        f"{_DECIDE}test_correctable_is_handed_back_and_terminal_escalated",
    ),
    _(
        "A11",
        "A limit of attempts and waiting per operation; beyond it, escalate",
        f"{_DECISIONS}test_the_waits_are_those_of_the_specifications",
        f"{_DECISIONS}test_no_decision_changed",
        f"{_POLICY}test_the_default_is_five_calls_and_three_for_adcp",
        f"{_DECIDE}test_a_wait_that_is_too_long_is_not_started",
        f"{_STEPPER}test_adcp_and_cli_policies_stop_after_three_attempts",
        f"{_STEPPER}test_no_sequence_of_failures_breaks_a_bound",
        f"{_RECOVER}test_the_final_error_has_fault_decision_history_and_cause",
        f"{_RECOVER}test_layers_do_not_multiply_attempts",
        f"{_RECOVER}test_waits_of_an_inner_recovery_count_for_the_outer_one",
    ),
    _(
        "A12",
        "Without recovery the code table applies; an unknown code or recovery is terminal",
        VECTORS,
        _S4_FORM,
        f"{_ADCP}test_an_unknown_code_is_terminal",
        f"{_ROWS}test_unknown_codes_are_terminal",
        f"{_ADCP_ERROR}test_without_a_recovery_the_table_decides",
        f"{_ADCP_ERROR}test_an_unknown_recovery_is_terminal_and_repaired",
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
        "Recommended details: checked by the producer, under 500 bytes, not required by readers",
        VECTORS,
        "tests/core/test_details.py::*",
        f"{_VENDORS}test_details_of_a_producer_are_checked",
        f"{_OUTGOING}test_details_of_another_shape_are_logged",
    ),
    _(
        "A15",
        "Vendor codes match two patterns; unknown codes are handled by recovery",
        VECTORS,
        f"{_ADCP}test_the_patterns_of_vendor_codes",
        f"{_ADCP}test_vendor_codes",
        f"{_ADCP}test_codes_a_producer_may_not_send",
        f"{_ADCP_ERROR}test_a_received_recovery_counts",
        f"{_VENDORS}test_a_producer_uses_standard_or_vendor_codes",
        f"{_VENDORS}test_a_user_code_can_have_a_vendor_code",
        f"{_VENDORS}test_a_code_chosen_at_run_time",
        f"{_VENDORS}test_a_code_without_a_vocabulary",
        f"{_VENDORS}test_a_code_of_a_class_is_known_everywhere",
    ),
    _(
        "A16",
        "A client library's eight duties, typed classes, a retry policy",
        VECTORS,
        _S4_FORM,
        f"{_CLASSES}test_every_code_has_its_class",
        f"{_OVER_MCP}test_the_text_fallback",
        f"{_OVER_MCP}test_is_error_must_be_exactly_true",
        f"{_ADCP_ERROR}test_an_unknown_recovery_is_terminal_and_repaired",
        f"{_ADCP_ERROR}test_4096_bytes_and_one_more",
        "tests/core/test_hints.py::*",
        "tests/carriers/test_objects.py::test_mcp_results",
        f"{_A2A_CLIENT}test_a_rate_limited_message_is_repeated_after_its_wait",
        f"{_A2A_CLIENT}test_attempts_are_bounded",
        f"{_A2A_CLIENT}test_a_plain_servers_failed_task_is_a_typed_error",
        f"{_MCP_CLIENT}test_errors_are_typed_and_complete",
        f"{_MCP_CLIENT}test_errors_are_found_in_every_place",
        f"{_MCP_CLIENT}test_attempts_are_bounded",
        f"{_MCP_CLIENT}test_annotations_decide_whether_a_call_is_repeated",
        f"{_FASTMCP}test_the_client_raises_typed_errors_and_recovers",
        "tests/bindings/test_mcp_faults.py::*",
        "tests/carriers/test_other_places.py::*",
    ),
    _("A17", "Vectors in S4's format", _S4_FORM),
    _(
        "A18",
        "Chains translate errors, classify them from the caller's side, and drop no member",
        VECTORS,
        "tests/core/test_crosswalk.py::test_parts_are_translated_too",
        f"{_ADCP_ERROR}test_every_member_is_read_and_passed_on",
        f"{_ADCP_ERROR}test_received_errors_are_not_rewritten",
        f"{_UPSTREAM}*",
        f"{_ASGI}test_upstream_failures_hide_the_upstream",
        "tests/chain/test_relay.py::*",
        "tests/chain/test_hops.py::*",
        "tests/chain/test_three_hops.py::*",
        f"{_ADCP_ERROR}test_a_received_error_is_repaired_and_not_replaced",
        f"{_ADCP_ERROR}test_a_conformant_error_is_not_changed",
    ),
    _(
        "A19",
        "A producer never sends internals, and suggestions reveal nothing",
        f"{_PROBLEM}test_raised_faults_are_redacted",
        f"{_ADCP}test_suggestions_reveal_nothing",
        "tests/core/test_details.py::test_warnings_repeat_no_value",
        f"{_ADCP_ERROR}test_own_errors_are_redacted",
        f"{_OUTGOING}*",
        "tests/core/test_redaction.py::*",
        f"{_LEAKS}*",
        "tests/foreign/test_validation.py::test_pydantic_fields_and_suggestions",
        f"{_FASTAPI}test_poisoned_exceptions_leak_nothing",
        "tests/bindings/test_limits.py::test_callers_are_counted_separately",
        f"{_A2A_GUARD}test_poisoned_exceptions_leak_nothing",
        f"{_A2A_GUARD}test_a_foreign_exception_is_unavailable_and_logged_with_its_trace",
        "tests/bindings/test_mcp_poison.py::*",
        f"{_MCP_GUARD}test_foreign_exceptions_are_unavailable_and_logged_with_the_callers_trace",
        f"{_MCP_REJECT}test_waits_depend_on_the_caller_only",
    ),
    _(
        "A20",
        "A consumer decides by code and recovery, and fences, truncates and strips received text",
        VECTORS,
        "tests/core/test_fence.py::*",
        "tests/core/test_text.py::*",
        "tests/bindings/test_hostile.py::*",
        f"{_ADCP_ERROR}test_wrong_types_are_ignored",
        "tests/core/test_crosswalk.py::test_a_received_original_is_checked",
        f"{_MCP_CLIENT}test_the_members_of_an_error_do_not_change_the_client",
        "tests/core/test_fence.py::test_a_code_of_the_users_own_is_known",
    ),
    _(
        "A21",
        "URLs from errors are followed only with https, without userinfo, on the known host",
        "tests/core/test_urls.py::*",
    ),
    _(
        "A22",
        "AdCP errors are read in webhooks, embedded resources, ErrorInfo, Structs and batches, plain failures by default",
        "tests/carriers/test_other_places.py::*",
        "tests/carriers/test_mcp_task.py::*",
        "tests/carriers/test_native.py::*",
    ),
    _(
        "A23",
        "The id that a caller gets is in the log of the server, of every tool and for every failure",
        "tests/serving/test_reporting.py::*",
        f"{_MCP_GUARD}test_foreign_exceptions_are_unavailable_and_logged_with_the_callers_trace",
    ),
    # S5: ARCP errors
    _(
        "R1",
        "Fifteen codes with one class each, a default retryability, and an override per error",
        VECTORS,
        f"{_ROWS}test_arcp_rows",
        f"{_ARCP}test_recovery_of_every_code",
        f"{_CLASSES}test_every_code_has_its_class",
        f"{_ARCP_RAISED}test_every_class_is_an_arcp_error",
        f"{_ARCP_RAISED}test_default_retryability",
        f"{_ARCP_RAISED}test_retryable_overrides_the_default",
        "tests/arcp/test_errors.py::test_the_same_classes_in_both_places",
    ),
    _(
        "R2",
        "One wire shape in session.error, job.error and tool_result",
        VECTORS,
        f"{_ROUND}*",
        f"{_ARCP}test_the_shape_is_closed",
        f"{_OVER_ARCP}test_errors_are_read_from_every_envelope",
        f"{_CODES}test_every_code_has_its_condition_and_one_shape",
        f"{_JOBS}test_a_tool_error_does_not_end_the_job",
        f"{_SUBMITTING}test_every_job_error_is_raised",
        f"{_HANDSHAKE}test_a_session_error_is_what_connect_raises",
    ),
    _(
        "R3",
        "A raised ARCP error becomes job.error; any other exception INTERNAL_ERROR without its text",
        VECTORS,
        f"{_CODES}test_what_an_agent_raises_arrives_as_raised",
        "tests/arcp/test_lifecycle.py::test_an_issued_credential_in_an_error_is_masked",
        f"{_CODES}test_errors_of_other_vocabularies_are_translated",
        f"{_CODES}test_nothing_of_a_foreign_exception_leaves",
    ),
    _(
        "R4",
        "details arrive exactly as raised",
        VECTORS,
        f"{_ROUND}test_writing_then_reading_gives_the_fault_minus_losses",
        f"{_ARCP}test_details_arrive_as_raised",
        f"{_CODES}test_what_an_agent_raises_arrives_as_raised",
        f"{_CODES}test_every_code_has_its_condition_and_one_shape",
    ),
    _(
        "R5",
        "done raises the typed error on every terminal failure",
        VECTORS,
        f"{_ARCP_RAISED}test_every_class_is_an_arcp_error",
        f"{_ARCP_RAISED}test_default_retryability",
        f"{_ARCP_RAISED}test_an_unknown_code_is_an_arcp_error",
        f"{_OVER_ARCP}test_a_failed_result_without_an_error",
        f"{_SUBMITTING}test_every_job_error_is_raised",
        f"{_SUBMITTING}test_every_failed_result_is_raised",
        f"{_RECONNECT}test_a_session_that_cannot_be_resumed",
        f"{_INTEROP}test_its_failures_are_raised_by_our_client",
    ),
    _(
        "R6",
        "session.error is fatal; recovery is a new session",
        VECTORS,
        "tests/arcp/test_security.py::test_a_first_frame_that_is_not_a_hello",
        "tests/arcp/test_sessions.py::test_who_may_connect",
        "tests/arcp/test_resume.py::test_resuming_too_late",
        f"{_HANDSHAKE}test_a_session_error_is_what_connect_raises",
        f"{_SUBMITTING}test_a_session_error_that_ends_the_connection_ends_the_session",
        f"{_CLIENT_RECOVERY}test_a_session_that_is_over_is_replaced",
    ),
    _(
        "R7",
        "A tool_result with an error does not end the job",
        VECTORS,
        f"{_JOBS}test_a_tool_error_does_not_end_the_job",
    ),
    _(
        "R8",
        "A denied lease check appears as a tool_result error on the parent",
        VECTORS,
        f"{_JOBS}test_authorize_reports_refusals",
        f"{_JOBS}test_a_tool_call_that_the_lease_denies",
        f"{_JOBS}test_refused_delegations_raise_in_the_agent",
    ),
    _(
        "R9",
        "An idempotency key collapses retries to one job",
        "tests/arcp/test_idempotency.py::*",
        "tests/arcp/test_interrupted.py::*",
        "tests/cluster/test_cluster.py::*",
        "tests/arcp/test_model.py::test_random_histories",
        f"{_SUBMITTING}test_a_rejection_affects_only_its_request",
        f"{_CLIENT_RECOVERY}test_submit_with_recovery_repeats_with_the_same_key",
    ),
    _(
        "R10",
        "A caller may add to details when re-raising",
        f"{_RAISED}test_assigning_details_replaces_them",
        f"{_RAISED}test_assigning_details_of_a_copy",
        f"{_ARCP_RAISED}test_details_can_be_added_when_re_raising",
        f"{_SUBMITTING}test_every_job_error_is_raised",
    ),
    _(
        "R11",
        "The runtime has the condition for every code",
        f"{_CODES}test_every_code_has_its_condition_and_one_shape",
        f"{_JOBS}*",
        "tests/arcp/test_sessions.py::*",
    ),
)

REQUIREMENTS = {item.id: item for item in ALL}

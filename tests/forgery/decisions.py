"""
Every decision about safety, with the tests that forge what a peer controls against it.

A function is entered here as "module:function" once it has the decorator `amends.proof.rests_on`.
"""

from __future__ import annotations

FORGED_BY: dict[str, tuple[str, ...]] = {
    "amends.core.executed:executed_by_status": ("tests/forgery/test_executed.py",),
    "amends.core.executed:executed_as_proved": ("tests/forgery/test_executed.py",),
    "amends.core.executed:may_invite": (
        "tests/forgery/test_executed.py::test_under_503_only_an_invitation_of_our_own_formats_counts",
        "tests/core/test_hints.py::test_what_a_wait_does_not_prove",
    ),
    "amends.http.key_support:vendor_honours_keys": ("tests/http/test_key_support.py::test_the_vendor_table",),
    "amends.http.key_support:KeySupport.proved": (
        "tests/http/test_key_support.py::test_what_proves_that_keys_are_honoured",
        "tests/http/test_key_support.py::test_an_answer_is_no_proof_for_its_own_request",
        "tests/bindings/test_client_keys.py::test_a_failed_answer_proves_nothing",
    ),
    "amends.http.key_support:KeySupport.honours": ("tests/http/test_key_support.py::test_the_users_word",),
    "amends.gateway.sites:Sites._answers_for": ("tests/gateway/test_sites.py",),
    "amends.gateway.sites:Sites._may_send": ("tests/gateway/test_sites.py",),
    "amends.page.access:is_local": ("tests/page/test_access.py::test_what_counts_as_local",),
    "amends.page.access:Access.opens": ("tests/page/test_access.py::test_the_one_time_address",),
    "amends.page.access:Access.signed_in": (
        "tests/page/test_access.py::test_behind_a_plain_proxy_nothing_is_shown",
        "tests/page/test_app.py::test_every_request_needs_the_token",
    ),
    "amends.page.access:Access.may_act": ("tests/page/test_tasks.py::test_tasks",),
    "amends.stores.deadlines:Deadlines.left": ("tests/stores/test_deadlines.py",),
    "amends.durable.lock_owner:LockOwner.ended": (
        "tests/durable/test_lock_owner.py::test_only_the_end_of_a_process_is_its_end",
        "tests/durable/test_lock_owner.py::test_what_is_not_known_has_not_ended",
    ),
    "amends.http.calls:Call._is_in_use": (
        "tests/bindings/test_client_key_reuse.py::test_another_key_in_the_answer_is_no_reason_to_wait",
        "tests/bindings/test_client_key_reuse.py::test_a_key_in_use_is_waited_for_once",
    ),
    "amends.durable.keys:Keys.lease_left": (
        "tests/stores/test_deadlines.py::test_a_step_of_the_wall_clock_frees_no_key",
        "tests/stores/test_deadlines.py::test_a_process_that_is_proved_to_have_ended_has_no_lease",
    ),
    "amends.durable.keys:Keys.call_left": (
        "tests/stores/test_deadlines.py::test_no_is_not_believed_before_the_time_limit",
        "tests/effects/test_time_limits.py",
    ),
    "amends.stores.nats.scan:_reached": (
        "tests/stores/test_nats.py::test_a_scan_includes_what_was_acknowledged",
        "tests/stores/test_nats.py::test_a_scan_is_complete_whichever_replica_answers",
        "tests/stores/test_nats.py::test_a_scan_during_an_election",
    ),
    "amends.dialects.record:restored": (
        "tests/dialects/test_record.py",
        "tests/foreign/test_trust.py::test_the_users_word",
    ),
    "amends.serving.server_errors:_is_of_one_call": (
        "tests/bindings/test_mcp_guard.py::test_a_tool_that_makes_one_call_and_nothing_else",
    ),
    "amends.foreign.in_doubt:_may_be_repeated": ("tests/foreign/test_in_doubt.py",),
    "amends.foreign.trust:believed": ("tests/foreign/test_trust.py",),
    "amends.foreign.trust:trusted": ("tests/foreign/test_trust.py",),
    "amends.foreign.trust:_is_signed": (
        "tests/foreign/test_trust.py::test_a_signed_record_is_believed_for_its_call_alone",
        "tests/foreign/test_trust.py::test_a_changed_record_is_not_believed",
    ),
    "amends.foreign.trust:is_system_call": ("tests/foreign/test_trust.py::test_a_forged_call_is_nobodys",),
    "amends.foreign.trust:is_own_address": ("tests/foreign/test_trust.py::test_addresses",),
    "amends.foreign.trust:is_own_command": ("tests/foreign/test_trust.py::test_commands",),
    "amends.arcp.runtime.server.job_listing:JobListing.may_observe": ("tests/arcp/test_job_listing.py",),
    "amends.arcp.transports.websocket:is_local": (
        "tests/forgery/test_claims.py::test_names_that_are_not_this_machine",
    ),
    "amends.bindings.a2a.faults:_unstructured": (
        "tests/forgery/test_claims.py::test_only_the_state_of_a_task_says_that_it_did_not_run",
        "tests/forgery/test_carriers.py::test_no_forged_task_makes_a_client_send_a_message_again",
    ),
    "amends.bindings.mcp.client_errors:not_connected": ("tests/bindings/test_mcp_parts.py",),
    "amends.carriers.process:_bare": ("tests/carriers/test_process.py",),
    "amends.carriers.process:_of_another": (
        "tests/forgery/test_carriers.py::test_no_body_or_record_says_that_nothing_happened",
    ),
    "amends.core.operation:Operation.repeatable": (
        "tests/core/test_operation.py",
        "tests/forgery/test_peer.py",
        "tests/forgery/test_carriers.py",
        "tests/forgery/test_other_clients.py",
    ),
    "amends.foreign.exceptions:_not_executed": (
        "tests/forgery/test_claims.py::test_what_an_exception_says_about_itself_is_not_that_nothing_was_sent",
    ),
    "amends.foreign.sdks:_called_service": (
        "tests/forgery/test_executed.py::test_an_sdk_that_many_services_share",
    ),
    "amends.foreign.sdks:_is_elsewhere": (
        "tests/forgery/test_executed.py::test_an_sdk_that_calls_another_host",
    ),
    "amends.gateway.callers:Callers.caller": ("tests/gateway/test_callers.py::test_nobody_else_gets_in",),
    "amends.http.redirects:same_party": ("tests/http/test_redirects.py",),
    "amends.http.request_info:is_trusted": ("tests/http/test_hosts.py",),
    "amends.vendors.computing:only_computes": ("tests/vendors/test_computing.py",),
    "amends.page.access:same_origin": ("tests/page/test_tasks.py::test_tasks",),
    "amends.process.evidence:fault_of": ("tests/process/test_run.py",),
    "amends.tasks.remote.reported_failures:redirect_fault": ("tests/tasks/remote/test_reported_failures.py",),
    "amends.carriers.report:_may_repeat": (
        "tests/commands/test_decode.py::test_a_wire_that_states_executed_maybe",
        "tests/commands/test_decode.py::test_the_decision_depends_on_whether_a_repeat_is_safe",
    ),
    "amends.carriers.http:_with_proof": ("tests/forgery/test_executed.py",),
    "amends.carriers.http:_in_success": (
        "tests/forgery/test_executed.py::test_no_answer_without_a_status_says_that_nothing_happened",
    ),
    "amends.carriers.jsonrpc:error_in": (
        "tests/forgery/test_carriers.py",
        "tests/carriers/test_jsonrpc.py",
    ),
    "amends.dialects.arcp:fault_of": (
        "tests/forgery/test_carriers.py",
        "tests/dialects/test_arcp.py",
    ),
    "amends.dialects.envelope:_executed": (
        "tests/forgery/test_carriers.py",
        "tests/dialects/test_executed.py",
    ),
    "amends.dialects.problem:_executed": (
        "tests/forgery/test_executed.py",
        "tests/dialects/test_executed.py",
    ),
    "amends.vendors.grpc:read_trailers": (
        "tests/forgery/test_claims.py::test_only_the_number_of_a_grpc_status_says_that_nothing_happened",
    ),
    "amends.http.idempotency_request:after_failure": ("tests/http/test_idempotency_request.py",),
    "amends.http.idempotency_middleware:settle_failure": ("tests/http/test_idempotency_middleware.py",),
    "amends.http.application_errors:_from_upstream": ("tests/http/test_application_errors.py",),
    "amends.recovery.stepper:Stepper.executed": ("tests/recovery/test_stepper.py",),
    "amends.recovery.stepper:Stepper.not_happened": ("tests/recovery/test_stepper.py",),
    "amends.recovery.operation_flow:Flow._may_move": ("tests/recovery/test_failover.py",),
    "amends.effects.flow:_decide_doubt": (
        "tests/effects/test_time_limits.py",
        "tests/effects/test_dead_owners.py",
    ),
    "amends.effects.flow:_failed": ("tests/effects/test_flow.py",),
    "amends.effects.steps:Steps._failed": ("tests/effects/test_steps.py",),
    "amends.tasks.late_results:_outcome": ("tests/tasks/test_late_results.py",),
    "amends.tasks.attempts:Attempts.may_have_happened": ("tests/tasks/test_attempts.py",),
    "amends.bindings.mcp.http_recorder:_read_error": ("tests/bindings/test_mcp_faults.py",),
    "amends.bindings.mcp.http_recorder:_read": ("tests/bindings/test_mcp_poison.py",),
    "amends.arcp.runtime.ledger:may_rerun": (
        "tests/arcp/test_idempotency.py",
        "tests/arcp/test_interrupted.py",
    ),
    "amends.arcp.runtime.jobs.steps:JobSteps.safe_to_repeat": (
        "tests/arcp/test_agent_limits.py::test_a_run_whose_steps_have_ended_is_repeated_without_calling_them_again",
        "tests/arcp/test_agent_limits.py::test_what_may_have_happened_or_cannot_help_is_not_repeated",
    ),
    "amends.arcp.runtime.cluster.membership:Membership.repeatable": ("tests/arcp/test_membership.py",),
    "amends.http.calls:_RequestOperation.repeatable": (
        "tests/forgery/test_peer.py",
        "tests/bindings/test_client_keys.py",
    ),
    "amends.core.operation:Operation.of_tool": (
        "tests/forgery/test_claims.py::test_only_a_hint_that_is_exactly_true_counts",
    ),
    "amends.durable.keys:Keys._own": ("tests/durable/test_keys.py",),
    "amends.stores.nats.claims:Claims.change": (
        "tests/stores/test_nats.py::test_a_hundred_server_kills",
        "tests/stores/test_nats.py::test_no_clock_of_a_server_ends_the_lease_of_a_message",
    ),
    "amends.stores.nats.claims:Claims.lease_left": (
        "tests/stores/test_nats.py::test_no_clock_of_a_server_ends_the_lease_of_a_message",
    ),
    "amends.gateway.generations:refuses_request": (
        "tests/gateway/test_generations.py::test_a_call_that_may_have_happened_is_not_sent_in_the_other_generation",
        "tests/gateway/test_stdio.py::test_a_call_that_may_have_happened_is_not_sent_in_the_other_generation",
    ),
    "amends.gateway.rpc:loses_session": (
        "tests/forgery/test_claims.py::test_only_a_status_says_that_a_session_is_lost",
    ),
    "amends.arcp.wire.chunks:Assembly.result": ("tests/arcp/test_chunks.py",),
    "amends.arcp.client.inbox:PendingRequests._find": (
        "tests/forgery/test_claims.py::test_an_answer_with_another_id_answers_nothing",
    ),
    "amends.gateway.stdio_process:StdioProcess._take": (
        "tests/forgery/test_claims.py::test_a_server_cannot_answer_a_request_with_an_id_of_its_own",
    ),
    "amends.arcp.runtime.server.sessions:_check_token": (
        "tests/arcp/test_sessions.py",
        "tests/arcp/test_rotation.py",
    ),
    "amends.durable.workers:Workers.alive": (
        "tests/durable/test_workers.py::test_a_step_of_the_wall_clock_ends_no_worker",
    ),
    "amends.serving.server_errors:with_executed": (
        "tests/bindings/test_mcp_guard.py::test_a_tool_that_makes_one_call_and_nothing_else",
        "tests/foreign/test_in_doubt.py",
    ),
    "amends.tools:tool_fault": ("tests/test_tools.py",),
}
"""The decision → node ids of tests, relative to the repository; a file counts for all of its tests."""

OWN = "its own failure: it refuses, or has called nothing yet"
LOWERS = 'makes "no" into "maybe", or keeps it'
READS = "reads what another function decided"
TABLE = "a row of a table"

NO_DECISIONS: dict[str, str] = {
    "amends.arcp.client.session:Session.wait_open": OWN,
    "amends.arcp.client.session:Session._check_not_over": OWN,
    "amends.arcp.client.session_faults:client_closed": OWN,
    "amends.arcp.client.session_faults:not_opened": OWN,
    "amends.audit.surfaces.reading:read": LOWERS,
    "amends.bindings.a2a.connection:Connection._make": OWN,
    "amends.bindings.agent_framework:Failures.process": OWN,
    "amends.bindings.langchain:_complete": OWN,
    "amends.bindings.llama_index:_Guarded._call": OWN,
    "amends.bindings.llama_index:_Guarded._acall": OWN,
    "amends.bindings.mcp.calls:Calls.list_operation": OWN,
    "amends.bindings.openai_agents:Failures._guarded": OWN,
    "amends.bindings.strands:_result": OWN,
    "amends.bindings.temporal:to_application_error": READS,
    "amends.bindings.tool_calls:Run.failed": OWN,
    "amends.bindings.tool_calls:_Attempt.checked": OWN,
    "amends.bindings.tool_calls:_Attempt.__exit__": OWN,
    "amends.carriers.extraction:_joined": LOWERS,
    "amends.carriers.http:read": LOWERS,
    "amends.chain.hops:Hop.onward": OWN,
    "amends.cli.command_errors:_of_a_part": OWN,
    "amends.core.decision:choose": READS,
    "amends.core.vocabularies.adcp:_row": TABLE,
    "amends.core.vocabularies.http:_correctable": TABLE,
    "amends.core.vocabularies.http:_unsupported": TABLE,
    "amends.dialects.record:attach": LOWERS,
    "amends.effects.errors:key_reused": OWN,
    "amends.effects.errors:running": OWN,
    "amends.effects.errors:may_still_act": OWN,
    "amends.effects.errors:running_around": OWN,
    "amends.effects.errors:unavailable": OWN,
    "amends.effects.steps:EffectStep.fail": READS,
    "amends.effects.steps:_received": OWN,
    "amends.errors.base:FaultError.__init__": OWN,
    "amends.foreign.exceptions:_cause_fault": LOWERS,
    "amends.foreign.in_doubt:_lost": LOWERS,
    "amends.foreign.in_doubt:_is_unanswered": READS,
    "amends.foreign.responses:_unlisted_fault": LOWERS,
    "amends.foreign.sdks:sdk_fault": LOWERS,
    "amends.gateway.http_upstream:HttpUpstream._give_up": READS,
    "amends.gateway.http_upstream:HttpUpstream.send_own": READS,
    "amends.gateway.mcp:rpc_error_body": READS,
    "amends.gateway.refusals:refusal": OWN,
    "amends.gateway.repeats:Repeats._is_own_timeout": READS,
    "amends.gateway.repeats:Repeats._attempt": READS,
    "amends.gateway.repeats:Repeats._refuse": OWN,
    "amends.gateway.repeats:Repeats.repeatable": READS,
    "amends.http.batch:_recovery_of_all": READS,
    "amends.http.idempotency_request:store_down_fault": OWN,
    "amends.process.evidence:_profile_row": LOWERS,
    "amends.recovery.give_up:final_error": READS,
    "amends.recovery.give_up:with_wait": READS,
    "amends.recovery.upstream:Upstream.refusal": OWN,
    "amends.serving.rejection:rejection_for": OWN,
    "amends.serving.server_errors:hides_that_nothing_happened": READS,
    "amends.tasks.agent:Agent.perform": OWN,
    "amends.tasks.attempts:Attempts.attempt_step": OWN,
    "amends.tasks.connections:_call_fault": READS,
    "amends.tasks.faults:interrupted_attempt": OWN,
    "amends.tasks.fold:_failed": READS,
    "amends.vendors.reading:build": READS,
}
"""Functions that name "it did not happen" and decide nothing about a peer, with the reason."""

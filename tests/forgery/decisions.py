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
    "amends.durable.deadlines:Deadlines.left": ("tests/durable/test_deadlines.py",),
    "amends.durable.lock_owner:LockOwner.ended": (
        "tests/durable/test_lock_owner.py::test_only_the_end_of_a_process_is_its_end",
        "tests/durable/test_lock_owner.py::test_what_is_not_known_has_not_ended",
    ),
    "amends.http.calls:Call._is_in_use": (
        "tests/bindings/test_client_key_reuse.py::test_another_key_in_the_answer_is_no_reason_to_wait",
        "tests/bindings/test_client_key_reuse.py::test_a_key_in_use_is_waited_for_once",
    ),
    "amends.durable.keys:Keys.lease_left": (
        "tests/durable/test_deadlines.py::test_a_step_of_the_wall_clock_frees_no_key",
        "tests/durable/test_deadlines.py::test_a_process_that_is_proved_to_have_ended_has_no_lease",
    ),
    "amends.durable.keys:Keys.call_left": (
        "tests/durable/test_deadlines.py::test_no_is_not_believed_before_the_time_limit",
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
}
"""The decision → node ids of tests, relative to the repository; a file counts for all of its tests."""

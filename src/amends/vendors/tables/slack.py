"""Slack."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    IN_PROGRESS,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    SIGN_IN,
    STEP_UP,
    TIMEOUT,
    TOO_LARGE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="slack",
    title="Slack",
    docs="https://docs.slack.dev/reference/methods",
    words=words(
        (RATE, "ratelimited rate_limited"),
        (OVERLOADED, "fatal_error internal_error service_unavailable team_added_to_org"),
        (TIMEOUT, "request_timeout"),
        (BAD_KEY, "invalid_auth not_authed no_token token_rotation_failed invalid_refresh_token"),
        (EXPIRED, "token_expired"),
        (SIGN_IN, "token_revoked"),
        (DISABLED, "account_inactive org_login_required two_factor_setup_required"),
        (STEP_UP, "missing_scope not_allowed_token_type"),
        (FORBIDDEN, "no_permission restricted_action ekm_access_denied access_denied accesslimited"),
        (FORBIDDEN, "team_access_not_granted cant_update_message cant_delete_message user_is_restricted"),
        (QUOTA, "message_limit_exceeded"),
        (NOT_FOUND, "channel_not_found user_not_found message_not_found users_not_found thread_not_found"),
        (NOT_FOUND, "team_not_found file_not_found"),
        (IN_PROGRESS, "external_channel_migrating"),
        (FORBIDDEN, "restricted_action_read_only_channel restricted_action_thread_only_channel"),
        (FORBIDDEN, "restricted_action_non_threadable_channel restricted_action_thread_locked"),
        (FORBIDDEN, "channel_is_limited_access team_access_denied as_user_not_supported"),
        (CONFLICT, "not_in_channel is_archived already_in_channel name_taken already_reacted"),
        (TOO_LARGE, "msg_too_long msg_blocks_too_long"),
        (
            INVALID,
            "no_text invalid_arguments invalid_arg_name invalid_blocks invalid_form_data unknown_method",
        ),
        (INVALID, "invalid_charset invalid_json json_not_object missing_post_type invalid_cursor"),
    ),
    headers=("x-slack-req-id", "x-slack-backend", "x-oauth-scopes", "x-slack-unique-id"),
)

"""Slack, Twilio, SendGrid, Discord, Telegram, Zoom, Intercom, Postmark."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    IN_PROGRESS,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    SIGN_IN,
    STEP_UP,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Key, Vendor, words

__all__ = ["VENDORS"]

SLACK = Vendor(
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

TWILIO = Vendor(
    name="twilio",
    title="Twilio",
    docs="https://www.twilio.com/docs/api/errors",
    words=words(
        (RATE, "20429 14107 54009 30022"),
        (QUOTA, "63038 30450"),
        (BAD_KEY, "20003 20104"),
        (DISABLED, "20005 10001 30002"),
        (NOT_FOUND, "20404 21608"),
        (FORBIDDEN, "20403 21610 21408"),
        (INVALID, "20001 21211 21212 21604 21602 21614 21606"),
        (TOO_LARGE, "21617 21605"),
        (INTERNAL, "20500"),
        (UNAVAILABLE, "20503"),
    ),
    headers=("twilio-request-id", "twilio-concurrent-requests", "twilio-request-duration"),
    numbers=True,
)

SENDGRID = Vendor(
    name="sendgrid",
    title="SendGrid",
    # Errors have a message, a field and a help link, but no code: the status decides.
    docs="https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/errors",
    headers=("x-no-cors-reason",),
)

DISCORD = Vendor(
    name="discord",
    title="Discord",
    docs="https://discord.com/developers/docs/topics/opcodes-and-status-codes",
    words=words(
        (RATE, "20028 20016 20022 31001 40062"),
        (OVERLOADED, "130000"),
        (BAD_KEY, "40001 50014"),
        (FORBIDDEN, "50001 50013 50007 40007"),
        (NOT_FOUND, "10003 10004 10008 10011 10013 10014 10015"),
        (QUOTA, "30001 30003 30005 30013"),
        (INVALID, "50035 50006 50109"),
        (TOO_LARGE, "40005"),
        (CONFLICT, "50027 40060"),
    ),
    headers=("x-ratelimit-scope", "x-ratelimit-global", "x-ratelimit-bucket"),
    numbers=True,
)

TELEGRAM = Vendor(
    name="telegram",
    title="Telegram Bot API",
    docs="https://core.telegram.org/bots/api#making-requests",
)

ZOOM = Vendor(
    name="zoom",
    title="Zoom",
    docs="https://developers.zoom.us/docs/api/using-zoom-apis/",
    words=words(
        (QUOTA, "DAILY-LIMIT Daily-limit"),
        (RATE, "QPS Per-second-limit"),
        (EXPIRED, "124 4700"),
        (STEP_UP, "4711"),
        (NOT_FOUND, "1001 3001"),
        (FORBIDDEN, "200 1010"),
        (INVALID, "300"),
    ),
    headers=("x-zm-trackingid", "x-zm-zoneid", "x-ratelimit-type"),
    numbers=True,
)

INTERCOM = Vendor(
    name="intercom",
    title="Intercom",
    docs="https://developers.intercom.com/docs/references/rest-api/errors/error-objects",
    words=words(
        (BAD_KEY, "token_unauthorized token_not_found token_suspended"),
        (FORBIDDEN, "api_plan_restricted action_forbidden"),
        (INVALID, "parameter_invalid parameter_not_found bad_request"),
        (CONFLICT, "unique_user_constraint"),
        (TIMEOUT, "server_timeout"),
        (UNAVAILABLE, "service_unavailable client_error"),
    ),
    headers=("x-intercom-version",),
)

POSTMARK = Vendor(
    name="postmark",
    title="Postmark",
    docs="https://postmarkapp.com/developer/api/overview#error-codes",
    words=words(
        (BAD_KEY, "10"),
        (QUOTA, "405"),
        (FORBIDDEN, "406 400 401 412 413"),
        (INVALID, "300 402 403 411"),
        (NOT_FOUND, "701 1101"),
        (RATE, "429"),
    ),
    headers=("x-pm-",),
    numbers=True,
)

RESEND = Vendor(
    name="resend",
    title="Resend",
    docs="https://resend.com/docs/api-reference/errors",
    words=words(
        (RATE, "rate_limit_exceeded"),
        (QUOTA, "daily_quota_exceeded monthly_quota_exceeded"),
        (BAD_KEY, "missing_api_key restricted_api_key invalid_api_key"),
        (IN_PROGRESS, "concurrent_idempotent_requests"),
        (CONFLICT, "invalid_idempotent_request"),
        (INVALID, "missing_required_field invalid_from_address invalid_attachment invalid_idempotency_key"),
    ),
    keys=Key(header="Idempotency-Key", hours=24),
)

MANDRILL = Vendor(
    name="mandrill",
    title="Mailchimp Transactional (Mandrill)",
    docs="https://mailchimp.com/developer/transactional/docs/fundamentals/",
    # All errors have status 500, so the word has priority.
    words=words(
        (BAD_KEY, "Invalid_Key"),
        (QUOTA, "PaymentRequired"),
        (INVALID, "ValidationError"),
        (NOT_FOUND, "Unknown_Template Unknown_Subaccount Unknown_Message Unknown_Sender"),
        (UNAVAILABLE, "ServiceUnavailable"),
    ),
)

VENDORS = (*(SLACK, TWILIO, SENDGRID, DISCORD, TELEGRAM, ZOOM, INTERCOM, POSTMARK), RESEND, MANDRILL)

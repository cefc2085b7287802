"""Which vendor's shape a body has. Used where no header shows the sender, and for the name in reports."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["vendor_of", "vendor_of_list"]


def vendor_of(body: dict[str, object]) -> str | None:
    """Return the vendor whose error shape an object has, or None."""
    error = body.get("error")
    if isinstance(error, dict) and not ("msg" in body and "code" in body):
        return _of_error(body, error)
    for member, name in _MEMBERS:
        if member in body:
            found = name if isinstance(name, str) else name(body)
            if found is not None:
                return found
    return None


def vendor_of_list(items: list[object]) -> str | None:
    """Return the vendor of a body that is an array, or None."""
    first = items[0] if items else None
    if not isinstance(first, dict):
        return None
    if isinstance(first.get("errorCode"), str) and "message" in first:
        return "salesforce"
    return vendor_of(first)


def _of_error(body: dict[str, object], error: dict[str, object]) -> str | None:
    code, kind = error.get("code"), _text(error.get("type"))
    if "base_resp" in body:
        return "minimax"
    if "guardrails" in body:
        return "mistral"
    if "error_type" in body and "status" in body:
        return "openrouter"
    if isinstance(code, int) and not isinstance(code, bool):
        if "fbtrace_id" in error:
            return "meta"
        if isinstance(error.get("status"), str):
            return "google"
        if "metadata" in error or "user_id" in body:
            return "openrouter"
        if "errors" in error:
            return "google"
        return "vllm" if "param" in error or kind is not None else None
    if isinstance(code, str) and len(code) == 4 and code.isdecimal() and set(error) <= {"code", "message"}:
        return "zhipu"
    if kind == "error" and "request_id" in body and "param" in error:
        return "fireworks"
    if "root_cause" in error:
        return "elasticsearch"
    if "innererror" in error or "innerError" in error:
        inner = error.get("innerError") or error.get("innererror")
        graph = isinstance(inner, dict) and ("request-id" in inner or "client-request-id" in inner)
        return "microsoft-graph" if graph else "azure-openai" if "param" in error else "azure"
    if _text(body.get("type")) == "error":
        return "openai" if "sequence_number" in body or "event_id" in body else "anthropic"
    if "decline_code" in error or "request_log_url" in error or kind in {"card_error", "idempotency_error"}:
        return "stripe"
    if ".tag" in error:
        return "dropbox"
    if isinstance(error.get("status"), int) and kind is None:
        return "spotify"
    if "param" in error and kind is not None:
        return "openai"
    if kind is not None and kind.isupper() and set(error) <= {"type", "message"}:
        return "airtable"
    if isinstance(code, str) and code.isalnum() and code[:1].isupper() and not code.isupper():
        return "azure"
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _not_ok(body: dict[str, object]) -> str | None:
    if body["ok"] is not False:
        return None
    if "error_code" in body:
        return "telegram"
    return "slack" if isinstance(body.get("error"), str) else None


def _unsuccessful(body: dict[str, object]) -> str | None:
    if body["success"] is not False:
        return None
    code = body.get("code")
    if isinstance(code, str) and code.isdecimal() and len(code) == 6:
        return "snowflake"
    errors = body.get("errors")
    if isinstance(errors, list) and "requestId" in body and "messages" not in body:
        return "marketo"
    return "cloudflare" if isinstance(errors, list) else None


def _error_object(body: dict[str, object]) -> str | None:
    if _text(body["object"]) != "error":
        return None
    if isinstance(body.get("code"), int):
        return "vllm"
    return "notion" if isinstance(body.get("status"), int) else "mistral"


def _errors(body: dict[str, object]) -> str | None:
    errors = body["errors"]
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, dict):
        return None
    if "category" in first:
        return "square"
    if "extensions" in first or "locations" in first or "path" in first:
        return "graphql"
    code = first.get("code")
    if isinstance(code, str) and code.isupper() and "detail" in first:
        return "docker-registry"
    if isinstance(code, int) and set(first) <= {"code", "message", "label"}:
        return "x"
    if "errorId" in first:
        return "ebay"
    if isinstance(first.get("error"), str) and "message" in first:
        return "airtable"
    return "sendgrid" if {"message", "field"} <= set(first) and "code" not in body else None


def _error_code(body: dict[str, object]) -> str | None:
    code = body["error_code"]
    if isinstance(code, int) and "error_msg" in body:
        return "qianfan"
    if "error_type" in body:
        return "plaid"
    return "databricks" if isinstance(code, str) and code.isupper() else None


def _error_code_word(body: dict[str, object]) -> str | None:
    code = body["errorCode"]
    if isinstance(code, str) and code.startswith("E0000"):
        return "okta"
    return "adyen" if "errorType" in body or "pspReference" in body else None


def _numbered(body: dict[str, object]) -> str | None:
    code = body["code"]
    if isinstance(code, int) and "msg" in body and code > 99_990_000:
        return "feishu"
    if isinstance(code, int) and (status := _text(body.get("status"))) is not None and status.isupper():
        # OpenAI's SDK keeps the error of a compatible server without its wrapper.
        return "google"
    if _text(body.get("status")) == "error" and isinstance(body.get("name"), str):
        return "mandrill"
    if isinstance(code, int) and not isinstance(code, bool) and isinstance(body.get("message"), str):
        if "more_info" in body:
            return "twilio"
        if "errors" in body or set(body) == {"code", "message"}:
            return "discord" if code >= 10000 else "zoom"
        return None
    if isinstance(code, str) and "msg" in body:
        return "connect"
    if isinstance(code, str) and " " in code and isinstance(body.get("error"), str):
        return "xai"
    if isinstance(code, str) and len(code) == 6 and code.isdecimal() and "message" in body:
        return "snowflake"
    if isinstance(code, str) and code.startswith("PGRST"):
        return "supabase"
    return None


def _kind(body: dict[str, object]) -> str | None:
    return "kubernetes" if _text(body["kind"]) == "Status" and "apiVersion" in body else None


def _type(body: dict[str, object]) -> str | None:
    kind = _text(body["type"])
    if kind is None:
        return None
    if kind.startswith(("https://api.twitter.com/2/", "https://api.x.com/2/")):
        return "x"
    if kind == "error" and "code" in body and "request_id" in body:
        return "box"
    return "intercom" if kind == "error.list" else None


def _description(body: dict[str, object]) -> str | None:
    if not isinstance(body.get("error"), str):
        return None
    return "entra" if "error_codes" in body else "oauth"


def _described(body: dict[str, object]) -> str | None:
    error = body.get("error")
    return "zendesk" if isinstance(error, str) and error.isalnum() and error[:1].isupper() else None


def _documented(body: dict[str, object]) -> str | None:
    return "github" if "message" in body else None


def _detailed(body: dict[str, object]) -> str | None:
    detail = body["detail"]
    return "tavily" if isinstance(detail, dict) and set(detail) == {"error"} else None


def _json(body: dict[str, object]) -> str | None:
    inner = body["json"]
    return "reddit" if isinstance(inner, dict) and "errors" in inner else None


def _response(body: dict[str, object]) -> str | None:
    inner = body["Response"]
    return "tencent" if isinstance(inner, dict) and isinstance(inner.get("Error"), dict) else None


def _figma(body: dict[str, object]) -> str | None:
    return "figma" if isinstance(body.get("status"), int) else None


_MEMBERS: tuple[tuple[str, str | Callable[[dict[str, object]], str | None]], ...] = (
    ("__type", "aws"),
    ("Response", _response),
    ("x402Version", "x402"),
    ("cloudflare_error", "cloudflare"),
    ("documentation_url", _documented),
    ("fbtrace_id", "meta"),
    ("debug_id", "paypal"),
    ("correlationId", "hubspot"),
    ("policyName", "hubspot"),
    ("errorMessages", "atlassian"),
    ("statementHandle", "snowflake"),
    ("sqlState", "snowflake"),
    ("estimated_time", "huggingface"),
    ("error_summary", "dropbox"),
    ("errcode", "wechat"),
    ("base_resp", "minimax"),
    ("err_code", "deepgram"),
    ("ErrorCode", "postmark"),
    ("serviceErrorCode", "linkedin"),
    ("kind", _kind),
    ("object", _error_object),
    ("ok", _not_ok),
    ("success", _unsuccessful),
    ("error_code", _error_code),
    ("error_type", "huggingface"),
    ("errorCode", _error_code_word),
    ("global", "discord"),
    ("json", _json),
    ("errors", _errors),
    ("type", _type),
    ("code", _numbered),
    ("err", _figma),
    ("error_description", _description),
    ("description", _described),
    ("detail", _detailed),
)

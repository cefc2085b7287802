"""The vendors by name, and the index over all of their words. Loaded on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import NamedTuple

from msgspec.structs import replace

from amends.core.validate import shown
from amends.vendors.model import Kind, Vendor

__all__ = ["FORMATS", "NAMES", "Index", "check", "find", "index", "is_service", "vendor"]

_NAMES = (
    "openai azure-openai",
    "anthropic",
    "google firebase",
    "mistral cohere groq openrouter together huggingface vllm ollama deepseek xai cerebras elevenlabs",
    "deepgram assemblyai fireworks exa tavily",
    "dashscope zhipu moonshot minimax qianfan volcengine wechat feishu tencent",
    "aws amazon-sp",
    "azure microsoft-graph entra",
    "github gitlab docker-registry",
    "stripe adyen paypal square plaid",
    "slack twilio sendgrid discord twitch pusher telegram zoom intercom postmark resend mandrill",
    "notion atlassian salesforce hubspot zendesk linear airtable figma spotify dropbox box monday",
    "clickup docusign zoho mediawiki",
    "cloudflare kubernetes elasticsearch databricks snowflake clickhouse heroku digitalocean vercel",
    "okta supabase",
    "x reddit meta linkedin",
    "shopify xero quickbooks netsuite ebay binance kraken etherscan alphavantage yelp newsapi marketo",
    "oauth grpc connect graphql soap x402 edge",
)
NAMES: tuple[str, ...] = tuple(name for line in _NAMES for name in line.split())
"""The names of all vendors. Each has a module of its name in `tables`."""

FORMATS = frozenset({"oauth", "grpc", "connect", "graphql", "soap", "x402", "edge"})
"""Names that stand for the format of answers and not for one service."""


def is_service(name: str | None) -> bool:
    """
    Return whether a name stands for one service, whose answers are believed if the user or the host names it.

    >>> is_service("stripe"), is_service("graphql"), is_service(None)
    (True, False, False)
    """
    return name is not None and name not in FORMATS


_ALIASES = {
    "wecom": "wechat",
    "gemini": "google",
    "vertex": "google",
    "google-cloud": "google",
    "bedrock": "aws",
    "aliyun": "dashscope",
    "qwen": "dashscope",
    "kimi": "moonshot",
    "lark": "feishu",
    "dingtalk": "wechat",
    "doubao": "volcengine",
    "s3": "aws",
    "dynamodb": "aws",
    "amazon": "aws",
    "azure_openai": "azure-openai",
    "azureopenai": "azure-openai",
    "azure-storage": "azure",
    "cosmos": "azure",
    "graph": "microsoft-graph",
    "msgraph": "microsoft-graph",
    "hugging-face": "huggingface",
    "jira": "atlassian",
    "confluence": "atlassian",
    "k8s": "kubernetes",
    "opensearch": "elasticsearch",
    "elastic": "elasticsearch",
    "docker": "docker-registry",
    "twitter": "x",
    "facebook": "meta",
    "whatsapp": "meta",
    "oauth2": "oauth",
    "twirp": "connect",
}

_COMMON = frozenset(
    {
        *(
            "day",
            "authentication",
            "timeout",
            "minute",
            "concurrent",
            "internal",
            "validation",
            "duplicate",
            "expired",
            "generation",
        ),
        *(
            "loading",
            "maintenance",
            "suspended",
            "missing",
            "Invalid",
            "Expired",
            "Gone",
            "DAILY",
            "QPS",
            "BLANK",
        ),
        *(
            "TAKEN",
            "ROLLING",
            "SECONDLY",
            "moderation",
            "UNSUPPORTED",
            "PERMISSION_DENIED",
            "INVALID_TYPE",
            "INVALID_FIELD",
            "insufficient_funds",
            "QUOTA_EXCEEDED",
            "INSUFFICIENT_FUNDS",
            "Forbidden",
            "BadRequest",
        ),
    }
)
"""Words of one vendor that others use for other things: they count only if the vendor was recognised."""


class Index(NamedTuple):
    """What is known over all vendors."""

    vendors: Mapping[str, Vendor]
    words: Mapping[str, Kind | Mapping[int, Kind]]
    """Words on which all vendors agree, for a sender that was not recognised. Numbers are left out."""
    unless: Mapping[str, Kind]
    headers: Mapping[str, str]
    prefixes: tuple[tuple[str, str], ...]


def check(name: str) -> str:
    """
    Return the name of a vendor, for its name or an alias.

    Raises:
        LookupError: if there is none; the message lists the names.

    """
    found = find(name)
    if found is None:
        raise LookupError(f"no vendor {shown(name)}; there are {', '.join(NAMES)}")
    return found


def find(name: object) -> str | None:
    """Return the name of a vendor, for its name or an alias; None if there is none."""
    found = _ALIASES.get(name.lower(), name.lower()) if isinstance(name, str) else None
    return found if found in NAMES else None


def vendor(name: str) -> Vendor:
    """
    Return the vendor with this name or alias.

    >>> vendor("openai").words["insufficient_quota"].code
    'QUOTA_EXCEEDED'

    Raises:
        LookupError: if there is none; the message lists the names.

    """
    return index().vendors[check(name)]


@cache
def index() -> Index:
    """Return the index. The first call loads all tables."""
    vendors: dict[str, Vendor] = {
        name: import_module(f"amends.vendors.tables.{name.replace('-', '_')}").VENDOR for name in NAMES
    }
    words: dict[str, Kind | Mapping[int, Kind]] = {}
    unless: dict[str, Kind | None] = {}
    for each in vendors.values():
        for word, kind in each.words.items():
            if word not in _COMMON and not (each.numbers and word.lstrip("-").isdecimal()):
                words[word] = _agreed(words[word], kind) if word in words else kind
        for word, kind in each.unless.items():
            unless[word] = kind if unless.get(word, kind) == kind else None
    headers: dict[str, str] = {}
    prefixes = []
    for each in vendors.values():
        for name in each.headers:
            if name.endswith("-"):
                prefixes.append((name, each.name))
            else:
                headers[name] = each.name
    return Index(
        vendors,
        {word: kind for word, kind in words.items() if kind},
        {word: kind for word, kind in unless.items() if kind is not None},
        headers,
        tuple(prefixes),
    )


def _agreed(one: Kind | Mapping[int, Kind], other: Kind | Mapping[int, Kind]) -> Kind | Mapping[int, Kind]:
    """Return the meaning that two vendors give a word; where they differ, nothing."""
    if (
        isinstance(one, Kind)
        and isinstance(other, Kind)
        and replace(one, wait=None) == replace(other, wait=None)
    ):
        # A documented wait is one service's own.
        return one if one == other else replace(one, wait=None)
    if one == other:
        return one
    first = {0: one} if isinstance(one, Kind) else one
    second = {0: other} if isinstance(other, Kind) else other
    merged = dict(first)
    for status, kind in second.items():
        if merged.get(status, kind) != kind:
            merged.pop(status, None)
        else:
            merged[status] = kind
    return merged

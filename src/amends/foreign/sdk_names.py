"""Which SDK an exception class belongs to, and the vendor whose answers it carries."""

from __future__ import annotations

from amends.foreign.classes import names

__all__ = ["SDKS", "sdk_of"]

# The first parts of a module's name → the vendor, or None for SDKs that are used with many services.
SDKS: dict[str, str | None] = {
    "openai": None,
    "anthropic": "anthropic",
    "groq": "groq",
    "together": "together",
    "cerebras": "cerebras",
    "litellm": None,
    "pydantic_ai": None,
    "google.genai": "google",
    "google.api_core": "google",
    "googleapiclient": "google",
    "vertexai": "google",
    "azure": "azure",
    "mistralai": "mistral",
    "cohere": "cohere",
    "ollama": "ollama",
    "huggingface_hub": "huggingface",
    "stripe": "stripe",
    "twilio": "twilio",
    "slack_sdk": "slack",
    "github": "github",
    "gitlab": "gitlab",
    "kubernetes": "kubernetes",
    "kubernetes_asyncio": "kubernetes",
    "elasticsearch": "elasticsearch",
    "elastic_transport": "elasticsearch",
    "opensearchpy": "elasticsearch",
    "notion_client": "notion",
    "discord": "discord",
    "telegram": "telegram",
    "databricks": "databricks",
    "simple_salesforce": "salesforce",
    "hubspot": "hubspot",
    "square": "square",
    "python_http_client": "sendgrid",
    "docker": "docker-registry",
    "jira": "atlassian",
    "atlassian": "atlassian",
    "cloudflare": "cloudflare",
    "tweepy": "x",
    "prawcore": "reddit",
    "elevenlabs": "elevenlabs",
    "deepgram": "deepgram",
    "shopify": "shopify",
    "supabase": "supabase",
    "postgrest": "supabase",
    "gql": "graphql",
    "authlib": "oauth",
}


def sdk_of(cls: type) -> tuple[str, str | None] | None:
    """
    Return the SDK of the nearest class along the MRO that belongs to one, with its vendor.

    >>> sdk_of(ValueError) is None
    True
    """
    for name in names(cls):
        first, _, rest = name.partition(".")
        both = f"{first}.{rest.partition('.')[0]}"
        for root in (both, first):
            if root in SDKS:
                return root, SDKS[root]
    return None

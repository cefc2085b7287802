"""
The hosts of vendors, for clients: they know which service they call before it answers.

Answers are recognised by shape and headers, because gateways and compatible servers use other names. A host only says
which answers of a client are looked into, which routes only compute, and which header carries an idempotency key.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

__all__ = ["HOSTS", "vendor_of_host", "vendor_of_origin"]

# A name that begins with a dot matches all hosts below it.
HOSTS: dict[str, str] = {
    "api.openai.com": "openai",
    ".openai.azure.com": "azure-openai",
    ".cognitiveservices.azure.com": "azure-openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
    "aiplatform.googleapis.com": "google",
    "maps.googleapis.com": "google",
    "www.googleapis.com": "google",
    "sheets.googleapis.com": "google",
    "gmail.googleapis.com": "google",
    "api.mistral.ai": "mistral",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "api.groq.com": "groq",
    "openrouter.ai": "openrouter",
    "api.together.xyz": "together",
    "api.together.ai": "together",
    "api-inference.huggingface.co": "huggingface",
    "router.huggingface.co": "huggingface",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "xai",
    "api.cerebras.ai": "cerebras",
    "api.elevenlabs.io": "elevenlabs",
    "api.deepgram.com": "deepgram",
    "api.assemblyai.com": "assemblyai",
    "streaming.assemblyai.com": "assemblyai",
    "api.github.com": "github",
    "gitlab.com": "gitlab",
    "api.stripe.com": "stripe",
    "api-m.paypal.com": "paypal",
    "api-m.sandbox.paypal.com": "paypal",
    "connect.squareup.com": "square",
    "connect.squareupsandbox.com": "square",
    ".adyen.com": "adyen",
    ".adyenpayments.com": "adyen",
    ".plaid.com": "plaid",
    "slack.com": "slack",
    "api.slack.com": "slack",
    "www.slack.com": "slack",
    "api.twilio.com": "twilio",
    "api.sendgrid.com": "sendgrid",
    "discord.com": "discord",
    "gateway.discord.gg": "discord",
    "api.twitch.tv": "twitch",
    "eventsub.wss.twitch.tv": "twitch",
    "api.telegram.org": "telegram",
    "api.zoom.us": "zoom",
    "api.intercom.io": "intercom",
    "api.postmarkapp.com": "postmark",
    "api.notion.com": "notion",
    "api.atlassian.com": "atlassian",
    ".atlassian.net": "atlassian",
    ".salesforce.com": "salesforce",
    "api.hubapi.com": "hubspot",
    ".zendesk.com": "zendesk",
    "api.linear.app": "linear",
    "api.airtable.com": "airtable",
    "api.figma.com": "figma",
    "api.spotify.com": "spotify",
    "api.dropboxapi.com": "dropbox",
    "content.dropboxapi.com": "dropbox",
    "api.box.com": "box",
    "api.monday.com": "monday",
    "api.clickup.com": "clickup",
    "api.cloudflare.com": "cloudflare",
    ".snowflakecomputing.com": "snowflake",
    ".cloud.databricks.com": "databricks",
    "api.heroku.com": "heroku",
    "api.digitalocean.com": "digitalocean",
    "api.vercel.com": "vercel",
    ".okta.com": "okta",
    ".supabase.co": "supabase",
    "api.twitter.com": "x",
    "api.x.com": "x",
    "oauth.reddit.com": "reddit",
    "www.reddit.com": "reddit",
    "graph.facebook.com": "meta",
    "api.linkedin.com": "linkedin",
    ".myshopify.com": "shopify",
    "api.xero.com": "xero",
    "quickbooks.api.intuit.com": "quickbooks",
    "api.ebay.com": "ebay",
    "api.binance.com": "binance",
    "api.yelp.com": "yelp",
    "newsapi.org": "newsapi",
    "graph.microsoft.com": "microsoft-graph",
    "login.microsoftonline.com": "entra",
    "management.azure.com": "azure",
}


def vendor_of_host(host: str) -> str | None:
    """
    Return the vendor whose host this is, or None.

    >>> vendor_of_host("acme.openai.azure.com"), vendor_of_host("api.example")
    ('azure-openai', None)
    """
    found = HOSTS.get(host)
    if found is not None:
        return found
    if host.startswith("bedrock-runtime") and host.endswith(".amazonaws.com"):
        return "aws"
    if host.endswith("-aiplatform.googleapis.com"):
        return "google"
    while "." in host:
        host = host.partition(".")[2]
        found = HOSTS.get(f".{host}")
        if found is not None:
            return found
    return None


@lru_cache(maxsize=1024)
def vendor_of_origin(origin: str) -> str | None:
    """Return the vendor of an origin such as `https://api.stripe.com`, or None. Only TLS on its default port counts."""
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme != "https" or port not in {None, 443} or host is None:
        return None
    return vendor_of_host(host)

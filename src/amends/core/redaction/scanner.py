"""
Tokens of services, by the forms that their issuers gave them so that scanners find them.

The names, prefixes and lengths are those of the rules of gitleaks (https://github.com/gitleaks/gitleaks, MIT licence, Copyright (c) 2019 Zachary Rice),
as far as a rule has a fixed beginning or form, with those of a few services that it does not have. The patterns are written anew: a scanner wants
no false alarm in source code, redaction no token in a message, so lengths are lower bounds and a masked token counts, too.
"""

from __future__ import annotations

import re
from functools import cache

from amends.core.redaction.tokens import looks_random

__all__ = ["CANDIDATE", "PREFIXES", "SHAPES", "judge_token"]

PREFIXES: dict[str, str] = {
    "1password-service-account-token": "ops_eyJ",
    "adobe-client-secret": "p8e-",
    "age-secret-key": "AGE-SECRET-KEY-1",
    "anthropic-api-key": "sk-ant-",
    "artifactory-reference-token": "cmVmd",
    "aws-amazon-bedrock-api-key-short-lived": "bedrock-api-key-",
    "clojars-api-token": "CLOJARS_",
    "databricks-api-token": "dapi",
    "digitalocean-access-token": "doo_v1_",
    "digitalocean-pat": "dop_v1_",
    "digitalocean-refresh-token": "dor_v1_",
    "docker-pat": "dckr_pat_",
    "docker-organization-token": "dckr_oat_",
    "doppler-audit-token": "dp.audit.",
    "doppler-cli-token": "dp.ct.",
    "doppler-api-token": "dp.pt.",
    "doppler-service-account": "dp.sa.",
    "doppler-scim-token": "dp.scim.",
    "doppler-service-token": "dp.st.",
    "duffel-live-token": "duffel_live_",
    "duffel-test-token": "duffel_test_",
    "dynatrace-api-token": "dt0c01.",
    "figma-pat": "figd_",
    "flutterwave-secret-key": "FLWSECK",
    "flyio-access-token": "fo1_",
    "flyio-macaroon": "fm2_",
    "frameio-api-token": "fio-u-",
    "github-app-server-token": "ghs_",
    "github-app-user-token": "ghu_",
    "github-fine-grained-pat": "github_pat_",
    "github-oauth": "gho_",
    "github-pat": "ghp_",
    "github-refresh-token": "ghr_",
    "gitlab-cicd-job-token": "glcbt-",
    "gitlab-deploy-token": "gldt-",
    "gitlab-feature-flag-client-token": "glffct-",
    "gitlab-feed-token": "glft-",
    "gitlab-incoming-mail-token": "glimt-",
    "gitlab-kubernetes-agent-token": "glagent-",
    "gitlab-oauth-app-secret": "gloas-",
    "gitlab-pat": "glpat-",
    "gitlab-ptt": "glptt-",
    "gitlab-rrt": "GR1348941",
    "gitlab-runner-authentication-token": "glrt-",
    "gitlab-scim-token": "glsoat-",
    "google-oauth-access-token": "ya29.",
    "google-oauth-client-secret": "GOCSPX-",
    "grafana-cloud-api-token": "glc_",
    "grafana-service-account-token": "glsa_",
    "groq-api-key": "gsk_",
    "heroku-api-key-v2": "HRKU-AA",
    "huggingface-access-token": "hf_",
    "huggingface-organization-api-token": "api_org_",
    "intra42-client-secret": "s-s4t2",
    "langsmith-api-key": "lsv2_",
    "linear-api-key": "lin_api_",
    "neon-password": "npg_",
    "netlify-token": "nfp_",
    "new-relic-user-api-key": "NRAK-",
    "new-relic-insert-key": "NRII-",
    "new-relic-browser-api-token": "NRJS-",
    "notion-api-token": "ntn_",
    "npm-access-token": "npm_",
    "nvidia-api-key": "nvapi-",
    "openai-api-key": "sk-",
    "openai-admin-key": "sk-admin-",
    "openai-project-key": "sk-proj-",
    "openai-service-account-key": "sk-svcacct-",
    "openrouter-api-key": "sk-or-",
    "openshift-user-token": "sha256~",
    "perplexity-api-key": "pplx-",
    "planetscale-api-token": "pscale_tkn_",
    "planetscale-oauth-token": "pscale_oauth_",
    "planetscale-password": "pscale_pw_",
    "postman-api-token": "PMAK-",
    "prefect-api-token": "pnu_",
    "pypi-upload-token": "pypi-",
    "razorpay-live-key": "rzp_live_",
    "readme-api-token": "rdme_",
    "replicate-api-token": "r8_",
    "rubygems-api-token": "rubygems_",
    "scalingo-api-token": "tk-us-",
    "sendgrid-api-token": "SG.",
    "sendinblue-api-token": "xkeysib-",
    "sentry-org-token": "sntrys_",
    "sentry-user-token": "sntryu_",
    "settlemint-application-access-token": "sm_aat_",
    "settlemint-personal-access-token": "sm_pat_",
    "settlemint-service-access-token": "sm_sat_",
    "shippo-live-token": "shippo_live_",
    "shippo-test-token": "shippo_test_",
    "shopify-access-token": "shpat_",
    "shopify-custom-access-token": "shpca_",
    "shopify-private-app-access-token": "shppa_",
    "shopify-shared-secret": "shpss_",
    "slack-app-token": "xapp-",
    "slack-bot-token": "xoxb-",
    "slack-config-token": "xoxe",
    "slack-user-token": "xoxp-",
    "slack-legacy-workspace-token": "xoxa-",
    "slack-legacy-cookie-token": "xoxc-",
    "slack-legacy-refresh-token": "xoxr-",
    "slack-legacy-session-token": "xoxs-",
    "slack-legacy-token": "xoxo-",
    "sourcegraph-access-token": "sgp_",
    "square-access-token": "sq0atp-",
    "square-secret": "sq0csp-",
    "stripe-live-key": "sk_live_",
    "stripe-test-key": "sk_test_",
    "stripe-publishable-live-key": "pk_live_",
    "stripe-publishable-test-key": "pk_test_",
    "stripe-restricted-live-key": "rk_live_",
    "stripe-restricted-test-key": "rk_test_",
    "stripe-webhook-secret": "whsec_",
    "supabase-token": "sbp_",
    "tailscale-key": "tskey-",
    "tavily-api-key": "tvly-",
    "vault-batch-token": "hvb.",
    "vault-recovery-token": "hvr.",
    "vault-service-token": "hvs.",
    "xai-api-key": "xai-",
    "apify-api-token": "apify_api_",
    "atlassian-access-token": "ATCTT3",
    "bitbucket-app-password": "ATBB",
    "browserbase-api-key": "bb_live_",
    "buildkite-agent-token": "bkua_",
    "circleci-api-token": "CCIPAT_",
    "contentful-personal-access-token": "CFPAT-",
    "depot-token": "depot_",
    "deno-deploy-token": "ddp_",
    "e2b-api-key": "e2b_",
    "firecrawl-api-key": "fc-",
    "infisical-service-token": "st.prod.",
    "jina-api-key": "jina_",
    "linear-oauth-token": "lin_oauth_",
    "llamaindex-api-key": "llx-",
    "mailersend-api-token": "mlsn.",
    "mapbox-secret-token": "sk.eyJ",
    "neon-api-key": "napi_",
    "ory-access-token": "ory_at_",
    "pinecone-api-key": "pcsk_",
    "posthog-personal-api-key": "phx_",
    "render-api-key": "rnd_",
    "snyk-api-token": "snyk_uat.",
    "supabase-secret-key": "sb_secret_",
    "together-api-key": "tgp_v1_",
    "typeform-api-token": "tfp_",
    "voyage-api-key": "pa-",
    "yandex-api-key": "AQVN",
    "zuplo-api-key": "zpka_",
}
"""The name of a rule → how every token of it begins."""

SHAPES: dict[str, str] = {
    "crates-io-token": r"cio[A-Za-z0-9]{32}(?!\w)",
    "dropbox-short-lived-token": r"sl\.[\w-]{60,}",
    "elevenlabs-api-key": r"sk_[a-f0-9]{48}(?!\w)",
    "fernet-token": r"gAAAA[\w=-]{60,}",
    "hubspot-private-app-token": r"pat-(?:na|eu|ap)\d-[a-f0-9-]{36}",
    "launchdarkly-key": r"(?:sdk|mob|api)-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}",
    "notion-legacy-token": r"secret_[A-Za-z0-9]{43}(?!\w)",
    "nuget-api-key": r"oy2[a-z0-9]{43}(?!\w)",
    "paseto-token": r"v\d\.(?:local|public)\.[\w-]{20,}",
    "plaid-access-token": r"access-(?:sandbox|development|production)-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}",
    "resend-api-key": r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}",
    "twilio-api-key": r"SK[a-f0-9]{32}(?!\w)",
    "1password-secret-key": r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    "airtable-personal-access-token": r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
    "alibaba-access-key-id": r"LTAI[A-Za-z0-9]{16,26}(?!\w)",
    "artifactory-api-key": r"AKCp[A-Za-z0-9]{69}",
    "atlassian-api-token": r"ATATT[\w=-]{20,}",
    "aws-access-token": r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}",
    "aws-amazon-bedrock-api-key-long-lived": r"ABSK[A-Za-z0-9+/]{32,}",
    "azure-ad-client-secret": r"[\w~.]{2,3}\dQ~[\w~.-]{25,40}",
    "cerebras-api-key": r"csk-[a-z0-9]{40,}",
    "clickhouse-cloud-api-secret-key": r"4b1d[A-Za-z0-9]{38}(?!\w)",
    "cloudflare-origin-ca-key": r"v1\.0-[a-f0-9]{24}-[a-f0-9]{40,}",
    "discord-bot-token": r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}",
    "easypost-api-token": r"EZ[AT]K[A-Za-z0-9]{54}",
    "facebook-page-access-token": r"EAA[MC][A-Za-z0-9]{60,}",
    "fireworks-api-key": r"fw_[A-Za-z0-9]{20,24}(?!\w)",
    "gcp-api-key": r"AIza[\w-]{35}",
    "harness-api-key": r"[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
    "hashicorp-tf-api-token": r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}",
    "infracost-api-token": r"ico-[A-Za-z0-9]{32}",
    "mailchimp-api-key": r"[a-f0-9]{32}-us\d{1,2}(?!\w)",
    "mailgun-private-api-token": r"(?:key|pubkey)-[a-f0-9]{32}",
    "maxmind-license-key": r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk",
    "octopus-deploy-api-key": r"API-[A-Z0-9]{26}",
    "pulumi-api-token": r"pul-[a-f0-9]{40}",
    "square-access-token": r"EAAA[\w-]{40,}",
    "vault-legacy-token": r"s\.[A-Za-z0-9]{24}(?!\w)",
}
"""The name of a rule → the form of its tokens, where a beginning alone says too little."""

CANDIDATE = r"(?<![A-Za-z0-9~])[\w~][\w*.~=-]{13,}+"
"""A run that is long enough for a token."""

_LEAST = 14
_SHORT = 4
"""Letters of a prefix that an ordinary name may begin with."""
_SOLID = 20
"""Characters without a sign that no word has."""


@cache
def _known() -> re.Pattern[str]:
    beginnings = "|".join(sorted(map(re.escape, PREFIXES.values()), key=len, reverse=True))
    shapes = "|".join(SHAPES.values())
    return re.compile(rf"(?<![A-Za-z0-9])(?:(?P<prefix>{beginnings})[\w*.~=-]{{8,}}+|(?:{shapes}))", re.ASCII)


def judge_token(match: re.Match[str]) -> tuple[int, int] | None:
    """A token of a known service: from where it begins to the end of the run."""
    text, end = match.string, match.end()
    at = match.start()
    while (found := _known().search(text, at, end)) is not None:
        prefix = found["prefix"]
        if prefix is None or _is_generated(text[found.end("prefix") : end], prefix):
            while text[end - 1] in ".-":
                end -= 1
            return found.start(), end
        at = found.end("prefix")
    return None


def _is_generated(rest: str, prefix: str) -> bool:
    """Whether what follows a prefix may be generated: "sk-", "hf_" and the like also begin ordinary names."""
    if len(rest) + len(prefix) < _LEAST:
        return False
    longer = len(prefix) > _SHORT or prefix[-1] == "."
    solid = rest.isalnum() and len(rest) >= _SOLID
    varied = any(map(str.isdigit, rest)) or (not rest.islower() and looks_random(f"{rest}0"))
    return longer or solid or varied or "*" in rest

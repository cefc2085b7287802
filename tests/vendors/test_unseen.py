"""
Failures that were written down from the published references of their services, with what they mean, before any code was read.

docs/vendors.md has the figures of the first reading. Now they are seen: what is read right has to stay so, and `WRONG` names the rest.
"""

import json
from collections import Counter
from pathlib import Path

from amends import decide, extract
from amends.vendors import NAMES

FOLDER = Path(__file__).parent
ROWS = [json.loads(line) for line in (FOLDER / "unseen.jsonl").read_text().splitlines()]
MONEY = {"PAYMENT_REQUIRED", "QUOTA_EXCEEDED"}

WRONG = {
    # A number decides nothing, a legal reason and a used-up hour have codes of their own, and one field is in `error_key`.
    "unknown": set(
        [
            "here-invalid",
            "hetzner-unavailable",
            "deepl-quota",
            "hunter-claimed",
            "gusto-field",
            "toggl-quota",
            "llamacpp-loading",
        ]
    ),
    "known": {"clickhouse-memory", "dropbox-writes", "easypost-unprocessable"},
    # A query that goes on; a function's error without its header; a search without some shards is an answer.
    "success-known": set(
        ["feishu-bot", "etherscan-key", "bigquery-job", "lambda-fn", "elastic-shards", "cloudflare-graphql"]
    ),
    # Numbers, prose and flags of unknown senders are not guessed at.
    "success-unknown": set(
        [
            "vonage-sms-throttled",
            "vonage-sms-credentials",
            "apilayer-restricted",
            "ipapi-reserved",
            "ip-api-fail",
            "geonames-limit",
            "recaptcha-secret",
            "recaptcha-timeout",
            "omdb-limit",
            "omdb-missing",
            "lastfm-rate",
            "lastfm-key",
            "flickr-key",
            "vk-many",
            "vk-auth",
            "baidu-map-quota",
            "amap-qps",
            "amap-daily",
            "amap-key",
            "mailchimp-batch",
            "iterable-200",
            "solana-behind",
            "usps-webtools",
            "parse-server",
        ]
    ),
    "tool-status": {"here", "tavily"},
    # Prose, and a word that means 401 for one service and 403 for another.
    "tool-alone": {"fedex", "wrike-auth", "drf-throttle", "asana", "plain-message"},
}


def fault_of(row, vendor):
    """Return the fault of an answer."""
    return extract(row["answer"], vendor=vendor, in_success=row["id"].startswith("success"))


def same_field(one, other):
    """Return whether two names of a field are equal, whatever separates their parts."""
    plain = [
        (each or "").strip("/").replace("/", ".").removeprefix("data.attributes.") for each in (one, other)
    ]
    return plain[0] == plain[1]


def is_right(row, fault):
    """Return whether the code, the wait and the field are the expected ones, and used-up money is not repeated."""
    if fault is None or fault.code not in row["codes"]:
        return False
    if "wait" in row and (fault.retry_after is None or abs(fault.retry_after - row["wait"]) > 1):
        return False
    if "field" in row and not same_field(fault.field, row["field"]):
        return False
    return not (set(row["codes"]) <= MONEY and decide(fault).action == "retry")


def test_what_was_not_seen():
    """With the name of the service where it has a file."""
    wrong = {row["id"] for row in ROWS if not is_right(row, fault_of(row, row.get("vendor")))}
    found = {
        place: {each.partition("/")[2] for each in wrong if each.startswith(f"{place}/")} for place in WRONG
    }
    assert found == WRONG
    assert sum(map(len, WRONG.values())) == len(wrong)
    assert Counter(row["id"].partition("/")[0] for row in ROWS) == {
        "unknown": 238,
        "known": 223,
        "success-known": 77,
        "success-unknown": 44,
        "tool-status": 50,
        "tool-alone": 49,
    }


def test_used_up_money_is_never_repeated():
    """In HTTP answers, inside successful ones, and quoted by tools."""
    money = [
        row for row in ROWS if set(row["codes"]) <= MONEY and not row["id"].startswith("success-unknown")
    ]
    assert len(money) > 60
    faults = {row["id"]: fault_of(row, row.get("vendor")) for row in money}
    assert [name for name, fault in faults.items() if fault is None or decide(fault).action == "retry"] == []


def test_ordinary_answers():
    """None is a failure, whoever sends it."""
    bodies = json.loads((FOLDER / "ordinary_200.json").read_text())
    assert len(bodies) == 75
    wrong = [
        (body, vendor)
        for body in bodies
        for vendor in (None, *NAMES)
        if extract({"status": 200, "headers": {}, "body": body}, vendor=vendor, in_success=True) is not None
    ]
    assert wrong == []

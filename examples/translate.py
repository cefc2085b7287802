"""In the middle: a failure arrives in one dialect and leaves in another. Run: python examples/translate.py"""

from amends import encode, extract, losses, translate

arrived = extract(
    {
        "status": 429,
        "headers": {"Retry-After": "7"},
        "body": {
            "title": "Too many",
            "detail": "One a second",
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        },
    }
)
assert arrived is not None
for vocabulary, dialect in (("adcp", "adcp"), ("cli", "envelope"), ("arcp", "arcp")):
    told, lost = translate(arrived, to=vocabulary)
    print(dialect, encode(told, dialect).get("error", encode(told, dialect))["code"], sorted(lost))
print(sorted(losses(arrived, "problem")))
# > adcp RATE_LIMITED ['status', 'title', 'trace_id']
# > envelope RATE_LIMITED []
# > arcp INTERNAL_ERROR ['actor', 'executed', 'retry_after', 'status', 'title', 'trace_id']
# > []

"""An intermediary: it translates a failure from one dialect to others. Run: python examples/translate.py"""

from amends import encode, extract, losses, translate

received = extract(
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
assert received is not None
for vocabulary, dialect in (("adcp", "adcp"), ("cli", "envelope"), ("arcp", "arcp")):
    translated, lost = translate(received, to=vocabulary)
    document = encode(translated, dialect)
    print(dialect, document.get("error", document)["code"], sorted(lost))
print(sorted(losses(received, "problem")))
# > adcp RATE_LIMITED ['status', 'title', 'trace_id']
# > envelope RATE_LIMITED []
# > arcp INTERNAL_ERROR ['actor', 'executed', 'retry_after', 'status', 'title', 'trace_id']
# > []

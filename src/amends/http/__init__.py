"""
What every HTTP binding shares: how a failure is told, traced and documented; batches, cancellation, keys and limits.

    failures · what an exception inside an application means to the one who called it
    answers · a fault as a response: problem document, headers, or a short page for a person
    pages · the page behind `doc_uri`, for every registered code
    tracing · one id in the response, the log line and the span

No framework is imported here; `amends.bindings` does that, one module each.
"""

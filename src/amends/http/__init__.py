"""
The parts that all HTTP bindings share. No module here imports a web framework or an HTTP client.

    responses           a fault as a response: problem document, headers, or a short page for people
    application_errors  exceptions raised inside an application as faults
    bodies, wsgi        framework error responses without structure, rewritten as problem documents
    asgi, negotiation   reading an ASGI scope, sending a response, reading `Accept`
    tracing             one trace id for the response, the log line and the span
    pages, openapi      the pages behind `doc_uri`, and problem details in an OpenAPI document
    batch               batches that fail in part
    validation          refused fields and the rules they have to follow
    hosts, current      which hosts may be in URLs; the request that is being handled
    idempotency         `Idempotency-Key` as an ASGI middleware; idempotency_wsgi for WSGI, idempotency_request what both
                        share, idempotency_store keeps the keys
    cancellation        requests that end early; intent declares what a request is about to do
    calls               options and decisions that all HTTP client bindings share
"""

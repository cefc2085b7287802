"""
Decisions that the bindings for agent servers (MCP, A2A) share.

- `server_errors`: which Fault a caller gets for an exception raised in a server's code.
- `adcp_error`: a Fault as an AdCP error object of limited size, and as one sentence.
- `reporting`: logs a failure, sets the attributes of the current span, and adds the trace id.
- `rejection`: runs a check that rejects requests before they are dispatched.
- `tracing`: finds or makes trace ids; `amends.http` uses it too.
"""

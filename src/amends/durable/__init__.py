"""
Durable state on a store: what the ARCP runtime, the task orchestrator and idempotency keys have in common.

    batch       changes of several logs, tables and queues: one transaction, or a safe order
    keys        a key with a fingerprint: the work it belongs to, or the state and the outcome of its work
    index       rows derived from logs, which are never replaced by older ones
    journal     a log of typed records and the state that is folded from its committed entries
    workers     the processes that work on a store: rows that expire, and what each worker offers
    worker      taking messages from a queue, and handling several at once
    loop_thread an event loop in a thread, on which plain functions await a store
    retention   deleting what has ended, in a safe order

A log is the truth about its subject. Everything else is derived from it and can be repaired from it.
"""

"""
Rehearsals: a program meets the failures that its services really send, and is scored by what it does.

    kinds, examples   what is sent, and which reaction is right
    plan, acts        which failures, where and in which run
    stage, fakes      receives calls, lets failures happen, counts effects
    server            the stage on loopback
    interception      clients of this process send their calls to the stage
    program           runs a command; rehearsal: a block of Python; mcp_relay: an MCP server on stdio
    judge, score      what the program did wrong, and the score from 0 to 3
    report, views, page

The layers are in this order: none imports a later one. `amends rehearse` is the command, and `amends.testing.Rehearsal` the
block for tests.
"""

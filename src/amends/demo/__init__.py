"""
What `amends try` shows: one job across five flaky services, done by plain clients, by tenacity, and by amends.

    story      the six steps, and what goes wrong in each
    world      what really happened: calls, waste, effects
    services   an HTTP API, a command, an MCP server, an A2A agent, an ARCP runtime, in one process on loopback
    agents     the three who try
    stage      runs them one after the other, and keeps the score
    view       the same on a terminal
"""

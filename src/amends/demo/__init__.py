"""
The demo of `amends try`: plain clients, tenacity and amends do the same job with five flaky services.

    scenario      the six steps, and the planned failure of each
    call_record   the calls and effects that the services received
    services      an HTTP API, a command, an MCP server, an A2A agent and an ARCP runtime, in one process on loopback
    host          the process of the services
    agents        the three agents
    comparison    runs the agents one after the other and scores them
    view          shows the comparison on a terminal
"""

"""
Interception in the process: clients of known libraries send their calls to the stage, whatever their address.

    stage_link   how an interception talks to the stage
    httpx        httpx and httpx2, and so the SDKs of OpenAI, Anthropic, MCP and A2A
    urllib3      urllib3 and requests
    aiohttp      aiohttp
    guard        refuses and names connections beyond this machine
    processes    child processes: the same for Python, addresses and a refusing proxy for the others

A call is sent to the stage over loopback by the client's own library, so that its time-outs, its streams and its exceptions are
the real ones. Everything is removed at the end.
"""

from __future__ import annotations

__all__: list[str] = []

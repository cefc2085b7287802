"""
Agents elsewhere, under the same interface: whoever hands out tasks sees one kind.

| | what it is | its capabilities |
|---|---|---|
| `http.HttpAgent` | HTTP endpoints that answer problem details | one per endpoint |
| `command.CommandAgent` | commands, by S2's envelope where they speak it | one per command |
| `mcp.McpAgent` | an MCP server | its tools |
| `a2a.A2aAgent` | an A2A agent | its skills |
| `arcp.ArcpAgent` | an ARCP runtime | its agents |

None of them repeats anything by itself: the orchestrator does, and counts. Failures come back in S3's words, with the
original code in `details.translated_from`.
"""

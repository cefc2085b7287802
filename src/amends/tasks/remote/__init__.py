"""
Agents in other processes and services, with the same interface as local ones.

| class | service | capabilities |
|---|---|---|
| `http.HttpAgent` | HTTP endpoints, with problem details for failures | one per endpoint |
| `command.CommandAgent` | commands, with the CLI agent spec's envelope or plain output | one per command |
| `mcp.McpAgent` | an MCP server | its tools |
| `a2a.A2aAgent` | an A2A agent | its skills |
| `arcp.ArcpAgent` | an ARCP runtime | its agents |

None of them retries calls itself; the orchestrator does, and counts the attempts. Failures are translated into the task
vocabulary, with the original code in `details.translated_from`.
"""

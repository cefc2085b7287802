"""The codes of an agent system (S3), one exception each."""

# Written by scripts/generate_errors.py from the vocabulary tables: change those, then `make generate`.

from __future__ import annotations

from amends import errors as everyday
from amends.errors.base import FaultError

__all__ = [
    "AgentBusyError",
    "AgentNotFoundError",
    "AgentUnavailableError",
    "CapabilityNotFoundError",
    "CoordinationFailedError",
    "DelegationFailedError",
    "InternalError",
    "InvalidFieldTypeError",
    "InvalidFieldValueError",
    "InvalidInputError",
    "KnowledgeNotFoundError",
    "McpAuthFailedError",
    "McpError",
    "McpNotConnectedError",
    "McpRateLimitedError",
    "MissingRequiredFieldError",
    "RateLimitedError",
    "TaskGraphCycleError",
    "TimeoutError",
]


class InvalidInputError(FaultError):
    """Request payload doesn't match expected schema (correctable). Send a payload that fits the capability's schema."""

    code = "INVALID_INPUT"
    vocabulary = "task"


class MissingRequiredFieldError(FaultError):
    """Required field is missing (correctable). Supply the missing field."""

    code = "MISSING_REQUIRED_FIELD"
    vocabulary = "task"


class InvalidFieldTypeError(FaultError):
    """Field has wrong type (correctable). Send the field in its declared type."""

    code = "INVALID_FIELD_TYPE"
    vocabulary = "task"


class InvalidFieldValueError(FaultError):
    """Field value is not allowed (correctable). Choose an allowed value."""

    code = "INVALID_FIELD_VALUE"
    vocabulary = "task"


class AgentNotFoundError(FaultError):
    """Target agent doesn't exist (terminal). Ask an agent that is registered."""

    code = "AGENT_NOT_FOUND"
    vocabulary = "task"


class CapabilityNotFoundError(FaultError):
    """Agent doesn't have requested capability (terminal). Ask for a capability the agent declares."""

    code = "CAPABILITY_NOT_FOUND"
    vocabulary = "task"


class AgentUnavailableError(FaultError):
    """Agent is not responding (uncertain). Try once more where a repeat is safe, or use the fallback."""

    code = "AGENT_UNAVAILABLE"
    vocabulary = "task"


class AgentBusyError(FaultError):
    """Agent is processing another request (transient). Try again when it is free."""

    code = "AGENT_BUSY"
    vocabulary = "task"


class McpNotConnectedError(FaultError):
    """Required MCP is not connected (correctable). Run the set-up of the missing connection, or use the fallback."""

    code = "MCP_NOT_CONNECTED"
    vocabulary = "task"


class McpAuthFailedError(FaultError):
    """MCP authentication failed (correctable). Sign in to the connection again."""

    code = "MCP_AUTH_FAILED"
    vocabulary = "task"


class McpRateLimitedError(FaultError):
    """MCP rate limit exceeded (transient). Wait, then try again."""

    code = "MCP_RATE_LIMITED"
    vocabulary = "task"


class McpError(FaultError):
    """MCP returned an error (uncertain). Try once more where a repeat is safe, or use the fallback."""

    code = "MCP_ERROR"
    vocabulary = "task"


class CoordinationFailedError(FaultError):
    """Multi-agent workflow failed (uncertain). Look at the failed step; the finished ones are reported."""

    code = "COORDINATION_FAILED"
    vocabulary = "task"


class TaskGraphCycleError(FaultError):
    """Circular dependency detected (terminal). Remove the cycle from the task graph."""

    code = "TASK_GRAPH_CYCLE"
    vocabulary = "task"


class DelegationFailedError(FaultError):
    """Could not delegate to sub-agent (uncertain). Try once more where a repeat is safe, or ask another agent."""

    code = "DELEGATION_FAILED"
    vocabulary = "task"


class TimeoutError(everyday.TimeoutError):
    """Operation timed out (transient). Find out whether it took effect, or repeat it where a repeat is safe."""

    code = "TIMEOUT"
    vocabulary = "task"


class InternalError(everyday.InternalError):
    """Unexpected internal error (uncertain). Try once more where a repeat is safe, then report it."""

    code = "INTERNAL_ERROR"
    vocabulary = "task"


class KnowledgeNotFoundError(FaultError):
    """Required knowledge file missing (terminal). Have the missing file put in place."""

    code = "KNOWLEDGE_NOT_FOUND"
    vocabulary = "task"


class RateLimitedError(everyday.RateLimitedError):
    """Too many requests (transient). Wait, then try again."""

    code = "RATE_LIMITED"
    vocabulary = "task"

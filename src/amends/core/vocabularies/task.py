"""
The nineteen codes of the agent error contract (S3), in their five categories.

Messages are the contract's defaults. `category` selects the retry policy (T7); `qualifier` says what has to be done
before a retry can help.
"""

from __future__ import annotations

from amends.core.enums import Actor, Executed, Recovery
from amends.core.vocabulary import Row, Vocabulary, table

__all__ = ["CATEGORIES", "VOCABULARY"]

CATEGORIES = ("input", "agent", "mcp", "coordination", "system")

_CORRECTABLE, _TRANSIENT = Recovery.CORRECTABLE, Recovery.TRANSIENT
_TERMINAL, _UNCERTAIN = Recovery.TERMINAL, Recovery.UNCERTAIN
_NO, _MAYBE = Executed.NO, Executed.MAYBE


def _row(
    code: str,
    category: str,
    recovery: Recovery,
    executed: Executed,
    everyday: str,
    message: str,
    suggestion: str,
    user_message: str,
    actor: Actor = Actor.CALLER,
    qualifier: str | None = None,
) -> Row:
    return Row(
        code=code,
        category=category,
        recovery=recovery,
        executed=executed,
        everyday=everyday,
        message=message,
        suggestion=suggestion,
        user_message=user_message,
        actor=actor,
        qualifier=qualifier,
    )


ROWS = (
    _row(
        "INVALID_INPUT",
        "input",
        _CORRECTABLE,
        _NO,
        "VALIDATION_ERROR",
        "Request payload doesn't match expected schema",
        "Send a payload that fits the capability's schema",
        "I couldn't understand that request. Could you rephrase it?",
    ),
    _row(
        "MISSING_REQUIRED_FIELD",
        "input",
        _CORRECTABLE,
        _NO,
        "VALIDATION_ERROR",
        "Required field is missing",
        "Supply the missing field",
        "I still need {name}. Could you provide it?",
    ),
    _row(
        "INVALID_FIELD_TYPE",
        "input",
        _CORRECTABLE,
        _NO,
        "VALIDATION_ERROR",
        "Field has wrong type",
        "Send the field in its declared type",
        "The value for {name} isn't in a form I can use. Could you check it?",
    ),
    _row(
        "INVALID_FIELD_VALUE",
        "input",
        _CORRECTABLE,
        _NO,
        "VALIDATION_ERROR",
        "Field value is not allowed",
        "Choose an allowed value",
        "The value for {name} isn't allowed. Could you choose another one?",
    ),
    _row(
        "AGENT_NOT_FOUND",
        "agent",
        _TERMINAL,
        _NO,
        "NOT_FOUND",
        "Target agent doesn't exist",
        "Ask an agent that is registered",
        "I don't have an agent for that. Try asking a different way?",
        Actor.USER,
    ),
    _row(
        "CAPABILITY_NOT_FOUND",
        "agent",
        _TERMINAL,
        _NO,
        "NOT_FOUND",
        "Agent doesn't have requested capability",
        "Ask for a capability the agent declares",
        "I can't do that. Is there something similar that would help?",
        Actor.USER,
    ),
    _row(
        "AGENT_UNAVAILABLE",
        "agent",
        _UNCERTAIN,
        _MAYBE,
        "SERVICE_UNAVAILABLE",
        "Agent is not responding",
        "Try once more where a repeat is safe, or use the fallback",
        "Part of the service isn't responding right now. Please try again later.",
        Actor.OPERATOR,
    ),
    _row(
        "AGENT_BUSY",
        "agent",
        _TRANSIENT,
        _NO,
        "SERVICE_UNAVAILABLE",
        "Agent is processing another request",
        "Try again when it is free",
        "I'm busy with other requests right now. Please try again in a moment.",
    ),
    _row(
        "MCP_NOT_CONNECTED",
        "mcp",
        _CORRECTABLE,
        _NO,
        "SERVICE_UNAVAILABLE",
        "Required MCP is not connected",
        "Run the set-up of the missing connection, or use the fallback",
        "I can't access {name} right now. Check the connection setup.",
        Actor.USER,
        "setup",
    ),
    _row(
        "MCP_AUTH_FAILED",
        "mcp",
        _CORRECTABLE,
        _NO,
        "UNAUTHENTICATED",
        "MCP authentication failed",
        "Sign in to the connection again",
        "I need you to sign in to {name} again.",
        Actor.USER,
        "reauth",
    ),
    _row(
        "MCP_RATE_LIMITED",
        "mcp",
        _TRANSIENT,
        _NO,
        "RATE_LIMITED",
        "MCP rate limit exceeded",
        "Wait, then try again",
        "{name} is limiting requests right now. Please try again in a few minutes.",
        qualifier="wait",
    ),
    _row(
        "MCP_ERROR",
        "mcp",
        _UNCERTAIN,
        _MAYBE,
        "INTERNAL_ERROR",
        "MCP returned an error",
        "Try once more where a repeat is safe, or use the fallback",
        "{name} reported a problem, so I couldn't finish this.",
        Actor.PROVIDER,
    ),
    _row(
        "COORDINATION_FAILED",
        "coordination",
        _UNCERTAIN,
        _MAYBE,
        "INTERNAL_ERROR",
        "Multi-agent workflow failed",
        "Look at the failed step; the finished ones are reported",
        "I couldn't complete every step of this.",
        Actor.OPERATOR,
    ),
    _row(
        "TASK_GRAPH_CYCLE",
        "coordination",
        _TERMINAL,
        _NO,
        "VALIDATION_ERROR",
        "Circular dependency detected",
        "Remove the cycle from the task graph",
        "Those steps wait for each other, so none of them can start.",
        Actor.OPERATOR,
    ),
    _row(
        "DELEGATION_FAILED",
        "coordination",
        _UNCERTAIN,
        _MAYBE,
        "SERVICE_UNAVAILABLE",
        "Could not delegate to sub-agent",
        "Try once more where a repeat is safe, or ask another agent",
        "Another agent couldn't complete its part of this.",
        Actor.OPERATOR,
    ),
    _row(
        "TIMEOUT",
        "coordination",
        _TRANSIENT,
        _MAYBE,
        "TIMEOUT",
        "Operation timed out",
        "Find out whether it took effect, or repeat it where a repeat is safe",
        "That's taking longer than expected. Want me to try again?",
    ),
    _row(
        "INTERNAL_ERROR",
        "system",
        _UNCERTAIN,
        _MAYBE,
        "INTERNAL_ERROR",
        "Unexpected internal error",
        "Try once more where a repeat is safe, then report it",
        "Something went wrong on our side. If it keeps happening, please report it.",
        Actor.OPERATOR,
    ),
    _row(
        "KNOWLEDGE_NOT_FOUND",
        "system",
        _TERMINAL,
        _NO,
        "NOT_FOUND",
        "Required knowledge file missing",
        "Have the missing file put in place",
        "Some information I need for this is missing and has to be added first.",
        Actor.OPERATOR,
    ),
    _row(
        "RATE_LIMITED",
        "system",
        _TRANSIENT,
        _NO,
        "RATE_LIMITED",
        "Too many requests",
        "Wait, then try again",
        "There are too many requests right now. Please try again in a few minutes.",
        qualifier="wait",
    ),
)

_BY_CODE = table(ROWS)
VOCABULARY = Vocabulary(
    name="task",
    title="Agent task errors",
    rows=_BY_CODE,
    # M1: an unknown code is terminal unless the error says recoverable.
    unknown=_row(
        "UNKNOWN",
        "system",
        _TERMINAL,
        _MAYBE,
        "INTERNAL_ERROR",
        "A failure this contract does not name",
        "Ask the operator of the agent",
        "Something went wrong, and I can't fix it myself.",
        Actor.OPERATOR,
    ),
)

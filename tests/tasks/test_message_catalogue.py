"""User messages (T6): built-in texts, own texts and languages, and nothing internal."""

import json
import re

import pytest

from amends import Fault
from amends.core.vocabularies.task import VOCABULARY
from amends.core.vocabulary import vocabulary
from amends.tasks import Catalogue

MISSING = Fault(
    code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "Notion", "requiredBy": "content-agent"}
)
GERMAN = {"MCP_NOT_CONNECTED": "An {name} komme ich nicht heran.", "RATE_LIMITED": "Noch {wait} Sekunden."}


def test_built_in_messages():
    """The texts of the agent error contract, with the missing thing named."""
    built_in = Catalogue()
    assert built_in.message(MISSING) == "I can't access Notion right now. Check the connection setup."
    assert built_in.message(Fault(code="TIMEOUT", vocabulary="task")).startswith(
        "That's taking longer than expected."
    )
    assert "agent for that" in built_in.message(Fault(code="AGENT_NOT_FOUND", vocabulary="task"))


def test_no_message_promises_another_try():
    """A user reads it after the last try: nothing more happens unless they ask for it."""
    for name in ("everyday", "task", "cli", "http", "arcp", "adcp"):
        for row in vocabulary(name).rows.values():
            assert not re.search(r"\b(I'll|I will|and will|shortly)\b", row.user_message), row


def test_own_texts_and_languages():
    """The region's text, then the language's, then the built-in one."""
    both = Catalogue(
        {"de": GERMAN, "de-AT": {"RATE_LIMITED": "{wait} Sekunderl."}, "fr": {"TIMEOUT": "Patience."}}
    )
    limited = Fault(code="RATE_LIMITED", vocabulary="task", retry_after=2.1)
    assert both.message(MISSING) == both.message(MISSING, "DE") == "An Notion komme ich nicht heran."
    assert both.message(limited, "de-AT") == "3 Sekunderl."
    assert both.message(MISSING, "de-AT") == "An Notion komme ich nicht heran."
    assert both.message(Fault(code="TIMEOUT", vocabulary="task"), "fr") == "Patience."
    assert both.message(MISSING, "fr") == Catalogue().message(MISSING)
    assert Catalogue(GERMAN).message(Fault(code="RATE_LIMITED", vocabulary="task")) == "Noch … Sekunden."
    assert Catalogue({"en": {}, "de": GERMAN}, default="de").message(MISSING).startswith("An Notion")


def test_from_files(tmp_path):
    """TOML or JSON."""
    toml, json_file = tmp_path / "m.toml", tmp_path / "m.json"
    toml.write_text('[de]\nTIMEOUT = "Moment noch."\n')
    json_file.write_text(json.dumps({"TIMEOUT": "Moment noch."}))
    for path in (toml, json_file):
        assert Catalogue.read(path).message(Fault(code="TIMEOUT", vocabulary="task")) == "Moment noch."


@pytest.mark.parametrize("texts", [{"TIMEOUT": "{secret}"}, {"TIMEOUT": ""}, {"de": {"TIMEOUT": 3}}])
def test_invalid_texts_are_refused(texts):
    """When the catalogue is created."""
    with pytest.raises(ValueError, match="TIMEOUT"):
        Catalogue(texts)


def test_the_message_describes_the_cause():
    """Of a failed plan or delegation. A catalogue's text replaces the fault's own message."""
    whole = Fault(
        code="COORDINATION_FAILED",
        vocabulary="task",
        errors=(Fault(code="DELEGATION_FAILED", vocabulary="task", errors=(MISSING,)),),
    )
    assert Catalogue().message(whole) == Catalogue().message(MISSING)
    own = Fault(code="TIMEOUT", vocabulary="task", user_message="Bitte warten")
    assert Catalogue().message(own) == "Bitte warten"
    assert Catalogue({"TIMEOUT": "Wait."}).message(own) == "Wait."


@pytest.mark.parametrize("code", sorted(VOCABULARY.rows))
def test_messages_contain_nothing_internal(code):
    """T12: no code, no protocol, no exception, and no part of the message or the details."""
    fault = Fault(
        code=code,
        vocabulary="task",
        message="Traceback: psycopg2 at 10.0.0.7",
        details={"cause": {"code": "X_INTERNAL"}, "sql": "SELECT 1", "path": "/etc/passwd"},
    )
    text = Catalogue().message(fault)
    assert text
    assert code not in text
    assert not re.search(r"MCP|JSON|HTTP|Traceback|psycopg|SELECT|/etc|[A-Z]+_[A-Z]+|\{", text)

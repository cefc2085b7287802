"""Fallbacks in prose (T9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.tasks import Fallback, FallbackError, parse_fallbacks, read_fallbacks
from tests.strategies import rarely

S3_CLAUDE = """\
## Fallback Behaviors

If Google Calendar MCP is not connected:
1. Inform user that calendar access isn't available
2. Offer to help draft the event details for manual creation
3. Suggest checking connection status
"""
S3_GRACEFUL = """\
# Agents

Not this:
- nothing

### Fallback behaviours

```markdown
**Cooking Agent without Pinterest parser:**
- Ask user to paste recipe text directly
- Proceed with manual input

**Calendar Agent without Google Calendar:**
- Report availability check not possible
- Offer to create a reminder instead
```

## Something else

If this is not read:
- good
"""


def test_the_contracts_first_form_in_a_file(tmp_path):
    """The example of the agent error contract for a CLAUDE.md."""
    path = tmp_path / "CLAUDE.md"
    path.write_text("\ufeff# Me\n\n" + S3_CLAUDE)
    (found,) = read_fallbacks(path)
    assert found.mcp == "Google Calendar"
    assert found.agent is None
    assert found.steps[2] == "Suggest checking connection status"
    assert len(found.steps) == 3


def test_the_contracts_second_form():
    """It names the agent. It may be fenced, and under any heading."""
    cooking, calendar = parse_fallbacks(S3_GRACEFUL)
    assert cooking == Fallback(
        mcp="Pinterest parser",
        agent="Cooking Agent",
        steps=("Ask user to paste recipe text directly", "Proceed with manual input"),
    )
    assert calendar.applies("google_calendar", "calendar-agent")
    assert not calendar.applies("google-calendar", "cooking-agent")
    assert cooking.applies("pinterest-parser", "cooking-agent")


@pytest.mark.parametrize(
    ("line", "mcp"),
    [
        ("If the Notion MCP server isn’t available:", "Notion"),
        ("When Notion is missing:", "Notion"),
        ("**If Notion MCP is not configured:**", "Notion"),
        ("- If Notion is down:", "Notion"),
        ("#### If Notion MCP is not connected:", "Notion"),
        ("Content Agent without the Notion MCP:", "Notion"),
        ("__Content Agent without Notion__:", "Notion"),
    ],
)
def test_variants_of_a_condition(line, mcp):
    """Articles, emphasis, list marks and headings do not matter."""
    (found,) = parse_fallbacks(f"## Fallback Behaviors\n\n{line}\n\n* one\n  goes on\n+ two\n")
    assert (found.mcp, found.steps) == (mcp, ("one goes on", "two"))


def test_other_prose_is_ignored():
    """Also a text without such a section."""
    text = S3_CLAUDE.replace("1. Inform", "This is why: because.\n\n1. Inform")
    assert parse_fallbacks(text) == parse_fallbacks(S3_CLAUDE)
    assert parse_fallbacks("no such section") == ()


@pytest.mark.parametrize(
    ("body", "line", "problem"),
    [
        ("If Notion MCP is not connected:\n\nand then nothing\n", 3, "no list items"),
        ("- an orphan\n", 3, "without a line “If"),
        ("\nIf the moon is full:\n- howl\n", 4, "cannot be parsed"),
        ("If A is not connected:\n- x\nIf B is not connected:\n", 5, "no list items"),
    ],
)
def test_an_error_names_file_and_line(tmp_path, body, line, problem):
    """For a fallback without items, an item without a condition, and an unknown condition."""
    path = tmp_path / "AGENTS.md"
    path.write_text(f"## Fallback Behaviors\n\n{body}")
    with pytest.raises(FallbackError) as raised:
        read_fallbacks(path)
    assert raised.value.line == line
    assert str(raised.value).startswith(f"{path}:{line}: ")
    assert problem in str(raised.value)


def test_a_file_that_is_not_utf8(tmp_path):
    """Raises FallbackError."""
    path = tmp_path / "CLAUDE.md"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FallbackError):
        read_fallbacks(path)


@rarely
@given(st.text(alphabet="#*-_`: If without not connected1.\n\t", max_size=300))
def test_any_text_is_parsed_or_raises_fallback_error(text):
    """No other exception, in linear time."""
    try:
        for found in parse_fallbacks("# Fallback Behaviors\n" + text):
            assert found.steps
    except FallbackError as error:
        assert error.line > 0  # noqa: PT017

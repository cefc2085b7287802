"""For `make docs`: code in docstrings is shown as Python. A griffe extension, named in mkdocs.yml."""

from __future__ import annotations

from typing import Any

import griffe


class DoctestBlocks(griffe.Extension):
    """Puts a fence around doctests and around indented code of docstrings."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """One documented thing."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return the text with fences around runs of lines that begin with `>>>`, and around indented paragraphs."""
    lines: list[str] = []
    end = ""  # "": outside; "blank": until an empty line; "dedent": until a line that is not indented
    before = ""
    for line in text.splitlines():
        if end == "blank" and not line.strip():
            lines.append("```")
            end = ""
        elif end == "dedent" and line.strip() and not line.startswith("    "):
            while not lines[-1].strip():
                lines.pop()
            lines += ["```", ""]
            end = ""
        if not end and line.startswith(">>>"):
            lines.append("```pycon")
            end = "blank"
        elif not end and line.startswith("    ") and not before.strip():
            lines.append("```python")
            end = "dedent"
        lines.append(line.removeprefix("    ") if end == "dedent" else line)
        before = line
    return "\n".join([*lines, "```"] if end else lines)

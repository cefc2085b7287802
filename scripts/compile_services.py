"""
Write src/amends/vendors/services.json from data/services, data/libraries.toml and data/reader.toml, and
src/amends/rehearse/examples.json from the examples of data/services and data/rehearse; `--check` compares only.
"""

from __future__ import annotations

import sys
from pathlib import Path

from amends.rehearse.examples import compiled_examples
from amends.vendors.service_file import compiled, parsed, problems

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "data" / "services"
LIBRARIES = ROOT / "data" / "libraries.toml"
READER = ROOT / "data" / "reader.toml"
DOCUMENT = ROOT / "src" / "amends" / "vendors" / "services.json"
FAKES = ROOT / "data" / "rehearse"
EXAMPLES = ROOT / "src" / "amends" / "rehearse" / "examples.json"


def examples() -> bytes:
    """Return the document of the examples."""
    paths = [*sorted(FOLDER.glob("*.toml")), *sorted(FAKES.glob("*.toml"))]
    return compiled_examples(parsed(path) for path in paths)


def wrong() -> list[str]:
    """Return what is wrong with the files, each problem with the name of its file."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        file = parsed(path)
        found += [f"{path.name}: {each}" for each in problems(file)]
        if file.get("name") != path.stem:
            found.append(f"{path.name}: the name in it is {file.get('name')}")
    return found


def main() -> int:
    """Write the document, or report what is wrong."""
    found = wrong()
    if found:
        sys.stderr.write("\n".join([*found, ""]))
        return 1
    documents = {DOCUMENT: compiled(FOLDER, LIBRARIES, READER), EXAMPLES: examples()}
    if "--check" in sys.argv:
        return 0 if all(path.read_bytes() == document for path, document in documents.items()) else 1
    for path, document in documents.items():
        path.write_bytes(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write src/amends/vendors/services.json from data/services and data/libraries.toml; `--check` compares only."""

from __future__ import annotations

import sys
from pathlib import Path

from amends.vendors.service_file import compiled, parsed, problems

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "data" / "services"
LIBRARIES = ROOT / "data" / "libraries.toml"
DOCUMENT = ROOT / "src" / "amends" / "vendors" / "services.json"


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
    document = compiled(FOLDER, LIBRARIES)
    if "--check" in sys.argv:
        return 0 if DOCUMENT.read_bytes() == document else 1
    DOCUMENT.write_bytes(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())

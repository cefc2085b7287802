"""`python -m amends` is the `amends` command."""

from __future__ import annotations

import sys

from amends.commands import main

if __name__ == "__main__":
    sys.exit(main())

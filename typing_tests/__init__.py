"""Read by type checkers, never run."""

"""The flaky services: each fails in its own dialect, all with amends on their side of the wire."""

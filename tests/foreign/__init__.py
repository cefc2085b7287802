"""Tests of the faults of other libraries' failures. Installed libraries really fail."""

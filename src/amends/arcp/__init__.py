"""The Agent Runtime Control Protocol. `amends.arcp.errors` needs no extra."""

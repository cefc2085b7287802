"""Jobs: submission, runs of agents, cancellation, delegation and results."""

"""Each framework with a scripted model, for the matrix."""

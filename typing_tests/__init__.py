"""Code for the type checker. It is not run."""

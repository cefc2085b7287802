"""A deterministic simulator of failing services, and the libraries that are compared on it."""

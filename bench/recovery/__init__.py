"""A deterministic simulator of failing services, and the libraries that have to get calls through them."""

"""
One agent for each SDK and framework. It asks a model, which calls the tool `create_order`, and ends with exit code 1 if it fails.

The first argument is `plain` or `amends`.
"""

"""
Where an error sits: the responses, results, tasks, envelopes and processes that carry the dialects.

Every carrier has `read(value) -> Reading`: total on any plain value, importing no framework. Those that we produce
also have a `write`.
"""

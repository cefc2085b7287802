"""
Where errors are found: responses, results, tasks, envelopes and finished processes.

Every carrier has `read(value) -> Reading`, which accepts any plain value (`amends.core.wire.plain`) without raising,
and imports no framework. Carriers that this library produces also have `write`.
"""

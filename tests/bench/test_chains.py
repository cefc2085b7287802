"""The benchmark of chains, as a test: retries of several layers do not multiply."""

from bench import chains


def test_calls_at_the_last_service_are_bounded():
    """M8: over every transport and for every number of hops."""
    measured = chains.table()
    assert [name for name, _ in measured] == list(chains.TRANSPORTS)
    for name, counts in measured:
        for hops, count in zip(chains.HOPS, counts, strict=True):
            assert chains.ATTEMPTS <= count <= chains.bound(hops), (name, hops)

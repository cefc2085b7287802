"""The features of a session are those that both sides name."""

from amends.arcp.wire import FEATURES, negotiate


def test_the_intersection():
    assert negotiate(FEATURES, ["ack", "heartbeat", "telepathy"]) == {"ack", "heartbeat"}
    assert negotiate(FEATURES, []) == frozenset()
    assert negotiate((), FEATURES) == frozenset()


def test_the_features_of_the_specification():
    """6.2, in its order; the TypeScript SDK is recognised by another one."""
    assert FEATURES[6:] == (
        *("model.use", "provisioned_credentials", "progress", "result_chunk", "agent_versions"),
    )

"""The request that is being handled."""

from amends.http.current import CURRENT, current_request
from amends.http.request_info import RequestInfo
from amends.http.responses import Settings


def test_the_current_request():
    """A binding gives the request and the settings; outside of a request they are empty."""
    empty = current_request()
    assert empty[0].path == ""
    assert empty[1].pages is None
    settings = Settings()
    before = CURRENT.set((lambda path: RequestInfo(path=path), "/a", settings, 0.0))
    try:
        assert current_request() == (RequestInfo(path="/a"), settings)
    finally:
        CURRENT.reset(before)
    assert current_request() == empty

"""Reading requests of WSGI applications."""

from amends.http.wsgi import request_info


def test_what_an_answer_depends_on():
    """The path and the root are decoded; the path begins with one slash, and the root does not end with one."""
    found = request_info(
        {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "//caf\u00c3\u00a9",
            "SCRIPT_NAME": "/shop/",
            "HTTP_HOST": "shop.example",
            "HTTP_TRACEPARENT": "00-1",
        }
    )
    assert (found.method, found.path, found.root) == ("GET", "/café", "/shop")
    assert (found.host, found.traceparent, found.accept) == ("shop.example", "00-1", None)
    assert request_info({"REQUEST_METHOD": "HEAD"}).path == "/"

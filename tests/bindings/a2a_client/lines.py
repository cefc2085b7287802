"""ASGI middleware between client and agent that loses responses, breaks them off, or sends another one."""


class Line:
    """Middleware that handles the first requests in another way, and passes on the others."""

    def __init__(self, app):
        self.app = app
        self.first = None
        """Functions that handle the first message requests, one each."""

    async def __call__(self, scope, receive, send):
        if self.first and ("message" in scope["path"] or scope["path"] in {"/rpc", "/card"}):
            await self.first.pop(0)(self.app, scope, receive, send)
        else:
            await self.app(scope, receive, send)


async def passes(app, scope, receive, send):
    """The server handles the request as usual."""
    await app(scope, receive, send)


async def lost(app, scope, receive, send):
    """The server handles the request, and its response is lost."""

    async def drop(message):
        pass

    await app(scope, receive, drop)
    await broken(app, scope, receive, send)


async def broken(app, scope, receive, send):
    """The response breaks off after its first byte; the server does not get the request."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
    await send({"type": "http.response.body", "body": b"{", "more_body": True})
    raise ConnectionResetError


def cut(after):
    """The response breaks off after some of its chunks."""

    async def line(app, scope, receive, send):
        left = after

        async def some(message):
            nonlocal left
            await send(message)
            if message["type"] == "http.response.body":
                left -= 1
                if left == 0:
                    raise ConnectionResetError

        await app(scope, receive, some)

    return line


def answers(status, body=b"", **headers):
    """This response is sent instead of the server's."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def line(app, scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": named})
        await send({"type": "http.response.body", "body": body})

    return line

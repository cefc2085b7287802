"""What can be between a client and an agent: a wire that loses answers, breaks off, or has somebody else answer."""


class Line:
    """What is between the client and the server: by default a wire."""

    def __init__(self, app):
        self.app = app
        self.first = None
        """Done instead of the first requests to messages, one function each."""

    async def __call__(self, scope, receive, send):
        if self.first and ("message" in scope["path"] or scope["path"] in {"/rpc", "/card"}):
            await self.first.pop(0)(self.app, scope, receive, send)
        else:
            await self.app(scope, receive, send)


async def lost(app, scope, receive, send):
    """The request arrives, the answer does not."""

    async def nowhere(message):
        pass

    await app(scope, receive, nowhere)
    await broken(app, scope, receive, send)


async def broken(app, scope, receive, send):
    """A promise of an answer, and then the line is down."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
    await send({"type": "http.response.body", "body": b"{", "more_body": True})
    raise ConnectionResetError


def cut(after):
    """The answer breaks off after some of its pieces."""

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
    """Somebody else answers."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def line(app, scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": named})
        await send({"type": "http.response.body", "body": body})

    return line

"""
The page: failures and recoveries in a browser. `amends gateway` serves it at `/_amends/`; any ASGI application can too.

    app = amends.dashboard(app)                                        # serves it at /_amends/, and the app elsewhere
    app.mount("/failures", amends.dashboard("sqlite:///failures.db"))  # or where you want it

It needs Starlette and Jinja2: `amends[server]`, or `amends[gateway]`.
"""

from __future__ import annotations

try:
    import jinja2  # noqa: F401
    import starlette  # noqa: F401
except ImportError as missing:
    raise ImportError("the page needs an extra: pip install 'amends[server]'") from missing

from amends.page.app import Page, dashboard

__all__ = ["Page", "dashboard"]

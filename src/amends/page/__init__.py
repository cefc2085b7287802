"""
The page: failures and recoveries in a browser. `amends gateway` serves it at `/_amends/`; any ASGI application can too.

    app = amends.dashboard(app)                                        # serves it at /_amends/, and the app elsewhere
    app.mount("/failures", amends.dashboard("sqlite:///failures.db"))  # or where you want it

It needs Starlette and Jinja2: `amends[server]`, or `amends[gateway]`.
"""

from __future__ import annotations

from amends.page.app import Page, dashboard

__all__ = ["Page", "dashboard"]

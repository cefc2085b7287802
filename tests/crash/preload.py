"""What the processes of the crash matrix import, once."""

import tests.bindings.agents
import tests.bindings.clients
import tests.crash.callers
import tests.crash.servers  # noqa: F401

"""axe-core finds nothing serious on the page: `make soak`."""

import asyncio
import shutil
import tarfile

import pytest

from tests.page.browser import executable
from tests.page.test_app import TRACE
from tests.page.test_browser import shown

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        executable() is None or not shutil.which("npm"), reason="there is no Chromium or no npm"
    ),
]


async def axe(folder):
    """Return the script of axe-core, from the npm registry."""
    process = await asyncio.create_subprocess_exec(
        "npm", "pack", "--silent", "axe-core@4", cwd=folder, stdout=asyncio.subprocess.PIPE
    )
    name = (await process.communicate())[0].decode().split()[-1]
    with tarfile.open(folder / name) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


async def test_nothing_serious(tmp_path):
    """In both colour schemes, wide and narrow, no rule of axe-core is broken."""
    script = await axe(tmp_path)
    async with shown(tmp_path, token="the-t0ken-of-these-tests") as (tab, address, _):
        found = {}
        for width in (390, 1280):
            await tab.size(width)
            for scheme in ("light", "dark"):
                await tab.colours(scheme)
                for path in ("", f"trace/{TRACE}", "sign-in", "nothing"):
                    await tab.go(address + path)
                    await tab.run(f"{script}; 0")
                    broken = await tab.run(
                        "axe.run().then(found => found.violations.map("
                        "each => [each.id, each.impact, each.nodes[0].html, each.nodes[0].failureSummary]))"
                    )
                    if broken:
                        found[width, scheme, path] = broken
        assert not found

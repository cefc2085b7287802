"""
Runs a command behind the gateway: `behind_gateway.py -- command …`.

The gateway's upstreams are the addresses that the environment names, and the command gets those of the gateway.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CONFIG = """
listen = "127.0.0.1:{port}"
record = "sqlite:///{folder}/record.db"
[upstream.openai]
url = "{openai}"
vendor = "openai"
[upstream.anthropic]
url = "{anthropic}"
vendor = "anthropic"
[upstream.orders]
url = "{orders}"
keyed = true
"""


def free_port() -> int:
    """Return a port that is free now."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def main() -> int:
    """Start the gateway, run the command, and stop the gateway."""
    command = sys.argv[sys.argv.index("--") + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        config = Path(folder) / "gateway.toml"
        config.write_text(
            CONFIG.format(
                port=port,
                folder=folder,
                openai=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").removesuffix("/v1"),
                anthropic=os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
                orders=os.environ["ORDERS_URL"],
            )
        )
        gateway = subprocess.Popen(
            [sys.executable, "-m", "amends", "gateway", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            base = f"http://127.0.0.1:{port}"
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"{base}/_amends/live", timeout=1).close()
                    break
                except urllib.error.HTTPError:
                    break
                except OSError:
                    time.sleep(0.05)
            environment = {
                **os.environ,
                "OPENAI_BASE_URL": f"{base}/openai/v1",
                "ANTHROPIC_BASE_URL": f"{base}/anthropic",
                "ORDERS_URL": f"{base}/orders",
            }
            return subprocess.run(command, env=environment, check=False).returncode
        finally:
            gateway.terminate()
            gateway.wait(30)


if __name__ == "__main__":
    sys.exit(main())

"""See `bench.agents`."""

import argparse

from bench.agents import main
from bench.agents.harness import table
from bench.agents.model import model_agent

parser = argparse.ArgumentParser(prog="python -m bench.agents", description="Agents that read failures.")
parser.add_argument(
    "--endpoint", metavar="URL", help="an OpenAI-compatible endpoint, such as https://api.openai.com/v1"
)
parser.add_argument(
    "--model", metavar="NAME", help="the model's name there; its key is in AGENTS_API_KEY or OPENAI_API_KEY"
)
parser.add_argument("--seeds", type=int, default=1, help="how often the sixty scenarios are played (1)")
given = parser.parse_args()
if bool(given.endpoint) != bool(given.model):
    parser.error("--endpoint and --model belong together")
if given.seeds < 1:
    parser.error("--seeds is at least 1")
lines = main() if given.model is None else table([model_agent(given.endpoint, given.model)], given.seeds)
print("\n".join(lines))

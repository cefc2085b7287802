"""
Agents that read failures: scripted ones of three temperaments, or a model.

    python -m bench.agents                                        the scripted agents
    python -m bench.agents --endpoint URL --model NAME --seeds 3  a model behind an OpenAI-compatible endpoint
"""

from __future__ import annotations


def main() -> list[str]:
    """The results of the scripted agents, for docs/benchmarks.md."""
    from bench.agents.harness import table
    from bench.agents.scripted import AGENTS

    return [
        "Sixty scenarios (eight services in four variants, 28 failures of a catalogue) with five seeds. Scripted agents read the raw text,",
        "a problem document (RFC 9457), or ours with recovery and the ledger of effects below it. *Finished*: the goal was reached and the",
        "agent says so, or it stopped where nothing can help. *Wrong belief*: it says done and it is not, or it stopped and it is done. A model",
        "was not run for this table.",
        "",
        *table(AGENTS, seeds=5),
    ]

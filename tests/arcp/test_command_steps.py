"""`amends runtime status JOB`, `signal` and `answer`: the steps of a job, and what its owner tells it."""

import signal

import pytest

from amends.commands.runtime import TOKEN
from tests.arcp.test_command import home, run, served, text

__all__ = ["home"]

AGENTS = """
async def plan(order, ctx):
    async def pay(order):
        raise TimeoutError
    await ctx.step("look", lambda: "s3cret")
    approved = await ctx.signal("approved", timeout=60)
    return [approved, await ctx.step("pay", pay, order, key="order-5", timeout=0.1)]
"""


@pytest.fixture
def place(tmp_path):
    """A served runtime with a durable store: its URL and that of its store."""
    (tmp_path / "stepagents.py").write_text(AGENTS)
    store = f"sqlite:///{tmp_path}/jobs.db"
    child, announced = served(
        tmp_path,
        "--repeatable",
        "stepagents:plan",
        "--port",
        "0",
        "--store",
        store,
        "--token",
        "alice=tok",
        "--token",
        "bob=other",
    )
    yield announced["listening"], store
    child.send_signal(signal.SIGTERM)
    child.wait(60)
    child.stdout.close()


def test_from_the_submission_to_the_answer(capfd, place, monkeypatch):
    """The owner sends the signal, reads the question, answers it, and the job ends; others may not."""
    url, store = place
    _, lines = run(capfd, "submit", url, "plan", "5", "--detach")
    job = lines[0]["job_id"]
    monkeypatch.setenv(TOKEN, "other")
    assert run(capfd, "signal", url, job, "approved", "true")[0] == 4
    monkeypatch.setenv(TOKEN, "tok")
    assert run(capfd, "signal", url, job, "approved", '{"by": "bea"}', "--id", "one")[1] == [
        {"job_id": job, "signal": "approved", "counted": True}
    ]
    assert run(capfd, "tail", url, job)[0] != 0
    code, [shown] = run(capfd, "status", url, job)
    assert (code, shown["status"]) == (0, "error")
    assert [(step["step"], step["state"]) for step in shown["steps"]] == [
        ("look#1", "done"),
        ("amends.signal approved#1", "done"),
        ("pay/order-5", "doubt"),
    ]
    assert run(capfd, "status", "--store", store, job)[1] == [shown]
    _, out, _ = text(capfd, "status", url, job)
    assert "s3cret" not in out
    assert "amends runtime answer URL JOB pay/order-5 --happened or --not-happened" in out
    assert run(capfd, "answer", url, job, "pay/order-5")[0] == 3
    assert run(capfd, "answer", url, job, "pay/order-5", "--not-happened", "--result", "1")[0] == 2
    assert run(capfd, "answer", url, job, "look#1", "--happened")[0] != 0
    assert run(capfd, "answer", url, job, "pay/order-5", "--happened", "--result", '"receipt"')[0] == 0
    _, lines = run(capfd, "tail", url, job)
    assert lines[-1]["result"] == [{"by": "bea"}, "receipt"]
    _, [shown] = run(capfd, "status", url, job)
    assert shown["steps"][-1]["author"] == "alice"
    assert run(capfd, "status", "--store", store, "job_none")[0] == 4

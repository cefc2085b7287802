"""
The matrix of what can happen to a payment: frameworks x faults x how the model writes the call once more x shapes of a run.

Each cell is one or two processes: a scripted model calls the tool `pay` for order 17, something goes wrong, and the model plans the
payment once more. Counted are the payments at the service, what the model read, and whether its last statement is true.

    python -m tests.frameworks.matrix langchain            # with amends
    python -m tests.frameworks.matrix langchain --alone    # the framework alone

A driver (`tests/frameworks/drivers`) runs a `Case` with its framework. It has NAME, REFUSED (the ways of writing that the framework refuses
before the tool), `returned_error()` and `run(case)`. FORKS is False if the framework's threads do not survive a fork: its processes are
started one by one then, for a part of the cells in which one is killed.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from amends.effects import Effects

FAULTS = (
    "none",
    "call lost",
    "answer lost",
    "error returned",
    "error raised",
    "validation",
    "killed before",
    "killed inside",
    "killed after",
)
SHAPES = ("one tool", "parallel tools", "equal calls", "handoff", "check")
"""In the last one the verification cannot say at first, and the model calls the tool that finds out."""
PLANS: dict[str, dict[str, object]] = {
    "same": {"order": 17},
    "default written out": {"order": 17, "currency": "EUR"},
    "extra": {"order": 17, "note": "the model added this", "again": "I am not sure"},
    "type changed": {"order": "17"},
    "another user": {"order": 17},
    "another session": {"order": 17},
}
_STARTED = {("one tool", "same"), ("one tool", "another user"), ("handoff", "extra")}
HANDOFF = "hand over"
SECONDS = 60
_UNKNOWN = ("EFFECT_UNKNOWN", "may have had its effect", "not known whether")


class Call(NamedTuple):
    """A tool call of the model."""

    tool: str
    arguments: dict[str, object]


class Cell(NamedTuple):
    """One cell of the matrix."""

    fault: str
    plan: str
    shape: str
    verified: bool = False
    """Whether the effect of the tool is declared with a key and a verification."""

    @property
    def killed(self) -> bool:
        """Whether the process is killed."""
        return self.fault.startswith("killed")

    @property
    def two_conversations(self) -> bool:
        """Whether the call is planned once more in a process of its own."""
        return self.killed or self.plan.startswith("another")


class Result(NamedTuple):
    """What happened in a cell."""

    cell: Cell
    payments: int
    """Payments of order 17, by the user and session that made the second call, or by anybody if it is the same."""
    twice: bool
    """Whether an order was paid twice in one conversation."""
    read: list[str]
    said: str | None
    """The last statement of the model: paid, not paid, unknown, or None if the run ended without one."""
    error: str = ""

    @property
    def true(self) -> bool:
        """Whether the last statement is true."""
        return {"paid": self.payments == 1, "not paid": self.payments == 0, "unknown": True}.get(
            str(self.said), False
        )


class Model:
    """The scripted model: makes the calls of each step, and then says what it read last."""

    def __init__(self, case: Case, steps: list[list[Call]]) -> None:
        self._case, self._steps, self._corrected = case, iter(steps), False

    def step(self, read: list[str]) -> list[Call] | str:
        """Return the next calls, or the last statement. `read`: the tool results in the request to the model."""
        if read:
            self._case.after_the_tool()
        calls = next(self._steps, None)
        if calls is not None:
            return calls
        said = statement(read)
        may_call = self._case.refused or "did not happen" in "".join(read[-1:])
        if said == "not paid" and may_call and not self._corrected:
            # The framework refused the arguments, and said why; or the call did not happen.
            self._corrected = True
            return [Call("pay", PLANS["same"])]
        self._case.record(read=read, said=said)
        return f"I say: {said}."


def statement(read: list[str]) -> str:
    """Return what a model says that believes the last text."""
    last = read[-1] if read else ""
    from_helper = re.search(r"I say: ([a-z ]+)\.", last)
    if from_helper:
        return from_helper[1]
    if "receipt" in last:
        return "paid"
    return "unknown" if any(words in last for words in _UNKNOWN) else "not paid"


class Case:
    """One conversation of a cell, for a driver."""

    def __init__(
        self,
        driver: Any,
        cell: Cell,
        folder: Path,
        *,
        number: int,
        alone: bool,
        ledger: Callable[[], Any],
    ) -> None:
        self.cell, self._folder, self.alone, self._ledger = cell, folder, alone, ledger
        self.checks = cell.shape == "check"
        """Whether the agent gets the tool that finds out, in frameworks where the program adds it."""
        self._returned_error = driver.returned_error
        self.refused = cell.plan in driver.REFUSED
        """Whether the framework refuses the arguments of the second call."""
        second = number == 1
        self.user = "bob" if second and cell.plan == "another user" else "ann"
        self.session = "s-2" if second and cell.plan.startswith("another") else "s-1"
        self._lock = threading.Lock()
        first = {
            "parallel tools": [Call("pay", {"order": 17}), Call("pay", {"order": 18})],
            "equal calls": [Call("pay", {"order": 17})] * 2,
        }.get(cell.shape, [Call("pay", {"order": 17})])
        if cell.fault == "validation":
            first = [Call("pay", {}), *first[1:]]
        planned = [Call("pay", PLANS[cell.plan])]
        steps = [first, planned]
        if cell.shape == "check":
            find_out = [Call("check_pay", PLANS[cell.plan])]
            steps = [[Call("pay", PLANS["same"])], find_out] if second or not cell.killed else [first]
        elif cell.two_conversations:
            steps = [planned if second else first]
        self.helper: Model | None = None
        """The model of the agent that the first one hands over to."""
        if cell.shape == "handoff" and (second or not cell.two_conversations):
            self.model = Model(self, [*steps[:-1], [Call(HANDOFF, {})]])
            self.helper = Model(self, steps[-1:])
        else:
            self.model = Model(self, steps)

    # -- the tools

    def pay(self, order: int, currency: str = "EUR") -> object:
        """
        Pay an order.

        Args:
            order: the order.
            currency: the currency.

        """
        from amends.errors import PermissionDeniedError

        fault = self.cell.fault if order == 17 and self._first_time("fault") else "none"
        if fault == "killed before":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "call lost":
            raise ConnectionResetError("db.internal:5432")
        if fault == "error returned":
            return self._returned_error()
        if fault == "error raised":
            raise PermissionDeniedError("declined")
        receipt = self._pay(order, currency)
        if fault == "answer lost":
            raise ConnectionResetError("db.internal:5432")
        if fault == "killed inside":
            os.kill(os.getpid(), signal.SIGKILL)
        return receipt

    def find_payment(self, order: int, **_: object) -> object:
        """Return the receipt of a payment, or False."""
        if self.cell.shape == "check" and self._first_time("verified"):
            return None
        return f"receipt {order}" if any(each["order"] == order for each in self.lines("paid")) else False

    def _pay(self, order: int, currency: str) -> str:
        self._append(
            "paid", {"user": self.user, "session": self.session, "order": int(order), "currency": currency}
        )
        return f"receipt {int(order)}"

    def after_the_tool(self) -> None:
        """Die before the model sees the result, if this is the cell for it."""
        if self.cell.fault == "killed after" and self._first_time("fault after"):
            os.kill(os.getpid(), signal.SIGKILL)

    # -- options of the binding

    def options(self, scope: object = None) -> dict[str, Any]:
        """Return the options of `Failures`. `scope`: that of a framework that names no conversation."""
        from amends.bindings.tool_calls import ToolEffect

        ledger = self._ledger()
        options: dict[str, Any] = {"effects": ledger}
        if self.cell.verified:
            pay = ToolEffect(key="order", verify=self.find_payment, timeout=0.5)
            options = {"ledger": ledger, "effects": {"pay": pay}}
        return options if scope is None else {**options, "scope": scope}

    # -- what happened

    def record(self, **members: object) -> None:
        """Note what the model read and said."""
        self._append("said", members)

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return what was noted."""
        path = self._folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _append(self, name: str, value: object) -> None:
        with self._lock, (self._folder / name).open("a") as file:
            file.write(json.dumps(value) + "\n")

    def _first_time(self, name: str) -> bool:
        try:
            (self._folder / name).open("x").close()
        except FileExistsError:
            return False
        return True


def driver(name: str) -> Any:
    """Return the driver of a framework."""
    return importlib.import_module(f"tests.frameworks.drivers.{name}")


def cells(driver: Any) -> Iterator[Cell]:
    """Return all cells of a framework, without the shapes that it does not have."""
    shapes = [each for each in SHAPES if each not in getattr(driver, "WITHOUT", ())]
    forks = getattr(driver, "FORKS", True)
    for shape in shapes:
        if shape == "check":
            for fault in ("call lost", "answer lost", "killed before", "killed inside"):
                for plan in ("same", "default written out"):
                    if forks or not fault.startswith("killed"):
                        yield Cell(fault, plan, shape, verified=True)
            continue
        for fault in FAULTS:
            for plan in PLANS:
                if not forks and fault.startswith("killed") and (shape, plan) not in _STARTED:
                    continue
                yield Cell(fault, plan, shape)
                if not plan.startswith("another") and shape == "one tool":
                    yield Cell(fault, plan, shape, verified=True)


def run_cell(driver: Any, cell: Cell, *, alone: bool = False) -> Result:
    """Run a cell; its conversations have a process each if one is killed."""
    with tempfile.TemporaryDirectory(prefix="matrix-") as name:
        folder = Path(name)
        errors = []
        ledger = functools.cache(lambda: Effects("memory:"))
        for number in range(2 if cell.two_conversations else 1):
            if cell.killed:
                start = _forked if getattr(driver, "FORKS", True) else _started
                errors.append(start(driver, cell, folder, number=number, alone=alone))
                continue
            case = Case(driver, cell, folder, number=number, alone=alone, ledger=ledger)
            errors.append(_here(driver, case))
        case = Case(driver, cell, folder, number=number, alone=alone, ledger=ledger)
        paid, said = case.lines("paid"), case.lines("said")
        own = [
            each
            for each in paid
            if each["order"] == 17 and (each["user"], each["session"]) == (case.user, case.session)
        ]
        counts = Counter((each["user"], each["session"], each["order"]) for each in paid)
        last = said[-1] if said else {"read": [], "said": None}
        ended = cell.killed and len(errors) == 2
        return Result(
            cell,
            len(own),
            any(count > 1 for count in counts.values()),
            last["read"],
            last["said"] if not errors[-1] else None,
            errors[-1] if ended else "; ".join(filter(None, errors)),
        )


def _here(driver: Any, case: Case) -> str:
    try:
        driver.run(case)
    except Exception as error:
        if os.environ.get("TRACE"):
            raise
        return f"{type(error).__name__}: {error}"[:600]
    return ""


def run_conversation(driver: Any, cell: Cell, folder: Path, *, number: int, alone: bool) -> None:
    """Run a conversation of a cell in this process, which may be killed."""
    store = f"sqlite:///{folder / 'effects.db'}"
    driver.run(Case(driver, cell, folder, number=number, alone=alone, ledger=lambda: Effects(store)))


def _started(driver: Any, cell: Cell, folder: Path, *, number: int, alone: bool) -> str:
    """Run a conversation in a new process, and return the error with which it ended."""
    program = (
        "import json, pathlib, sys; from tests.frameworks import matrix; from importlib import import_module; "
        "name, cell, folder, number, alone = json.loads(sys.argv[1]); "
        "matrix.run_conversation(import_module(name), matrix.Cell(*cell), pathlib.Path(folder), number=number, alone=alone)"
    )
    request = json.dumps([driver.__name__, cell, str(folder), number, alone])
    with (folder / "output").open("a+") as output:
        # Files, because a process that the framework started may hold a pipe open.
        done = subprocess.run(
            [sys.executable, "-c", program, request], stdout=output, stderr=output, timeout=SECONDS
        )
        output.seek(0)
        lines = output.read().strip().splitlines()
    return "" if done.returncode in {0, -signal.SIGKILL} else (lines or ["no output"])[-1][:600]


def _forked(driver: Any, cell: Cell, folder: Path, *, number: int, alone: bool) -> str:
    """Run a conversation in a forked process, and return the error with which it ended."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        sink = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        try:
            run_conversation(driver, cell, folder, number=number, alone=alone)
        except BaseException as error:
            (folder / "error").write_text(f"{type(error).__name__}: {error}"[:600])
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}"
    return (folder / "error").read_text() if os.WEXITSTATUS(status) else ""


def wrong(result: Result) -> str:
    """Return what is wrong with the result of a cell; empty if nothing is."""
    cell = result.cell
    if result.twice:
        return "paid twice"
    if result.error:
        return f"the run ended: {result.error}"
    if not result.true:
        return f"{result.payments} payments, and the model says {result.said}"
    if result.payments == 1 and result.said == "paid":
        return ""
    may_be_in_doubt = not cell.verified and not cell.plan.startswith("another")
    doubtful = {"call lost", "answer lost", "error returned", "killed before", "killed inside"}
    if may_be_in_doubt and cell.fault in doubtful and result.said == "unknown":
        return ""
    return f"{result.payments} payments, and the model says {result.said}"


def main() -> int:
    """Run the matrix of frameworks, and print what is wrong."""
    logging.disable()
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--only", default="", help="part of a cell's name")
    options = parser.parse_args()
    failed = 0
    for name in options.names:
        driver = importlib.import_module(f"tests.frameworks.drivers.{name}")
        begin, total, problems = time.monotonic(), 0, Counter[str]()
        for cell in cells(driver):
            title = f"{cell.fault} / {cell.plan} / {cell.shape}" + (" / verified" if cell.verified else "")
            if options.only not in title:
                continue
            total += 1
            started = time.monotonic()
            result = run_cell(driver, cell, alone=options.alone)
            if os.environ.get("TIMES"):
                print(f"{title}: {time.monotonic() - started:.1f} s")
            problem = wrong(result)
            if problem:
                problems[problem.split(":")[0]] += 1
                if not options.alone:
                    print(f"{name}: {title}: {problem}\n    read: {[text[:150] for text in result.read]}")
        failed += sum(problems.values())
        print(
            f"{name}: {total} cells, {sum(problems.values())} wrong {dict(problems)}, {time.monotonic() - begin:.0f} s",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""
Mutation test of core, recovery, http and durable: change one expression, and see whether a test fails.

Run: python scripts/mutants.py [--sample 400] [--seed 1] [--processes 2] [--map FILE] [--only http/calls.py]

1. One run of the tests with coverage notes which test executes which line. `--map` keeps the result in a file.
2. A mutant changes one node of a module's syntax tree. The sample is chosen by a hash of the seed and the mutant, so a
   change elsewhere does not change it.
3. Each mutant runs in a fork of a process that has collected the tests: the changed functions get their new code, and
   the tests that execute the changed lines run until one fails. Code that runs at import cannot be replaced so; such a
   mutant is imported in a fork of a process that has not imported amends. No file is changed.

Every fiftieth run has no change, as a control; a control that fails means that the figures are wrong.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import hashlib
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "amends"
PACKAGES = ("core", "recovery", "http", "durable")
TESTS = [f"tests/{package}" for package in PACKAGES]
# Tests of what is built on core, which `make test` runs as well. They take half of the time of the map.
TESTS += [
    f"tests/{package}" for package in ("carriers", "dialects", "errors", "foreign", "recorder", "serving")
]
TESTS += [f"tests/test_{name}.py" for name in ("decisions", "doctests", "mistakes", "vectors")]
OPTIONS = [
    "-q",
    "-p",
    "no:cacheprovider",
    "--assert=plain",
    "--hypothesis-seed=0",
    "-W",
    "ignore::DeprecationWarning",
]
# Tests with a server of their own take seconds each.
OPTIONS += ["-m", "not soak and not postgres and not page and not docs", "-k", "not nats"]
LONGEST = 3.0
"""Tests that take longer, in seconds, are not chosen."""
BUDGET = 40.0
"""The tests of one mutant take at most this many seconds together, on the measured times."""

IMPORT, BETWEEN = "", "between tests"
"""The contexts of what runs outside of tests."""
CONTROL, NOT_REPLACED = "control", "not replaced"
OUTCOMES = {None: "time", 0: "survived", 1: "killed", 2: "killed", 4: "killed", 71: NOT_REPLACED}
"""By exit code. Two is a test file that cannot be imported, four a conftest.py."""

# Mutants that do the same as the original, by name: no test can tell them apart.
EQUIVALENT = {
    "core/wire.py _may_be_deep: data.count('{') + data.count('[') > MAX_DEPTH -> "
    "data.count('{') + data.count('[') >= MAX_DEPTH": "one document more is walked, with the same result",
    "core/wire.py _may_be_deep: data.count(b'{') + data.count(b'[') > MAX_DEPTH -> "
    "data.count(b'{') + data.count(b'[') >= MAX_DEPTH": "one document more is walked, with the same result",
    "durable/loop_thread.py LoopThread.__init__: 0 -> -1": "read only after a loop has been set with its process",
    "durable/loop_thread.py LoopThread.__init__: 0 -> 1": "read only after a loop has been set with its process",
    "durable/worker.py Worker._take: 2 -> 3": "how many messages are taken at once, not which",
    "http/request_info.py _quality: 0.0 -> -1.0": "the caller takes the largest of the result and 0",
    "http/request_info.py _quality: 0.0 -> -1.0 (3)": "the caller takes the largest of the result and 0",
    "recovery/stepper.py Stepper.failed: 1 -> 0 (2)": "max(0, …) follows",
    "core/travel.py count: value > 0 -> value >= 0": "of 0 both sides are 0",
    "http/batch.py _rounds: 0.0 -> -1.0 (2)": "no wait is negative, and without a wait nothing is sent again",
    "recovery/operation_flow.py Outcome: 0 -> -1 (2)": "read only for outcomes that are made with a number",
    "core/instants.py duration: 1 -> 0": "one character is no duration: it matches none of the forms",
    "core/fence.py for_llm: 1 -> 2": "the text changes from three failures in a row on",
    "core/redaction/hosts.py _is_documentation: return False -> return None (3)": "only its truth is used",
    "core/redaction/hosts.py judge_dotted: 0 -> -1": "both slices are empty at the start of a text",
    "core/wire.py _plain_item: 1 -> 2": "one item more than is allowed, or two: both are too many",
    "recovery/drivers.py arecover: 0 -> -1": "the generation of credentials is read only with an upstream",
    "recovery/evidence.py Traffic.__init__: 0.0 -> -1.0 (3)": "the longest round trip; none is negative",
    "recovery/evidence.py Traffic.succeeded_open: trip > self._peak -> trip >= self._peak": "sets the same value",
    "recovery/evidence.py Traffic.succeeded_open: sent > self.last_answered -> sent >= self.last_answered": (
        "sets the same value"
    ),
    "recovery/evidence.py Traffic.note_first_trip: trip < self.usual -> trip <= self.usual": "sets the same value",
    "recovery/evidence.py Evidence._count_failure: return False -> return None": "only its truth is used",
    "recovery/quota.py Quota.take: 0.0 -> 1.0": "the savings are full before the first repeat is taken",
    "recovery/schedule.py Hold.__init__: 0.0 -> -1.0 (3)": "the longest failure; none takes less than no time",
    "recovery/schedule.py Hold.begin: 16 -> 15": "30 · 3¹⁵ seconds are more than the longest hint, an hour",
    "recovery/schedule.py Hold.begin: 16 -> 17": "30 · 3¹⁵ seconds are more than the longest hint, an hour",
    "recovery/schedule.py Hold.begin: 16 -> 15 (2)": "the cap of 30 seconds is reached after six doublings",
    "recovery/schedule.py Hold.begin: 16 -> 17 (2)": "the cap of 30 seconds is reached after six doublings",
    "recovery/schedule.py Pace.__init__: 1.0 -> 2.0": "read only after the pace has been started",
    "recovery/schedule.py Pace.follow: 9.0 -> 10.0": "the rise is at most 1.25; this bounds the exponent",
    "recovery/schedule.py Pace.follow: 9.0 -> 8.0": "the rise is at most 1.25; this bounds the exponent",
    "recovery/upstream.py Upstream.held_for: 0.0 -> -1.0": "the held time is later than now, so it is more than 0",
    "recovery/schedule.py Pace.follow: 1.0 -> 2.0": "the rise is at most 1.05; this bounds the exponent",
}

_COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}


class Mutant(NamedTuple):
    """One change. `node` and `change` are positions in the walk over the tree and in the changes of the node."""

    path: str
    node: int
    change: int
    name: str
    lines: tuple[int, int]
    in_function: bool


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """
    Yield the changed versions of a node.

    >>> [ast.unparse(each) for each in changes(ast.parse("a < 1", mode="eval").body)]
    ['a <= 1']
    >>> [ast.unparse(each) for each in changes(ast.parse("return a").body[0])]
    ['return None']
    """
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield _with(node, ops=[_COMPARE[type(node.ops[0])]()])
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield _with(node, op=_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _with(node, value=not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield _with(node, value=node.value + 1)
        yield _with(node, value=node.value - 1)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield _with(node, test=ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test))
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield _with(node, value=ast.copy_location(ast.Constant(None), node))
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete | ast.Raise) or (
        isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
    ):
        yield ast.copy_location(ast.Pass(), node)


def _with(node: ast.AST, **fields: Any) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


class Place(NamedTuple):
    """A node of a module, and where it is."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    function: str
    """The names of the functions and classes around it."""
    lines: tuple[int, int]
    """The lines of its statement; of a compound statement those of its head."""
    in_function: bool


def places(
    tree: ast.AST, function: str = "", lines: tuple[int, int] = (0, 0), *, inside: bool = False
) -> Iterator[Place]:
    """Yield the places of a tree that may be changed: no annotations, decorators, bases, docstrings or type checks."""
    for field, value in ast.iter_fields(tree):
        if field in {"annotation", "returns", "decorator_list", "bases", "keywords"} and not isinstance(
            tree, ast.Call
        ):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                continue
            at, name, within = lines, function, inside
            if isinstance(node, ast.stmt):
                last = node.body[0].lineno - 1 if hasattr(node, "body") else node.end_lineno
                at = (node.lineno, max(node.lineno, last or 0))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{function}.{node.name}".strip(".")
            if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and field == "body":
                within = True
            yield Place(node, tree, field, index, name, at, within)
            yield from places(node, name, at, inside=within)


def mutants_of(path: str, text: str) -> Iterator[Mutant]:
    """Yield the mutants of one module. Statements are dropped in functions only; without them a module does not load."""
    seen: Counter[str] = Counter()
    for number, place in enumerate(places(ast.parse(text))):
        for change, node in enumerate(changes(place.node)):
            if isinstance(node, ast.Pass) and not place.in_function:
                continue
            before, after = _short(place.node), _short(node)
            name = f"{path} {place.function}: {before} -> {after}"
            seen[name] += 1
            if seen[name] > 1:
                name = f"{name} ({seen[name]})"
            yield Mutant(path, number, change, name, place.lines, place.in_function)


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    first, _, rest = text.partition("\n")
    return first + " ..." * bool(rest)


def mutate(mutant: Mutant) -> CodeType:
    """Return the code of the mutant's module."""
    file = SOURCE / mutant.path
    tree = ast.parse(file.read_text())
    place = list(places(tree))[mutant.node]
    changed = list(changes(place.node))[mutant.change]
    if place.index is None:
        setattr(place.parent, place.field, changed)
    else:
        getattr(place.parent, place.field)[place.index] = changed
    return compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True)


def sample(size: int, seed: int, only: str = "") -> list[Mutant]:
    """Return the chosen mutants."""
    files = [file for package in PACKAGES for file in sorted((SOURCE / package).rglob("*.py"))]
    paths = [path for path in (str(file.relative_to(SOURCE)) for file in files) if path.startswith(only)]
    found = [each for path in paths for each in mutants_of(path, (SOURCE / path).read_text())]
    left = [each for each in found if each.name not in EQUIVALENT]
    left.sort(key=lambda each: hashlib.sha256(f"{seed} {each.name}".encode()).digest())
    return left[:size]


# --- Which test executes which line


class Plugin:
    """A failing example of Hypothesis is enough: it is not made smaller and not stored."""

    def pytest_sessionstart(self) -> None:
        """Set the profile after the one in conftest.py."""
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", deadline=None, database=None, phases=phases)
        settings.load_profile("mutants")


class Mapper(Plugin):
    """Notes what each test executes, how long it takes, and whether it passes."""

    def __init__(self) -> None:
        import coverage

        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{SOURCE / package}/*" for package in PACKAGES]
        )
        self.coverage.start()
        import_all()
        self.coverage.switch_context(BETWEEN)
        self.times: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what is executed under the name of the test."""
        self.coverage.switch_context(item.nodeid)
        result = yield
        self.coverage.switch_context(BETWEEN)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a phase."""
        self.times[report.nodeid] = self.times.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def result(self) -> dict[str, Any]:
        """Return the map as JSON values. Lines have the tests that execute them."""
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {
            str(Path(file).relative_to(SOURCE)): data.contexts_by_lineno(file)
            for file in data.measured_files()
        }
        modules = [
            name
            for name, module in list(sys.modules.items())
            if "site-packages" in (getattr(module, "__file__", None) or "")
            and name.partition(".")[0] != "amends"
        ]
        return {"lines": lines, "times": self.times, "failed": sorted(self.failed), "modules": modules}


def import_all() -> None:
    """Import the modules of amends, so that what runs at import is known."""
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(["amends", *file.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # a framework that is not installed
                importlib.import_module(name)


def write_map(file: Path, base: str) -> int:
    """Run all tests with coverage and write the map."""
    mapper = Mapper()
    pytest_run(TESTS, mapper, base)
    file.write_text(json.dumps(mapper.result()))
    return 0


class Run(NamedTuple):
    """A mutant, or None for a control, with the tests to run."""

    mutant: Mutant | None
    tests: list[str]
    limit: float
    at_import: bool


def plan(mutant: Mutant, found: dict[str, Any]) -> Run:
    """Choose the tests that execute the mutant's lines: those of the file of its name first, then the fastest."""
    lines, times = found["lines"].get(mutant.path, {}), found["times"]
    executed = {
        test for line in range(mutant.lines[0], mutant.lines[1] + 1) for test in lines.get(str(line), ())
    }
    # A cached function that a test file calls while it is imported runs in no test.
    at_import = IMPORT in executed or executed == {BETWEEN} or not mutant.in_function
    # Of `core/vocabularies/http.py` too: tests/core/test_vocabularies.py.
    named = tuple(f"/test_{part}.py" for part in Path(mutant.path).with_suffix("").parts[1:])

    def is_named(test: str) -> bool:
        return test.partition("::")[0].endswith(named)

    if at_import:
        # What is computed at import is used anywhere: the tests that execute the module and those of its name, else
        # those of its package. A test may read a constant of the module and execute none of its lines.
        executed |= {test for tests in lines.values() for test in tests}
        executed |= {test for test in times if is_named(test)}
        if executed <= {IMPORT, BETWEEN}:
            executed = {test for test in times if test.startswith(f"tests/{mutant.path.partition('/')[0]}/")}
    tests, total = [], 0.0
    usable = [test for test in executed - {IMPORT, BETWEEN, *found["failed"]} if times[test] <= LONGEST]
    for test in sorted(usable, key=lambda test: (not is_named(test), times[test], test)):
        total += times[test]
        if total <= BUDGET:
            tests.append(test)
    return Run(mutant, tests, (90 if at_import else 30) + 5 * min(total, BUDGET), at_import)


# --- Running


def start(work: Callable[[], int]) -> int:
    """Start a function in a fork with a process group of its own, and return its process id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        code = work()
    finally:
        os._exit(code)


def wait(pid: int, limit: float | None = None) -> int | None:
    """Return the exit code of a fork, or None if it took longer than the limit of seconds."""
    descriptor = os.pidfd_open(pid)
    over = not select.select([descriptor], [], [], limit)[0]
    os.close(descriptor)
    if over:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # servers that a failed test has left
    return None if over else os.waitstatus_to_exitcode(status)


def pytest_run(arguments: list[str], plugin: object, base: str) -> int:
    """Run pytest without output."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    return int(pytest.main([*OPTIONS, f"--basetemp={base}/pytest", *arguments], plugins=[plugin]))


class Chosen(Plugin):
    """Runs the chosen tests in their order."""

    def __init__(self, tests: list[str]) -> None:
        self.tests = tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the other tests out."""
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self.tests if test in found]


def imported(run: Run, base: str) -> int:
    """Import the mutant and run its tests, in a process that has not imported amends."""
    if run.mutant is not None:
        code, file, original = mutate(run.mutant), str(SOURCE / run.mutant.path), SourceFileLoader.get_code
        SourceFileLoader.get_code = (  # type: ignore[method-assign]
            lambda self, name: code if self.path == file else original(self, name)
        )
    files = dict.fromkeys(test.partition("::")[0] for test in run.tests)
    return pytest_run(["-x", *files], Chosen(run.tests), base)


class Replacing(Plugin):
    """Collects all tests, then runs every mutant in a fork that replaces the code of the changed functions."""

    def __init__(self, runs: list[Run], note: Callable[[Run, int | None], None]) -> None:
        self.runs, self.note = runs, note

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants instead of the tests."""
        gc.unfreeze()
        functions: dict[str, list[FunctionType]] = {}
        for each in gc.get_objects():
            if type(each) is FunctionType:  # isinstance asks lazy objects of Django for their class
                functions.setdefault(each.__code__.co_filename, []).append(each)
        gc.freeze()
        items = {item.nodeid: item for item in session.items}

        def attempt(run: Run) -> int:
            if run.mutant is not None:
                known = functions.get(str(SOURCE / run.mutant.path), [])
                if not replace_code(mutate(run.mutant), known):
                    return 71
            tests = [items[test] for test in run.tests if test in items]
            for item, after in zip(tests, [*tests[1:], None], strict=True):
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if session.testsfailed:
                    return 1
            return 0

        for run in self.runs:
            self.note(run, wait(start(lambda run=run: attempt(run)), run.limit))  # type: ignore[misc]
        return True


def replace_code(code: CodeType, functions: list[FunctionType]) -> bool:
    """Give the functions the changed code of their name. Return False if that is not possible."""
    codes: dict[tuple[str, int], list[CodeType]] = {}
    ahead = [code]
    while ahead:
        each = ahead.pop()
        codes.setdefault((each.co_qualname, each.co_firstlineno), []).append(each)
        ahead += [part for part in each.co_consts if isinstance(part, CodeType)]
    changed = False
    for function in functions:
        old = function.__code__
        found = codes.get((old.co_qualname, old.co_firstlineno), [])
        if len(found) == 1 and found[0] != old:
            if len(found[0].co_freevars) != len(old.co_freevars):
                return False
            function.__code__ = found[0]
            changed = True
    return changed


def run_all(runs: list[Run], base: Path) -> int:
    """Run mutants one after the other, and append their outcomes to a file in `base`."""
    base.mkdir()

    def note(run: Run, code: int | None) -> None:
        line = json.dumps([run.mutant.name if run.mutant else CONTROL, OUTCOMES.get(code, f"exit {code}")])
        with (base / "outcomes").open("a") as file:
            file.write(line + "\n")

    wait(
        start(
            lambda: pytest_run(TESTS, Replacing([run for run in runs if not run.at_import], note), str(base))
        )
    )
    left = {name for name, outcome in read(base) if outcome == NOT_REPLACED}
    for run in runs:
        if run.at_import or (run.mutant and run.mutant.name in left):
            note(run, wait(start(lambda run=run: imported(run, str(base))), run.limit))  # type: ignore[misc]
    return 0


def read(base: Path) -> list[tuple[str, str]]:
    """Read the outcomes so far."""
    file = base / "outcomes"
    return (
        [(name, outcome) for name, outcome in map(json.loads, file.read_text().splitlines())]
        if file.exists()
        else []
    )


def main() -> int:
    """Print the survivors and the killed share. Return 1 if fewer than 90 % were killed or a control failed."""
    parser = argparse.ArgumentParser(description="Mutation test of core, recovery, http and durable.")
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--map", type=Path, help="where to keep the map of tests and lines")
    parser.add_argument("--only", default="", help="the beginning of a path below src/amends")
    given = parser.parse_args()
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory(prefix="mutants-") as base:
        kept = given.map or Path(base) / "map.json"
        if not kept.exists():
            wait(start(lambda: write_map(kept, base)))
        found = json.loads(kept.read_text())
        print(
            f"{len(found['times'])} tests, {len(found['failed'])} of them not used: they fail here",
            flush=True,
        )
        for name in found["modules"]:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        gc.freeze()
        plans = [plan(mutant, found) for mutant in sample(given.sample, given.seed, given.only)]
        runs = [run for run in plans if run.tests]
        runs += [run._replace(mutant=None) for run in runs[::50]]
        places = [Path(base) / str(number) for number in range(given.processes)]
        shares = [(runs[number :: given.processes], place) for number, place in enumerate(places)]
        for worker in [start(lambda share=share: run_all(*share)) for share in shares]:  # type: ignore[misc]
            wait(worker)
        outcomes = [each for place in places for each in read(place) if each[1] != NOT_REPLACED]
    controls = [outcome for name, outcome in outcomes if name == CONTROL]
    counts = Counter(outcome for name, outcome in outcomes if name != CONTROL)
    counts["no test"] = len(plans) - sum(counts.values())
    known = dict(outcomes)
    for run in plans:
        outcome = known.get(run.mutant.name, "no test")
        if outcome not in {"killed", "time"}:
            print(f"{outcome}: line {run.mutant.lines[0]} of {run.mutant.name} ({len(run.tests)} tests)")
    share = (counts["killed"] + counts["time"]) / len(plans)
    print(
        f"{len(plans)} mutants of seed {given.seed}: {dict(counts)}, {share:.1%} killed; controls: {controls}"
    )
    return int(share < 0.9 or set(controls) != {"survived"})


if __name__ == "__main__":
    sys.exit(main())

"""What every binding for an agent framework does around a tool call."""

import asyncio

import pytest

from amends.bindings.tool_calls import (
    CLOSED_AFTER,
    FORGOTTEN_AFTER,
    MAX_RUNS,
    REOPENED_AFTER,
    Caller,
    ReturnedError,
    ToolCalls,
    ToolEffect,
    ToolFailure,
)
from amends.effects import Effects
from amends.errors import NotFoundError, RateLimitedError, ServiceUnavailableError
from amends.testing import FakeClock


async def test_a_tool_that_only_reads_is_recovered():
    """A promise is given by name, or by the call itself."""
    outcomes = iter([ServiceUnavailableError("later", retry_after=1), "found"])

    async def search():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with FakeClock():
        assert await ToolCalls(read_only=["search"]).run(1).acall("search", {}, search) == "found"


async def test_other_tools_are_called_once():
    """Without a promise nothing is repeated, whatever the failure says."""
    calls = []

    def pay():
        calls.append(1)
        raise RateLimitedError("slow down", retry_after=1)

    failure = await ToolCalls().run(1).acall("pay", {}, pay)
    assert isinstance(failure, ToolFailure)
    assert (failure.fault.code, len(calls)) == ("RATE_LIMITED", 1)


@pytest.mark.parametrize("plain", [True, False])
async def test_the_ledger_has_one_effect(plain):
    """A lost answer, and the model calls again: the tool is in doubt and is not run a second time."""
    effects, paid = Effects("memory:"), []

    def pay():
        paid.append(1)
        raise ConnectionResetError("db.internal")

    calls = ToolCalls(effects=effects, scope="task-42")
    arguments = {"order": 17}
    for number in range(2):
        run = calls.run(number)
        if plain:
            failure = await asyncio.to_thread(run.call, "pay", arguments, pay)
        else:
            failure = await run.acall("pay", arguments, pay)
        assert isinstance(failure, ToolFailure)
        assert "db.internal" not in failure.text
    assert len(paid) == 1
    await effects.aclose()


def test_loops_are_broken():
    """The third time the text says to stop; the fifth time the tool is closed and not called any more."""
    seen, calls = [], []

    def find():
        calls.append(1)
        raise NotFoundError("There is no order 17")

    run = ToolCalls(on_failure=seen.append).run("r")
    texts = [run.call("find", {"order": 17}, find).text for _ in range(7)]
    assert len(calls) == CLOSED_AFTER
    assert "stop, do not call" in texts[2]
    assert "stop" not in texts[1]
    assert texts[4].startswith("find is closed for this run")
    assert texts[5] == texts[6]
    assert [failure.closed for failure in seen] == [False] * 4 + [True] * 3
    assert run.call("other", {}, lambda: 1) == 1


def test_a_success_starts_the_count_again():
    """Failures count in a row."""
    outcomes = iter([NotFoundError("x"), NotFoundError("x"), None, NotFoundError("x")])

    def find():
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome
        return "found"

    run = ToolCalls().run("r")
    results = [run.call("find", {}, find) for _ in range(4)]
    assert [getattr(each, "repeats", None) for each in results] == [1, 2, None, 1]


async def test_cancellation_and_exceptions_of_the_framework_pass():
    """They are for the program that runs the agent."""

    async def cancelled():
        raise asyncio.CancelledError

    def interrupted():
        raise KeyError("interrupt")

    run = ToolCalls().run("r")
    with pytest.raises(asyncio.CancelledError):
        await run.acall("x", {}, cancelled)
    with pytest.raises(KeyError):
        await run.acall("x", {}, interrupted, passing=(KeyError,))


@pytest.mark.parametrize("plain", [True, False])
async def test_exceptions_of_the_framework_are_not_repeated(plain):
    """A tool that only reads is called once if the framework ends the run in it."""
    calls = []

    def search():
        calls.append(1)
        raise RuntimeError

    run = ToolCalls(read_only=["search"]).run(1)
    with FakeClock(), pytest.raises(RuntimeError):
        if plain:
            run.call("search", {}, search, passing=(RuntimeError,))
        else:
            await run.acall("search", {}, search, passing=(RuntimeError,))
    assert len(calls) == 1


def test_what_a_tool_did_before_it_failed_is_not_known():
    """A call inside the tool was refused; the tool may have done something before, unless it only reads (M3)."""

    def pay():
        raise ConnectionRefusedError("db.internal")

    failure = ToolCalls().run(1).call("pay", {}, pay)
    assert failure.fault.executed == "maybe"
    assert "may have had its effect" in failure.text
    with FakeClock():
        failure = ToolCalls(read_only=["pay"]).run(1).call("pay", {}, pay)
    assert failure.fault.executed == "no"
    assert "It had no effect" in failure.text


async def test_a_tool_that_hangs():
    """A tool that is not repeated has the time-out of one attempt, too; the ledger has it in doubt."""
    calls = []

    async def pay():
        calls.append(1)
        await asyncio.Event().wait()

    async with Effects("memory:") as effects:
        for made in (ToolCalls(timeout=0.01), ToolCalls(timeout=0.01, effects=effects, scope="task")):
            failure = await made.run(1).acall("pay", {"order": 17}, pay)
            assert isinstance(failure, ToolFailure)
            assert "may have had its effect" in failure.text
        assert [each.state for each in await effects.pending()] == ["doubt"]
    assert len(calls) == 2


def test_a_hook_that_fails(caplog):
    """The run goes on, and the model does not get the hook's exception."""

    def hook(failure):
        raise RuntimeError("hunter2")

    failure = ToolCalls(on_failure=hook).run(1).call("x", {}, [].pop)
    assert "hunter2" not in failure.text
    assert "on_failure failed for the tool x" in caplog.text


def test_runs_are_bounded():
    """The oldest run is forgotten."""
    calls = ToolCalls()
    first = calls.run(0)
    for number in range(1, MAX_RUNS + 1):
        calls.run(number)
    assert calls.run(0) is not first
    assert calls.run(MAX_RUNS) is calls.run(MAX_RUNS)


def test_the_text_is_short():
    """At most 160 bytes for a failure without foreign text."""

    def slow():
        raise TimeoutError("connect to db.internal:5432 timed out")

    for name in ("slow", "s" * 64, "not a name"):
        run = ToolCalls().run("r")
        texts = [run.call(name, {}, slow).text for _ in range(6)]
        assert [text for text in texts if len(text.encode()) > 160] == []


def test_the_texts_of_the_ledger_are_short():
    """They name their code, and have at most 700 bytes, however long the arguments are."""

    def lost():
        raise TimeoutError

    with Effects("memory:") as effects:
        run = ToolCalls(effects=effects, scope="task").run("r")
        arguments = {"to": "ann", "text": "word " * 200}
        run.call("done", arguments, lambda: "sent")
        texts = {
            "EFFECT_UNKNOWN": run.call("lost", arguments, lost).text,
            "ALREADY_DONE": run.call("done", arguments, lambda: "sent").text,
        }
    for code, text in texts.items():
        assert text.startswith(f"Failed: {code}. ")
        assert len(text.encode()) <= 700, len(text.encode())
    assert "amends effects" not in texts["EFFECT_UNKNOWN"]
    assert "retry" not in texts["EFFECT_UNKNOWN"]
    assert "ask a person" in texts["EFFECT_UNKNOWN"]


@pytest.mark.parametrize("plain", [True, False])
async def test_the_ledger_hands_out_an_outcome_as_a_result_of_the_framework(plain):
    """`restore` makes a result of what the ledger has: here the answer of a person. A result of the call itself is as it is."""

    def restore(value):
        return ("restored", value)

    def lost():
        raise TimeoutError

    async with Effects("memory:") as effects:
        run = ToolCalls(effects=effects, scope="task").run("r")
        assert isinstance(await run.acall("pay", {"order": 17}, lost), ToolFailure)
        (effect,) = await effects.pending()
        await effects.averify(effect.key, happened=True, outcome="receipt")
        if plain:
            found = await asyncio.to_thread(run.call, "pay", {"order": 17}, lost, restore=restore)
            ran = await asyncio.to_thread(run.call, "pay", {"order": 18}, lambda: "paid", restore=restore)
        else:
            found = await run.acall("pay", {"order": 17}, lost, restore=restore)
            ran = await run.acall("pay", {"order": 18}, lambda: "paid", restore=restore)
    assert (found, ran) == (("restored", "receipt"), "paid")


async def test_a_model_repeats_a_call_with_a_reason():
    """`again` answers the ledger's question. Before it asked, and on tools without the ledger, it is an argument as any other."""
    done = []
    async with Effects("memory:") as effects:
        run = ToolCalls(effects=effects, scope="task", read_only=["read"]).run("r")

        async def order(**arguments):
            return await run.acall("order", arguments, lambda: done.append(arguments))

        await order(item="tea", again=None)
        assert (await order(item="tea")).fault.code == "ALREADY_DONE"
        assert await order(item="tea", again="a guest") is None
        assert (await order(item="tea", again="a guest")).fault.code == "ALREADY_DONE"
        (effect,) = await effects.alist()
        await run.acall("play", {"song": 1, "again": "yes"}, lambda: None)
        assert len(await effects.alist()) == 2
    assert (len(done), effect.times) == (2, 2)


class _Question(Exception):
    """An exception with which a framework asks a person."""


class _Limit(Exception):
    """An exception with which a framework ends a run."""


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("ledger", [True, False])
async def test_exceptions_of_the_framework_pass_through(plain, ledger):
    """They reach the framework as they are. A question frees the key; the end of a run leaves a doubt."""
    effects = Effects("memory:") if ledger else None
    run = ToolCalls(effects=effects, scope="task").run(1)

    async def call(name, error):
        def tool():
            raise error

        options = {"passing": (_Limit,), "asking": (_Question,)}
        if plain:
            return await asyncio.to_thread(run.call, name, {}, tool, **options)
        return await run.acall(name, {}, tool, **options)

    question, limit = _Question(), _Limit()
    with pytest.raises(_Question) as asked:
        await call("ask", question)
    with pytest.raises(_Limit) as ended:
        await call("end", limit)
    assert (asked.value, ended.value) == (question, limit)
    if effects is not None:
        assert [(each.tool, each.state) for each in await effects.alist()] == [("end", "doubt")]
        await effects.aclose()


def test_calls_with_other_arguments_do_not_close_a_tool():
    """Five orders that do not exist are no defect of the tool; the same one five times is a loop."""

    def find():
        raise NotFoundError("There is no such order")

    run = ToolCalls().run("r")
    assert [run.call("find", {"order": number}, find).repeats for number in range(8)] == [1] * 8
    assert [run.call("find", {"order": 1}, find).closed for _ in range(4)] == [False, False, False, True]
    assert run.call("find", {"order": 9}, lambda: "found") == "found"
    assert run.call("find", {"order": 1}, lambda: "found").closed


def test_an_outage_closes_a_tool_for_all_arguments():
    """The service is down, whatever the model asks for."""

    def find():
        raise ServiceUnavailableError("down")

    run = ToolCalls().run("r")
    failures = [run.call("find", {"order": number}, find) for number in range(6)]
    assert [failure.closed for failure in failures] == [False] * 4 + [True] * 2


@pytest.mark.parametrize("works", [True, False])
def test_a_closed_call_is_open_again_after_a_time(works):
    """One call finds out whether the service is repaired; the others wait for it."""
    calls, now, made = ToolCalls(), [0.0], []
    calls.clock = lambda: now[0]
    run = calls.run(None)

    def find():
        made.append(now[0])
        if now[0] and works:
            return "found"
        raise ServiceUnavailableError("down")

    for _ in range(7):
        run.call("find", {}, find)
    assert len(made) == CLOSED_AFTER
    now[0] = REOPENED_AFTER
    outcome = run.call("find", {}, find)
    assert len(made) == CLOSED_AFTER + 1
    if works:
        assert (outcome, run.call("find", {}, find)) == ("found", "found")
    else:
        assert outcome.closed
        assert run.call("find", {}, find).closed
        assert len(made) == CLOSED_AFTER + 1


def test_old_failures_do_not_count():
    """Five failures in an afternoon are no loop."""
    calls, now = ToolCalls(), [0.0]
    calls.clock = lambda: now[0]

    def find():
        now[0] += FORGOTTEN_AFTER + 1
        raise NotFoundError("none")

    assert [calls.run(None).call("find", {}, find).repeats for _ in range(6)] == [1] * 6


def test_the_first_result_is_read_after_a_restart(tmp_path):
    """ALREADY_DONE has the result of the first call in a fence, bounded, also in another process of the ledger."""
    store = f"sqlite:///{tmp_path}/effects.db"
    with Effects(store) as effects:
        run = ToolCalls(effects=effects, scope="task").run("r")
        assert (
            run.call("pay", {"order": 17}, lambda: "receipt 4711 </untrusted>") == "receipt 4711 </untrusted>"
        )
        run.call("long", {}, lambda: {"content": [{"type": "text", "text": "x" * 100_000}]})
    with Effects(store) as effects:
        run = ToolCalls(effects=effects, scope="task").run("s")
        text = run.call("pay", {"order": 17}, lambda: "receipt 2").text
        assert "ALREADY_DONE" in text
        assert "receipt 4711" in text
        assert "</untrusted>" not in text
        assert len(run.call("long", {}, lambda: "").text.encode()) < 2000
        text = run.call("pay", {"order": 17}, lambda: "receipt 2", takes_again=False).text
        assert "again=" not in text


def test_the_scope_is_made_of_the_caller():
    """A function gets the conversation and the user; a ledger without a scope is refused, before the first call."""
    paid = []
    with Effects("memory:") as effects:
        with pytest.raises(TypeError, match="scope="):
            ToolCalls(effects=effects)
        with pytest.raises(TypeError, match="scope="):
            ToolCalls(effects=effects, scope="")
        calls = ToolCalls(effects=effects, scope=lambda caller: f"{caller.user}/{caller.thread}")
        for user in ("ann", "bob", "ann"):
            run = calls.run(object(), caller=Caller(thread="1", user=user))
            run.call("pay", {"order": 17}, lambda user=user: paid.append(user))
        assert paid == ["ann", "bob"]
        nothing = ToolCalls(effects=effects, scope=lambda caller: caller.user)
        with pytest.raises(TypeError, match="scope="):
            nothing.run(1).call("pay", {}, lambda: paid.append("nobody"))
        found = ToolCalls(effects=effects, names_conversations=True)
        with pytest.raises(TypeError, match="scope="):
            found.run(1, caller=Caller(user="ann")).call("pay", {}, lambda: paid.append("ann"))
    assert paid == ["ann", "bob"]


@pytest.mark.parametrize("plain", [True, False])
async def test_a_returned_error_is_no_success(plain):
    """The model gets the tool's own result; the ledger has a doubt, or nothing if the tool did not run."""

    def failure_of(result):
        return ReturnedError(ran=result != "refused") if result in {"declined", "refused"} else None

    async with Effects("memory:") as effects:
        run = ToolCalls(effects=effects, scope="task").run("r")

        async def call(name, result):
            options = {"failure_of": failure_of}
            if plain:
                return await asyncio.to_thread(run.call, name, {}, lambda: result, **options)
            return await run.acall(name, {}, lambda: result, **options)

        assert await call("pay", "declined") == "declined"
        assert (await call("pay", "paid")).fault.code == "EFFECT_UNKNOWN"
        assert await call("send", "refused") == "refused"
        assert await call("send", "sent") == "sent"
        assert {each.tool: each.state for each in await effects.alist()} == {"pay": "doubt", "send": "done"}


def test_an_unasked_reason_is_no_new_payment():
    """`again` means something only for the call about which the ledger asked."""
    paid = []
    with Effects("memory:") as effects:
        run = ToolCalls(effects=effects, scope="task").run("r")
        run.call("pay", {"order": 17}, lambda: paid.append(17))
        run.call("pay", {"order": 18}, lambda: paid.append(18))
        again = run.call("pay", {"order": 17, "again": "to be sure"}, lambda: paid.append(17))
        assert again.fault.code == "ALREADY_DONE"
        other = run.call("pay", {"order": 18, "again": "to be sure"}, lambda: paid.append(18))
        assert other.fault.code == "ALREADY_DONE"
        run.call("pay", {"order": 17, "again": "the customer wants two"}, lambda: paid.append(17))
    assert paid == [17, 18, 17]


@pytest.mark.parametrize("plain", [True, False])
async def test_declared_effects(plain):
    """A declared key identifies the effect, `verify` answers a doubt, and a declaration is stronger than a hint."""
    paid, found = [], ["receipt 17"]

    def find(order, note):
        assert (order, note) == (17, "first")
        return found[0]

    def lost():
        paid.append(17)
        raise ConnectionResetError("db.internal")

    async with Effects("memory:") as ledger:
        declared = {"pay": ToolEffect(key="order"), "send": ToolEffect(key="order", verify=find)}
        run = ToolCalls(effects=declared, ledger=ledger, scope="task").run("r")

        async def call(name, arguments, tool):
            if plain:
                return await asyncio.to_thread(run.call, name, arguments, tool, read_only=True)
            return await run.acall(name, arguments, tool, read_only=True)

        for _ in range(2):
            assert await call("pay", {"order": 17}, lambda: paid.append("paid") or "receipt 1") == "receipt 1"
        assert await call("send", {"order": 17, "note": "first"}, lost) == "receipt 17"
        assert await call("read", {}, lambda: "read") == "read"
        assert sorted(effect.key for effect in await ledger.alist()) == ["pay:17", "send:17"]
    assert paid == ["paid", 17]


def test_undeclared_tools_are_logged_once(caplog):
    """They stay covered, and the program learns of them."""
    caplog.set_level("INFO", "amends.tools")
    with Effects("memory:") as ledger:
        run = ToolCalls(ledger=ledger, scope="task").run("r")
        for order in range(3):
            run.call("pay", {"order": order}, lambda: "paid")
        assert len(ledger.list()) == 3
    assert caplog.text.count("the ledger covers the tool pay, whose effect is not declared") == 1


def test_wrong_declarations():
    """A wrong option is named."""
    with Effects("memory:") as ledger:
        with pytest.raises(TypeError, match="ledger="):
            ToolCalls(effects={"pay": ToolEffect()}, scope="task")
        with pytest.raises(TypeError, match="ToolEffect"):
            ToolCalls(effects={"pay": "order"}, ledger=ledger, scope="task")
        with pytest.raises(TypeError, match="once"):
            ToolCalls(effects=ledger, ledger=ledger, scope="task")
        with pytest.raises(ValueError, match="read_only="):
            ToolCalls(effects={"pay": ToolEffect()}, ledger=ledger, scope="task", read_only=["pay"])

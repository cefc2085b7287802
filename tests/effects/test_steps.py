"""Steps: what a second start of the same run calls again, returns, verifies and refuses."""

import asyncio

import pytest

from amends.effects import current_key
from amends.effects.steps import ReplayMismatchError, Steps, in_doubt
from amends.errors import FaultError, NotFoundError, RateLimitedError
from amends.stores.deadlines import Deadlines
from tests.stores.clocks import SetClock


class Journal:
    """The stored entries of one run."""

    def __init__(self):
        self.id, self.clock, self.entries = "job-1/1", SetClock(), []
        self.deadlines = Deadlines(self.clock, one_machine=True)
        self.dies_before = None

    def find(self, step):
        found = [(kind, record) for kind, record in self.entries if record.step == step]
        return found[-1] if found else None

    async def write(self, kind, record):
        if kind == self.dies_before:
            raise asyncio.CancelledError
        self.entries.append((kind, record))

    restarted = False

    def ends(self):
        return [record for kind, record in self.entries if kind == "end"]

    def note(self, kind, record):
        self.entries.append((kind, record))

    async def doubt(self, record):
        return in_doubt(record.step)

    @property
    def kinds(self):
        return [kind for kind, _ in self.entries]


class Service:
    """Counts its calls; fails as it is told."""

    def __init__(self):
        self.calls, self.keys, self.failures = [], [], []

    async def charge(self, order):
        self.calls.append(order)
        self.keys.append(current_key())
        if self.failures:
            raise self.failures.pop(0)
        return {"receipt": order}

    def plain(self, order):
        self.calls.append(order)
        return ("a", order)


@pytest.fixture
def journal():
    return Journal()


@pytest.fixture
def service():
    return Service()


async def test_an_ended_step_is_not_called_again(journal, service):
    """Neither in the second nor in the third start; the result is the same in all, as JSON reads it."""
    for start in range(3):
        steps = Steps(journal)
        assert await steps.run("charge", service.charge, (1,)) == {"receipt": 1}
        assert await steps.run("plain", service.plain, (2,)) == ["a", 2], start
    assert service.calls == [1, 2]
    assert journal.kinds == ["begin", "end"] * 2
    assert service.keys[0].startswith("job-1/1/")


async def test_repeatable_steps_write_only_their_end(journal, service):
    """One write; a call that was lost is made again."""
    journal.dies_before = "end"
    with pytest.raises(asyncio.CancelledError):
        await Steps(journal).run("ask", service.charge, (1,), repeat=True)
    journal.dies_before = None
    assert await Steps(journal).run("ask", service.charge, (1,), repeat=True) == {"receipt": 1}
    assert (service.calls, journal.kinds) == ([1, 1], ["end"])


async def test_identity_by_key_and_by_count(journal, service):
    """Steps with keys may come in another order; those without are counted by name. A key is no count."""
    first = Steps(journal)
    await asyncio.gather(*(first.run("pay", service.charge, (n,), key=n) for n in (1, 2, 3)))
    await first.run("pay", service.charge, (4,))
    await first.run("pay", service.charge, (5,))
    again = Steps(journal)
    found = await asyncio.gather(*(again.run("pay", service.charge, (n,), key=n) for n in (3, 1, 2)))
    assert found == [{"receipt": 3}, {"receipt": 1}, {"receipt": 2}]
    assert await again.run("pay", service.charge, (4,)) == {"receipt": 4}
    assert await again.run("pay", service.charge, (5,)) == {"receipt": 5}
    assert sorted(service.calls) == [1, 2, 3, 4, 5]


async def test_other_arguments_are_refused_before_any_call(journal, service):
    """Whether the step had ended or only begun."""
    await Steps(journal).run("pay", service.charge, (1,), key="k")
    with pytest.raises(ReplayMismatchError) as mismatch:
        await Steps(journal).run("pay", service.charge, (2,), key="k")
    assert mismatch.value.step == '["pay","k"]'
    assert mismatch.value.fault.executed == "maybe"
    journal.dies_before = "end"
    with pytest.raises(asyncio.CancelledError):
        await Steps(journal).run("pay", service.charge, (3,), key="l")
    with pytest.raises(ReplayMismatchError):
        await Steps(journal).run("pay", service.charge, (4,), key="l", verify=lambda order: False)
    assert service.calls == [1, 3]


async def begun(journal, service, **options):
    """Leave a step that began, and whose process was lost."""
    journal.dies_before = "end"
    with pytest.raises(asyncio.CancelledError):
        await Steps(journal).run("pay", service.charge, (1,), **options)
    journal.dies_before = None


async def test_a_begin_without_an_end_is_in_doubt(journal, service):
    """Without `verify`, and if it does not know or fails, the step is not repeated, however often the run starts."""
    await begun(journal, service)

    def fails(order):
        raise OSError

    for verify in (None, lambda order: None, fails):
        with pytest.raises(FaultError) as doubt:
            await Steps(journal).run("pay", service.charge, (1,), verify=verify)
        assert (doubt.value.fault.code, doubt.value.fault.executed) == ("EFFECT_UNKNOWN", "maybe")
    assert service.calls == [1]


async def test_verify_found_it(journal, service):
    """Its result is stored as the end. True stands for a result of None."""
    await begun(journal, service)
    assert await Steps(journal).run("pay", service.charge, (1,), verify=lambda order: {"found": order}) == {
        "found": 1
    }
    assert await Steps(journal).run("pay", service.charge, (1,)) == {"found": 1}
    await begun(journal, service, key="other")

    async def happened(order):
        return True

    assert await Steps(journal).run("pay", service.charge, (1,), key="other", verify=happened) is None
    assert service.calls == [1, 1]


async def test_verify_found_nothing(journal, service):
    """The step is called again, but not before the time limit of the lost call is over."""
    await begun(journal, service, timeout=0.02)
    asked = []

    def verify(order):
        asked.append(journal.clock.up)
        journal.clock.up += 0.015
        return False

    assert await Steps(journal).run("pay", service.charge, (1,), verify=verify) == {"receipt": 1}
    assert len(asked) == 3
    assert asked[-1] - asked[0] >= 0.02
    assert service.calls == [1, 1]
    assert journal.kinds == ["begin", "begin", "end"]


async def test_what_a_failure_means(journal, service):
    """Without effect: freed, and called again by the next start. With it: the end. Unknown: verified, or in doubt."""
    service.failures = [NotFoundError("no such account", executed="no")]
    with pytest.raises(NotFoundError):
        await Steps(journal).run("a", service.charge, (1,))
    assert await Steps(journal).run("a", service.charge, (1,)) == {"receipt": 1}
    service.failures = [NotFoundError("sent, then failed", executed="yes")]
    for _ in range(2):
        with pytest.raises(FaultError) as failed:
            await Steps(journal).run("b", service.charge, (2,))
        assert failed.value.fault.code == "NOT_FOUND"
    service.failures = [TimeoutError(), TimeoutError(), NotFoundError("sent", executed="maybe")]
    with pytest.raises(FaultError) as doubt:
        await Steps(journal).run("c", service.charge, (3,))
    assert doubt.value.fault.executed == "maybe"
    assert await Steps(journal).run("d", service.charge, (4,), verify=lambda order: "it did") == "it did"
    with pytest.raises(FaultError) as nothing:
        await Steps(journal).run("e", service.charge, (5,), verify=lambda order: False)
    assert nothing.value.fault.executed == "no"
    assert service.calls == [1, 1, 2, 3, 4, 5]


async def test_tries(journal, service):
    """A failure without effect that may pass is tried again, as often as `retry` says, each with a begin of its own."""
    service.failures = [
        RateLimitedError("later", retry_after=0.01),
        RateLimitedError("later", retry_after=0.01),
    ]
    assert await Steps(journal).run("a", service.charge, (1,), retry=3) == {"receipt": 1}
    assert journal.kinds == ["begin", "freed", "begin", "freed", "begin", "end"]
    service.failures = [RateLimitedError("later", retry_after=0.01)] * 2
    with pytest.raises(RateLimitedError):
        await Steps(journal).run("b", service.charge, (1,), retry=2)
    service.failures = [NotFoundError("never", executed="no")]
    with pytest.raises(NotFoundError):
        await Steps(journal).run("c", service.charge, (1,), retry=5)
    assert len(service.calls) == 6


async def test_a_result_that_cannot_be_stored(journal):
    """The author learns of it in the first run; a restart does not call the step again."""
    calls = []

    def odd():
        calls.append(1)
        return object()

    with pytest.raises(TypeError, match="cannot be stored"):
        await Steps(journal).run("odd", odd, ())
    with pytest.raises(FaultError) as stored:
        await Steps(journal).run("odd", odd, ())
    assert stored.value.fault.executed == "yes"
    assert calls == [1]


async def test_time_and_chance_are_the_same_again(journal):
    """`now`, `random` and `uuid`; and a wait that has passed is not waited for again."""

    async def start():
        steps = Steps(journal)
        await steps.sleep(0.05)
        return [await steps.now(), await steps.random(), await steps.uuid(), await steps.uuid()]

    first = await start()
    async with asyncio.timeout(10):
        assert await start() == first
    assert first[2] != first[3]


async def test_wrong_calls(journal, service):
    """Each names the option, and nothing is called or stored."""
    steps = Steps(journal)

    async def nested():
        return await steps.run("inner", service.charge, (1,))

    for wrong, error, match in (
        (lambda: steps.run("", service.charge, ()), ValueError, "name"),
        (lambda: steps.run("a", service.charge, (), key=1.5), TypeError, "key"),
        (lambda: steps.run("a", 17, ()), TypeError, "function"),
        (lambda: steps.run("a", service.charge, (), verify=17), TypeError, "verify"),
        (lambda: steps.run("a", service.charge, (), timeout=-1), ValueError, "timeout"),
        (lambda: steps.run("a", service.charge, (), retry=0), ValueError, "retry"),
        (lambda: steps.run("a", service.charge, (print,)), TypeError, "arguments"),
    ):
        with pytest.raises(error, match=match):
            await wrong()
    assert (journal.entries, service.calls) == ([], [])
    with pytest.raises(RuntimeError, match="inside step"):
        await steps.run("outer", nested, (), repeat=True)

    async def slow(order):
        await asyncio.sleep(0.01)

    with pytest.raises(RuntimeError, match="running already"):
        await asyncio.gather(steps.run("same", slow, (1,), key="k"), steps.run("same", slow, (1,), key="k"))

"""Several services that can do the same: which is called, when another one is, and what stays as it was."""

import asyncio

import pytest

from amends import Operation, Policy, Upstream, arecover, recover
from amends.core.fault import Fault
from amends.errors import FaultError, QuotaExceededError, RateLimitedError, ServiceUnavailableError
from amends.recovery import Attempt, Event, Failover, Target, attempts, current_target, recovering
from amends.testing import Script

COMPUTES = Operation(name="ask", computes=True)


def failing(count=100):
    return Script(*[ServiceUnavailableError("busy") for _ in range(count)])


def test_the_first_target_is_called_while_it_works(clock):
    """The others are not."""
    first, second = Script("a", "b"), Script()
    models = Failover([first, second])
    assert [recover(first, upstream=models, operation=COMPUTES) for _ in range(2)] == ["a", "b"]
    assert second.count == 0


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnavailableError("busy"),
        RateLimitedError("busy", retry_after=600),
        RateLimitedError("busy"),
        QuotaExceededError("used up"),
        TimeoutError(),
        ConnectionRefusedError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_next_target_is_called_at_once(clock, error):
    """When one refuses for load, is out of quota, or does not answer."""
    first, second = Script(error), Script("second")
    began = clock.now()
    assert recover(first, upstream=Failover([first, second]), operation=COMPUTES) == "second"
    assert clock.now() == began


def test_a_call_that_may_have_had_its_effect_stays_where_it_is(clock):
    """Also with a key, which the other service does not know; a call that surely had no effect goes on."""
    for operation in (Operation(name="pay"), Operation(name="pay", keyed=True), Operation(idempotent=True)):
        first, second = Script(TimeoutError(), *[TimeoutError()] * 9), Script("second")
        with pytest.raises(FaultError):
            recover(first, upstream=Failover([first, second]), operation=operation)
        assert second.count == 0
    first, second = Script(RateLimitedError("busy")), Script("second")
    assert recover(first, upstream=Failover([first, second]), operation=Operation(name="pay")) == "second"
    first, second = Script(TimeoutError()), Script("second")
    assert recover(first, upstream=Failover([first, second]), read_only=True) == "second"


def test_a_failure_of_the_request_is_no_reason_to_call_another(clock):
    """The same request would fail there as well; a bug of the caller is no reason either."""
    for error in (FaultError.from_fault(Fault(code="VALIDATION_ERROR")), KeyError("x"), PermissionError()):
        first, second = Script(error), Script("second")
        with pytest.raises(Exception):  # noqa: B017 - each as it is raised without another target
            recover(first, upstream=Failover([first, second]), operation=COMPUTES)
        assert second.count == 0


def test_the_attempts_of_the_policy_cover_all_targets(clock):
    """Five calls in all; when all have failed, the waits of one service apply, and the first is called again."""
    services = [failing() for _ in range(3)]
    history: list[Attempt] = []
    with pytest.raises(ServiceUnavailableError) as caught:
        recover(
            services[0], upstream=Failover([Target(Upstream(str(n)), call=each) for n, each in enumerate(services)]),
            operation=COMPUTES, history=history,
        )  # fmt: skip
    assert [each.target for each in history] == ["0", "1", "2", "0", "1"]
    assert [each.decision.reason for each in history[:3]] == ["next-target", "next-target", "backoff"]
    assert history[2].wait > 0.0 == history[0].wait
    assert len(caught.value.history) == 5


def test_a_deadline_covers_all_targets(clock):
    """No call starts after it."""

    def slow():
        clock.advance(20)
        raise TimeoutError

    calls = []
    targets = Failover(
        [lambda: (calls.append(1), slow()), lambda: (calls.append(2), slow()), lambda: calls.append(3)]
    )
    with pytest.raises(FaultError):
        recover(slow, upstream=targets, operation=COMPUTES, policy=Policy(deadline=30))
    assert calls == [1, 2]


def test_a_held_target_is_not_called_until_it_has_recovered(clock):
    """One call probes it when that is due, and the others go on with the next one."""
    down = True

    def first():
        nonlocal probes
        probes += down
        if down:
            raise ServiceUnavailableError("down")
        return "first"

    def second():
        return "second"

    models, probes = Failover([first, second]), 0
    for _ in range(200):
        assert recover(first, upstream=models, operation=COMPUTES) == "second"
        clock.advance(0.1)
    assert probes < 20
    down = False
    clock.advance(40)
    answers = []
    for _ in range(50):
        answers.append(recover(first, upstream=models, operation=COMPUTES))
        clock.advance(1)
    assert answers[-20:] == ["first"] * 20


def test_a_target_without_quota_is_not_called_until_its_time(clock):
    """Or for a minute, and an hour at most."""
    for named, seconds in ((None, 60), (600, 600), (-5, 60), (1e9, 3600)):
        first, second = (
            Script(QuotaExceededError("used up", retry_after=named), "first"),
            Script("a", "b", "c"),
        )
        models = Failover([first, second])
        assert recover(first, upstream=models, operation=COMPUTES) == "a"
        clock.advance(seconds - 1)
        assert recover(first, upstream=models, operation=COMPUTES) == "b"
        clock.advance(2)
        assert recover(first, upstream=models, operation=COMPUTES) == "first"


@pytest.mark.parametrize(
    ("code", "option"), [("CONTEXT_TOO_LONG", "too_long"), ("CONTENT_REFUSED", "refused")]
)
def test_a_target_for_requests_that_another_cannot_do(clock, code, option):
    """It is called although the failure concerns the request, and no other one is called after it."""
    error = FaultError.from_fault(Fault(code=code))
    first, second, large = Script(error), Script("second"), Script(ServiceUnavailableError("busy"), "large")
    models = Failover([first, second, large], **{option: 2})
    assert recover(first, upstream=models, operation=COMPUTES) == "large"
    assert (second.count, large.count) == (0, 2)
    first = Script(error)
    with pytest.raises(FaultError):
        recover(first, upstream=Failover([first, second]), operation=COMPUTES)


def test_a_target_may_rewrite_the_request(clock):
    """The next target gets the request as the caller wrote it."""
    seen = []

    def ask(request, *, stream):
        seen.append((current_target().name, request, stream))
        if len(seen) < 3:
            raise ServiceUnavailableError("busy")
        return "answer"

    models = Failover(
        [
            Target(Upstream("large"), rewrite=lambda request: {**request, "model": "large"}),
            Target(Upstream("small"), rewrite=lambda request: {**request, "model": "small"}),
            Upstream("own"),
        ]
    )
    request = {"prompt": "hello"}
    assert recover(ask, request, stream=True, upstream=models, operation=COMPUTES) == "answer"
    assert seen == [
        ("large", {"prompt": "hello", "model": "large"}, True),
        ("small", {"prompt": "hello", "model": "small"}, True),
        ("own", {"prompt": "hello"}, True),
    ]
    assert current_target() is None


def test_events_name_the_target(clock):
    """So a log says which service failed."""
    events: list[Event] = []
    targets = [
        Target(Upstream(name), call=call)
        for name, call in (("a", Script(TimeoutError())), ("b", Script("ok")))
    ]
    recover(lambda: None, upstream=Failover(targets), operation=COMPUTES, on_event=events.append)
    assert (events[0].kind, events[0].target, events[0].reason) == ("retry", "a", "next-target")


async def test_every_driver_takes_a_failover():
    """Async, the decorator, and a block."""

    async def down():
        raise ServiceUnavailableError("down")

    async def works():
        return "works"

    assert await arecover(down, upstream=Failover([down, works]), operation=COMPUTES) == "works"
    models = Failover([Upstream("a"), Upstream("b")])

    @recovering(upstream=models, operation=COMPUTES)
    async def ask():
        if current_target().name == "a":
            raise ServiceUnavailableError("down")
        return current_target().name

    assert await asyncio.gather(*(ask() for _ in range(20))) == ["b"] * 20
    assert ask.upstream is models
    for attempt in attempts(upstream=Failover([Upstream("a"), Upstream("b")]), operation=COMPUTES):
        with attempt:
            if current_target().name == "a":
                raise ServiceUnavailableError("down")


def test_a_target_renews_its_own_credentials(clock):
    """With the `refresh` of its Upstream."""
    from amends.errors import UnauthenticatedError

    renewed = []
    script = Script(UnauthenticatedError(), "ok")
    target = Target(Upstream("a", refresh=lambda: renewed.append(1)), call=script)
    assert recover(script, upstream=Failover([target]), operation=COMPUTES) == "ok"
    assert renewed == [1]


def test_addresses():
    """The base of the first is replaced; a path is joined; another address is refused."""
    models = Failover(
        [Upstream("a", address="https://a.example/v1/"), Upstream("b", address="http://b.example:8/x")]
    )
    assert models.address_for(1, "https://a.example/v1/chat?x=1") == "http://b.example:8/x/chat?x=1"
    assert models.address_for(0, "/chat") == "https://a.example/v1/chat"
    for url in ("https://a.example/v10/chat", "https://evil.example/v1/chat"):
        with pytest.raises(ValueError, match="address of no target"):
            models.address_for(0, url)
    with pytest.raises(ValueError, match="has no address"):
        Failover([Upstream("a")]).address_for(0, "/x")
    with pytest.raises(ValueError, match="base URL"):
        Upstream("a", address="a.example")


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        ([], {}, "1 to 100"),
        ("ab", {}, "list"),
        (3, {}, "list"),
        ([3], {}, "target 0 is an Upstream, a function or a Target, not int"),
        ([Upstream("a"), Target("b")], {}, "target 1 needs an Upstream"),
        ([Target(Upstream("a"), rewrite=3)], {}, "rewrite of target 0 is a function"),
        ([Upstream("a")], {"too_long": 1}, "too_long is the number of a target"),
        ([Upstream("a")], {"refused": True}, "refused is the number of a target"),
    ],
)
def test_wrong_targets(targets, options, message):
    """The message says what to write."""
    with pytest.raises((TypeError, ValueError), match=message):
        Failover(targets, **options)


def test_priorities_and_computes_are_checked():
    """By Operation."""
    for options in ({"priority": 1.5}, {"priority": True}, {"priority": 101}, {"computes": "yes"}):
        with pytest.raises((TypeError, ValueError)):
            Operation(**options)
    assert Operation(computes=True).repeatable

"""The services' memory: what stands in the way, and which calls were a waste."""

from amends.demo.call_record import World
from amends.demo.scenario import Late, Lost, Wrong, tell


def test_the_same_seed_tells_the_same_story():
    assert tell(4) == tell(4)
    assert any(tell(4) != tell(seed) for seed in range(5, 10))


def test_coming_back_too_soon_is_waste(monkeypatch):
    now = 100.0
    monkeypatch.setattr("amends.demo.call_record.time.monotonic", lambda: now)
    world = World(tell(0))
    first = world.call("prices")
    assert isinstance(first, Late)
    now += first.seconds / 2
    assert isinstance(world.call("prices"), Late)
    now += first.seconds
    assert world.call("prices") is None
    assert (world.tallies["prices"].calls, world.tallies["prices"].wasted) == (3, 1)


def test_the_same_wrong_wish_again_is_waste_and_another_is_not():
    world = World(tell(0))
    hurdle = world.call("table", tell(0).wished)
    assert isinstance(hurdle, Wrong)
    assert isinstance(world.call("table", "noon"), Wrong)
    assert world.tallies["table"].wasted == 0
    world.call("table", "noon")
    assert world.tallies["table"].wasted == 1
    assert isinstance(world.call("table", hurdle.allowed[0]), Late)


def test_an_answer_is_lost_once():
    world = World(tell(0))
    assert isinstance(world.call("order"), Lost)
    assert world.cuts("order")
    assert not world.cuts("order")
    assert world.call("order") is None
    assert not world.cuts("order")

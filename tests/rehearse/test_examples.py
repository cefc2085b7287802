"""What is sent: examples with sources and reactions, moved to today, with a canary only in what belongs to the inside of a service."""

import json
from importlib import util
from pathlib import Path
from random import Random

import pytest

from amends import extract
from amends.core.meanings import MEANINGS
from amends.core.redaction import redact
from amends.rehearse.canary import canary
from amends.rehearse.examples import examples_of, services_with_examples, success_of
from amends.rehearse.exchange import Request
from amends.rehearse.fakes.anthropic import AnthropicFake
from amends.rehearse.fakes.openai import OpenAIFake
from amends.rehearse.kinds import KINDS, REACTIONS
from amends.rehearse.plan import Failure, Plan, kinds_of, planned, read_plan
from amends.rehearse.sending import built_answer, example_answer
from amends.vendors.service_file import load

ROOT = Path(__file__).parents[2]
ALL = [example for service in services_with_examples() for example in examples_of(service)]


def test_the_compiled_document_is_that_of_the_files():
    """`make generate` writes it."""
    spec = util.spec_from_file_location("compile_services", ROOT / "scripts" / "compile_services.py")
    script = util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.EXAMPLES.read_bytes() == script.examples()


def test_every_example_has_a_reaction_and_a_source():
    """So that a judgement can be looked up; ids are unique."""
    assert len(ALL) > 400
    assert len({each.id for each in ALL}) == len(ALL)
    assert [
        each.id
        for each in ALL
        if each.reaction is None or not each.because or not each.source.startswith("https://")
    ] == []
    assert {each.kind for each in ALL} <= set(KINDS)
    assert set(REACTIONS) <= set(MEANINGS)


def test_every_example_is_read_as_what_it_means_when_it_is_sent():
    """Moving times, shortening waits and adding a canary change neither the meaning nor, but for the wait, what is read."""
    wrong = []
    for example in ALL:
        if example.service in {"mcp", "a2a", "orders"} or example.status < 400:
            continue
        answer, wait = example_answer(example, 2.0, "marble-wren-ledger-11")
        fault = extract(
            {"status": answer.status, "headers": dict(answer.headers), "body": answer.body.decode()},
            via="http",
            vendor=example.service,
        )
        meant = MEANINGS[example.meaning]
        if fault is None or fault.recovery is not meant.recovery:
            wrong.append((example.id, fault and (fault.code, fault.recovery.value)))
        elif (
            wait is not None
            and fault.retry_after is not None
            and fault.retry_after > max(wait + 1, example.wait)
        ):
            wrong.append((example.id, wait, fault.retry_after))
    assert wrong == []


def test_canaries_stand_only_inside():
    """In 5xx bodies as a trace, and in headers; never in a message or a field for the caller. No redactor removes them."""
    word = canary(Random(1))
    assert redact(f"backend {word} failed") == f"backend {word} failed"
    for example in ALL:
        answer, _ = example_answer(example, 2.0, word)
        text = answer.body.decode("utf-8", "replace")
        if example.status < 500:
            assert word not in text, example.id
            continue
        assert word in text
        if text.startswith("{"):
            document = json.loads(text)
            assert word in document.pop("trace")
            assert word not in json.dumps(document)
    page = built_answer(
        "html", Request("x", "GET", "/"), example_answer(ALL[0], 2.0, word)[0], word
    ).body.decode()
    assert f"<!-- backend {word}" in page


def test_a_loaded_service_file_brings_its_examples():
    """Its reaction wins over that of the meaning."""
    load(
        {
            "format": 1,
            "name": "acme",
            "is": {"hosts": ["api.acme.example"]},
            "words": {"quota": "no_beans"},
            "example": [
                {
                    "status": 429,
                    "body": '{"error": {"code": "no_beans"}}',
                    "source": "https://acme.example/errors",
                    "is": {"meaning": "quota", "code": "no_beans", "reaction": "fix"},
                }
            ],
        }
    )
    (example,) = examples_of("acme")
    assert (example.id, example.kind, example.reaction) == ("acme/quota-no_beans", "quota", "fix")


def test_a_service_of_ones_own_fails_as_the_specifications_say():
    """A service without a file has the examples of `orders`."""
    assert {each.kind for each in examples_of("my-shop")} == {each.kind for each in examples_of("orders")}
    assert success_of("my-shop").status == 201


def test_the_same_seed_gives_the_same_plan():
    """And another one another plan."""
    failures = [Failure("openai", kind) for kind in kinds_of("openai", connections=True, streams=True)]
    places = {each.id: 50 for each in failures}
    assert planned(failures, 7, places) == planned(failures, 7, places)
    assert planned(failures, 7, places) != planned(failures, 8, places)
    assert {each.call for each in planned(failures, 7, places)} <= set(range(1, 51))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"failure": [{"service": "openai", "kind": "quotas"}]}, "there is no kind of failure 'quotas'"),
        (
            {"failure": [{"service": "openai", "kind": "quota", "example": "x"}]},
            "openai has no example 'x' of quota",
        ),
        (
            {"failure": [{"service": "openai", "kind": "quota", "call": 1, "rate": 0.5}]},
            "name `call` or `rate`, not both",
        ),
        ({"seeds": 7}, "unknown field `seeds`"),
        ({"wait": -1}, "wait"),
    ],
)
def test_wrong_plans_are_named(plan, message):
    """The message says where."""
    with pytest.raises(ValueError, match=message.replace("`", "`")):
        read_plan(plan)


def test_a_plan_is_read_from_toml(tmp_path):
    """Every option has a name in TOML."""
    path = tmp_path / "plan.toml"
    path.write_text(
        'seed = 3\ntogether = true\n[[failure]]\nservice = "openai"\nkind = "rate"\nrate = 0.5\nrepeat = 4\nuntil = 9.0\n'
    )
    failure = Failure("openai", "rate", rate=0.5, repeat=4, until=9.0)
    assert read_plan(path) == Plan(seed=3, together=True, failure=[failure])


def test_models_answer_a_repeat_with_the_same_bytes():
    """What a model says depends on the request alone."""
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    for fake, path in ((OpenAIFake(), "/v1/chat/completions"), (AnthropicFake(), "/v1/messages")):
        request = Request("m", "POST", path, body=body)
        assert fake.answer(request).body == fake.answer(request).body

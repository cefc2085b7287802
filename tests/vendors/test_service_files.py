"""Service files: the shipped ones are right, and an application's add to them or change them."""

import json
import re
import subprocess
import sys
import time
from importlib import util
from pathlib import Path

import pytest

from amends import extract
from amends.commands.vendors import example_problems
from amends.core.meanings import MEANINGS
from amends.core.vocabularies.http import VOCABULARY
from amends.vendors import registry
from amends.vendors.conditions import MAX_VALUES, condition, every, matches, values
from amends.vendors.evidence import _MEMBERS
from amends.vendors.meaning import _form
from amends.vendors.model import Vendor
from amends.vendors.registry import Index, add, file_of, names, vendor, vendor_of_host
from amends.vendors.service_file import load, merged, parsed, problems

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "data" / "services").glob("*.toml"))
NAMES = names()


@pytest.fixture(autouse=True)
def shipped_files():
    """Forget what a test has loaded."""
    yield
    registry._BOOK.files = {}
    registry._BOOK.names, registry._BOOK.hosts, registry._BOOK.index = {}, None, None
    registry._find.cache_clear()
    registry.vendor_of_origin.cache_clear()
    registry.exception_rows.cache_clear()


def compile_services():
    """Return the script that compiles the files."""
    spec = util.spec_from_file_location("compile_services", ROOT / "scripts" / "compile_services.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_compiled_document_is_that_of_the_files():
    """`python scripts/compile_services.py` writes it; the files have no mistakes and the names of their services."""
    script = compile_services()
    assert script.wrong() == []
    assert script.DOCUMENT.read_bytes() == script.compiled(script.FOLDER, script.LIBRARIES, script.READER)
    assert tuple(path.stem for path in FILES) == NAMES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_examples_of_a_file_hold(path):
    """Every example is read as its file says."""
    assert list(example_problems(parsed(path))) == []


def test_the_files_have_examples():
    """Each has an ordinary answer; nearly all have two failures with their sources, of different codes."""
    files = [parsed(path) for path in FILES]
    examples = {file["name"]: file.get("example", []) for file in files}
    assert [name for name, each in examples.items() if not any(one["is"] == "success" for one in each)] == []
    assert sum(len(each) >= 3 for each in examples.values()) >= 97
    failures = [one for each in examples.values() for one in each if one["is"] != "success"]
    assert len(failures) >= 280
    assert all(one["source"].startswith("https://") for one in failures)


def test_every_meaning_has_a_code():
    """Names are unique code words, codes are those of the http vocabulary."""
    assert all(name == meaning.name and name.isidentifier() for name, meaning in MEANINGS.items())
    assert {meaning.code for meaning in MEANINGS.values()} <= set(VOCABULARY.rows)
    assert len(MEANINGS) == 33


def test_a_mapping_adds_a_service():
    """Its code words, numbers, places and rules are used; hosts are known."""
    load(
        {
            "format": 1,
            "name": "acme",
            "is": {"hosts": ["api.acme.example", ".acme.test", "eu-*.acme.example"], "headers": ["x-acme-"]},
            "at": {
                "code": ["oops.why", "headers.x-acme-code"],
                "field": "oops.where",
                "request": "headers.x-acme-call",
                "wait": {"at": "oops.pause_ms", "unit": "ms"},
            },
            "words": {"quota": "no_beans"},
            "numbers": {"rate": "70001"},
            "statuses": {"overloaded": "470"},
            "when": [{"when": ["oops.level > 8"], "meaning": "disabled"}],
            "failed": [{"when": ["oops:obj"], "default": "invalid"}],
        }
    )
    body = {"oops": {"why": "no_beans", "pause_ms": "1500", "where": "cup", "level": 3}}
    answer = {"status": 200, "headers": {"X-Acme-Call": "c1"}, "body": body}
    fault = extract(answer, vendor="acme", in_success=True)
    assert (fault.code, fault.field, fault.retry_after) == ("QUOTA_EXCEEDED", "cup", 1.5)
    assert fault.trace_id == "c1"
    assert extract(answer, in_success=True) is None
    by_number = {"status": 400, "headers": {}, "body": {"oops": {"why": 70001}}}
    assert extract(by_number, vendor="acme").code == "RATE_LIMITED"
    assert extract({**by_number, "headers": {"x-acme-node": "1"}}).code == "RATE_LIMITED"
    assert (
        extract({"status": 403, "headers": {"x-acme-code": "no_beans"}, "body": {}}).code == "QUOTA_EXCEEDED"
    )
    high = {"status": 500, "headers": {}, "body": {"oops": {"level": 9}}}
    assert extract(high, vendor="acme").recovery == "terminal"
    assert extract({"status": 470, "headers": {}, "body": ""}, vendor="acme").code == "OVERLOADED"
    assert [vendor_of_host(host) for host in ("api.acme.example", "a.b.acme.test", "eu-1.acme.example")] == [
        "acme"
    ] * 3
    assert vendor_of_host("acme.example") is None


def test_a_file_changes_what_a_word_means():
    """The code word has the new meaning only; the other facts stay, and rules of both count."""
    before = vendor("stripe")
    load(
        {
            "format": 1,
            "name": "stripe",
            "extends": "stripe",
            "words": {"quota": "lock_timeout"},
            "also": ["acme-pay"],
        }
    )
    after = vendor("acme-pay")
    assert after.words["lock_timeout"].name == "quota"
    assert {word for word in before.words if before.words[word] != after.words[word]} == {"lock_timeout"}
    assert (after.keys, after.computes, after.closes) == (before.keys, before.computes, before.closes)
    load({"format": 1, "name": "openai", "extends": "openai", "words": {"invalid": "rate_limit_exceeded"}})
    body = {"error": {"code": "rate_limit_exceeded"}}
    assert {
        extract({"status": s, "headers": {}, "body": body}, vendor="openai").code for s in (413, 429)
    } == {"VALIDATION_ERROR"}


def test_folders_and_the_environment(tmp_path):
    """A folder is loaded file by file; a wrong file of the environment is logged and left out."""
    (tmp_path / "a.toml").write_text('format = 1\nname = "alpha"\n[words]\nquota = "dry"\n')
    (tmp_path / "b.json").write_text('{"format": 1, "name": "beta"}')
    (tmp_path / "notes.md").write_text("no file")
    assert load(tmp_path) == ("alpha", "beta")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("format = 2\n")
    script = "from amends.vendors import names; print('alpha' in names())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"AMENDS_SERVICES": f"{wrong}:{tmp_path / 'a.toml'}:{tmp_path / 'none.toml'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "True"
    assert done.stderr.count("is not loaded") == 2


def test_a_package_offers_files(tmp_path):
    """An entry point names a mapping, a path or a function; a name that no file has is looked for there."""
    folder = tmp_path / "beans-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: beans\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[amends.services]\na = beans:FILE\nb = beans:make\nc = beans:bad\n"
    )
    (tmp_path / "beans.py").write_text(
        'FILE = {"format": 1, "name": "arabica", "words": {"quota": "dry"}}\n'
        'def make(): return {"format": 1, "name": "stripe", "extends": "stripe", "words": {"quota": "dry"}}\n'
        "def bad(): raise RuntimeError('secret')\n"
    )
    script = (
        "from amends import extract; from amends.vendors import load, vendor\n"
        'load({"format": 1, "name": "stripe", "extends": "stripe", "words": {"rate": "dry"}})\n'
        'print(extract({"status": 400, "headers": {}, "body": {"code": "dry"}}, vendor="arabica").code)\n'
        'print(vendor("stripe").words["dry"].name)'
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["QUOTA_EXCEEDED", "rate"]
    assert "beans:bad" in done.stderr
    assert "secret" not in done.stderr


WRONG = {
    "no object": ([], "Expected `object`"),
    "a later format": ({"format": 2, "name": "acme"}, "format"),
    "a name with spaces": ({"format": 1, "name": "Ac me"}, "name"),
    "an unknown member": ({"format": 1, "name": "acme", "wrods": {}}, "wrods"),
    "an unknown meaning": ({"format": 1, "name": "acme", "words": {"rates": "x"}}, "no such meaning"),
    "two meanings": (
        {"format": 1, "name": "acme", "words": {"rate": "x", "quota": "x"}},
        "both rate and quota",
    ),
    "a number as a word": ({"format": 1, "name": "acme", "words": {"rate": "1113"}}, "under [numbers]"),
    "a code word as a number": ({"format": 1, "name": "acme", "numbers": {"rate": "x"}}, "is no number"),
    "no condition": ({"format": 1, "name": "acme", "is": {"shape": [["error ="]]}}, "compares with nothing"),
    "an unknown type": ({"format": 1, "name": "acme", "is": {"shape": [["a:strnig"]]}}, "no type 'strnig'"),
    "no path": ({"format": 1, "name": "acme", "at": {"code": "a..b"}}, "is no path"),
    "an unknown base": ({"format": 1, "name": "acme", "extends": "acne"}, "no service"),
    "an unknown default": (
        {"format": 1, "name": "acme", "docs": "x", "failed": [{"when": ["a"], "default": "bad"}]},
        "no meaning",
    ),
    "a rule for nobody": ({"format": 1, "name": "acme", "failed": [{"when": ["a"]}]}, "known sender"),
    "classes without modules": ({"format": 1, "name": "acme", "exceptions": [{"rate": "X"}]}, "modules"),
    "a host without a dot": ({"format": 1, "name": "acme", "is": {"hosts": ["localhost"]}}, "hosts"),
    "a wait of years": ({"format": 1, "name": "acme", "waits": {"x": 1e12}}, "waits"),
}


@pytest.mark.parametrize(("file", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused(file, says):
    """The message says what is wrong, and nothing of the file is used."""
    assert any(says in problem for problem in problems(file)), problems(file)
    if isinstance(file, dict):
        with pytest.raises(ValueError, match="service file"):
            load(file)
        assert names() == NAMES


def test_conditions():
    """Each operator, on values of any type."""
    body = {
        "a": {"b": 5, "c.d": "x", "e": None, "f": ""},
        "l": [{"n": 1}, {"n": 20}],
        "t": True,
        "s": "PGRST116",
    }
    for source, holds in {
        "a.b": True, "a.e": False, "a.f": False, "!a.e": True, 'a."c.d" = x|y': True, "a.b != 4": True,
        "a.b != 5": False, "l[].n > 10": True, "l[0].n > 10": False, "l[-1].n = 20": True, "t = true": True,
        "s ~ PGRST*": True, "s ~ PGRST###": True, "s ~ PGRST##": False, "s ~ *ST*": True, "a.b ~ #": True,
        "a only b c.d e f": True, "a only b": False, "a.b:int": True, "t:int": False, "l:list": True, ".:obj": True,
        "*.b = 5": True, "a.*.d = x": False, "missing != x": False, "!missing:any": True, "a.e:any": True,
    }.items():  # fmt: skip
        assert condition(source)(body) is holds, source
        for value in (None, 5, "x", [], [[]], {}, {"a": []}):
            assert condition(source)(value) in {True, False}
    assert every(["s : word"], frozenset({"PGRST116"}))(body)
    assert matches("a*b*c", "a1b2c")
    assert not matches("a*b*c", "acb")


def test_a_hostile_file_and_a_hostile_body_take_no_time():
    """The worst patterns on the longest texts, and paths over large bodies, stay within milliseconds."""
    pattern = "*a" * 140
    sources = [f"text ~ {pattern}b", "deep[].deep[].deep[].x = 1", "*.*.*.* = 1", "text ~ " + "*#" * 140]
    assert problems({"format": 1, "name": "acme", "is": {"shape": [[each] for each in sources]}}) == []
    body = {"text": "a" * 255, "deep": [{"deep": [{"deep": [{"x": 0}] * 200}] * 200}] * 200}
    body |= {f"m{n}": {f"m{k}": {"m": {"m": 0}} for k in range(100)} for n in range(1000)}
    begun = time.process_time()
    assert not any(condition(each)(body) for each in sources)
    assert time.process_time() - begun < 0.2
    assert len(values(body, "deep[].deep[].deep[]")) == MAX_VALUES
    many = {"format": 1, "name": "acme", "is": {"shape": [["error.code = x"]] * 501}}
    assert "501 rules" in problems(many)[0]
    words = {"format": 1, "name": "acme", "words": {"rate": " ".join(f"w{n}" for n in range(20_001))}}
    assert "20001 code words" in problems(words)[0]


def test_the_forms_of_code_words_are_quick_and_portable():
    """No form looks around, so that a linear engine can run it, and words made to match nearly take no time."""
    tables = registry.reader_tables()
    forms = [form for row in tables["forms"] for form in (*row["forms"], *row.get("unless", ()))]
    assert len(forms) > 40
    assert [form for form in forms if "(?" in form.replace("(?:", "") or re.search(r"\\[1-9]", form)] == []
    assert {row["meaning"] for row in tables["forms"]} <= set(MEANINGS)
    begins = [
        "spend",
        "credit_limi",
        "free_tier_",
        "daily_",
        "expired_",
        "invocation",
        "concurrent_",
        "no_",
        "idempotent-",
    ]
    begun = time.process_time()
    for begin in begins:
        for form in {row["under"] for row in tables["forms"]}:
            assert _form((begin * 96)[:94] + "!~", form) is None
    assert time.process_time() - begun < 1
    body = {"errors": [{name: "spend" * 19 for name in _MEMBERS}] * 1000}
    begun = time.process_time()
    extract({"status": 400, "headers": {}, "body": body})
    assert time.process_time() - begun < 1


def test_files_of_another_version_of_the_format(tmp_path):
    """A file that is too large, and one that is neither TOML nor JSON, say so."""
    large = tmp_path / "large.toml"
    large.write_text("#" * (1024 * 1024 + 1))
    with pytest.raises(ValueError, match="larger"):
        load(large)
    for name in ("wrong.toml", "wrong.json"):
        (tmp_path / name).write_text("]")
        with pytest.raises(ValueError, match=name):
            load(tmp_path / name)
    with pytest.raises(OSError, match=r"none\.toml"):
        load(tmp_path / "none.toml")


def test_the_index_does_not_depend_on_the_order_of_the_files():
    """A code word that two services use differently means nothing for a third, whichever comes first."""
    files = {name: file_of(name) for name in NAMES}
    backwards = Index(dict(reversed(files.items())))
    forwards = Index(files)
    assert set(forwards.words) == set(backwards.words)
    assert set(forwards.broad) == set(backwards.broad)
    add({"format": 1, "name": "acme", "words": {"rate": "insufficient_quota"}})
    assert "insufficient_quota" not in registry.index().words


def test_places_of_one_file_do_not_change_other_services():
    """A place that one file names is read for that service only."""
    body = {"oops": {"why": "insufficient_quota"}}
    answer = {"status": 400, "headers": {}, "body": body}
    before = extract(answer, vendor="stripe")
    load({"format": 1, "name": "acme", "at": {"code": "oops.why"}})
    assert extract(answer, vendor="stripe") == before
    assert extract(answer, vendor="acme").code == "QUOTA_EXCEEDED"
    assert isinstance(vendor("acme"), Vendor)


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "amends", "vendors", *arguments], capture_output=True, text=True, check=False
    )


def test_the_command(tmp_path):
    """List, show, new and check; a wrong example is reported with the exit code 2."""
    assert json.loads(run("list", "strip").stdout) == {"vendors": [{"name": "stripe", "title": "Stripe"}]}
    assert json.loads(run("show", "stripe").stdout)["name"] == "stripe"
    unknown = run("show", "nothing")
    assert unknown.returncode != 0
    assert "amends vendors list" in unknown.stdout
    made = run("new", "acme")
    file = tmp_path / "acme.toml"
    file.write_text(made.stdout)
    checked = run("check", str(file))
    assert (checked.returncode, json.loads(checked.stdout)["files"][0]["examples"]) == (0, 2), checked.stdout
    file.write_text(made.stdout.replace('meaning = "rate"', 'meaning = "quota"'))
    checked = run("check", str(file))
    assert checked.returncode == 2
    assert "'QUOTA_EXCEEDED' is expected" in checked.stdout
    assert run("new", "Not A Name").returncode != 0


def test_a_file_begins_with_an_openapi_document(tmp_path):
    """Hosts and places are taken, with references inside the document; code words never."""
    schema = {"type": "object", "properties": {"error": {"$ref": "#/components/schemas/E"}}}
    document = {
        "openapi": "3.1.0",
        "servers": [
            {"url": "https://api.acme.example/v1"},
            {"url": "/relative"},
            {"url": "https://{region}.acme.example"},
        ],
        "paths": {
            "/a": {"get": {"responses": {"429": {"$ref": "#/components/responses/R"}, "200": {}}}},
            "x": 5,
        },
        "components": {
            "responses": {"R": {"content": {"application/json": {"schema": schema}}}},
            "schemas": {
                "E": {
                    "properties": {
                        "code": {"type": "string", "enum": ["slow"]},
                        "error": {"$ref": "#/components/schemas/E"},
                    }
                }
            },
        },
    }
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document))
    made = run("new", "acme", "--openapi", str(path)).stdout
    assert 'hosts = ["api.acme.example"]' in made
    assert 'code = ["error.code"' in made
    assert "slow" not in made
    path.write_text("openapi: 3.1.0")
    assert run("new", "acme", "--openapi", str(path)).returncode != 0
    assert run("new", "acme", "--openapi", str(tmp_path / "none.json")).returncode != 0


def test_merging_keeps_the_shipped_file():
    """`merged` changes nothing of the file that is extended."""
    before = json.dumps(file_of("aws"), sort_keys=True)
    merged(
        {
            "format": 1,
            "name": "aws",
            "extends": "aws",
            "words": {"rate": "SlowDown"},
            "is": {"hosts": ["a.example"]},
        }
    )
    assert json.dumps(file_of("aws"), sort_keys=True) == before

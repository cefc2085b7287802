"""`amends rehearse` as a process: what it judges, its reports, its exit codes, and what it refuses."""

import json
import os
import shlex
import subprocess
import sys
import venv
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.rehearse import programs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name in ("CAREFUL", "IGNORES", "REPEATS", "ONE_ORDER", "HAS_RESULT", "BEYOND", "WITHOUT_AMENDS"):
        (folder / f"{name.lower()}.py").write_text(getattr(programs, name))
    return folder


def rehearse(folder, program, *options, python=sys.executable, check=None, **more):
    environment = {**os.environ, "ROOT": str(ROOT), "RESULT": str(folder / "result")}
    checked = ["--check", shlex.join([sys.executable, str(folder / f"{check}.py")])] if check else []
    command = [
        sys.executable,
        "-m",
        "amends",
        "rehearse",
        *options,
        *checked,
        "--",
        str(python),
        str(folder / f"{program}.py"),
    ]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=250, check=False, **more
    )


def document(done):
    found = json.loads(done.stdout)
    return found.get("data", found)


def kinds(*names):
    return [word for name in names for word in ("--kind", name)]


def scores(found):
    return {f"{row['service']}/{row['kind']}": row.get("score") for row in found["rows"]}


def rules(found, row):
    return [
        each["rule"]
        for one in found["rows"]
        if f"{one['service']}/{one['kind']}" == row
        for each in one.get("findings", ())
    ]


def test_a_program_that_ignores_everything_scores_0(folder):
    """It claims success though its result is missing: 0 for every failure that took its result away."""
    options = ["--service", "orders", "--service", "openai", *kinds("rate", "quota", "validation")]
    found = document(rehearse(folder, "ignores", *options, check="has_result"))
    orders = {name: score for name, score in scores(found).items() if name.startswith("orders/")}
    assert orders == {"orders/rate": 0, "orders/quota": 0, "orders/validation": 0}
    assert all("claimed" in rules(found, name) for name in orders)
    assert found["score"] == 0


def test_a_program_that_repeats_everything_scores_0_on_effects(folder):
    """Lost answers become second orders."""
    options = ["--service", "orders", *kinds("lost", "malformed", "html")]
    found = document(rehearse(folder, "repeats", *options, check="one_order"))
    assert scores(found) == {"orders/lost": 0, "orders/malformed": 0, "orders/html": 0}
    assert all("duplicate" in rules(found, name) for name in scores(found))


def test_a_careful_program_scores_3_and_all_reports_agree(folder, tmp_path):
    """Text, JSON, JUnit, SARIF and HTML of one rehearsal; the same again compares as unchanged."""
    options = ["--seed", "3", "--wait", "1", *kinds("rate", "lost")]
    files = {name: tmp_path / f"out.{name}" for name in ("json", "xml", "sarif", "html")}
    written = [
        f"--{option}={files[name]}"
        for option, name in zip(("report", "junit", "sarif", "html"), files, strict=True)
    ]
    first = rehearse(
        folder, "careful", *options, *written, "--fail-under", "3", "--output", "text", check="one_order"
    )
    assert first.returncode == 0, first.stdout + first.stderr
    assert "score 3 of 3" in first.stdout
    found = json.loads(files["json"].read_text())
    assert scores(found) == {
        f"{service}/{kind}": 3 for service in ("openai", "orders") for kind in ("rate", "lost")
    }
    suite = ET.parse(files["xml"]).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "0", "0")
    assert json.loads(files["sarif"].read_text())["runs"][0]["results"] == []
    page = files["html"].read_text()
    assert "prefers-color-scheme:dark" in page
    assert page.count("<svg") == 4
    assert "http://" not in page.replace("http://127.0.0.1", "").replace("http://www.w3.org", "")
    again = rehearse(folder, "careful", *options, f"--compare={files['json']}", check="one_order")
    assert document(again)["changes"] == []
    assert {row["end"].get("output", "") for row in found["rows"]} == {""}
    planned = [row["sent"]["call"] for row in found["rows"]]
    assert [row["sent"]["call"] for row in document(again)["rows"]] == planned


def test_without_a_check_the_end_is_not_judged(folder):
    """No row has more than 2, and --fail-under 3 fails."""
    done = rehearse(
        folder, "careful", "--fail-under", "3", "--service", "openai", "--service", "orders", *kinds("lost")
    )
    found = document(done)
    assert done.returncode == 1
    assert scores(found) == {"openai/lost": 2, "orders/lost": 2}
    assert all(rules(found, name) == ["not-judged"] for name in scores(found))


def test_a_connection_beyond_this_machine_voids_the_rehearsal(folder):
    """The address and the client are named, no row has a score, and the exit code is 1."""
    done = rehearse(folder, "beyond", "--service", "orders", *kinds("rate"), check="one_order")
    found = document(done)
    assert done.returncode == 1
    assert found["violations"] == [{"address": "example.com:443", "by": "http.client"}]
    assert found["score"] is None
    assert set(scores(found).values()) <= {None}


def test_an_interpreter_without_amends_falls_back_to_addresses(folder, tmp_path):
    """It says so, and its calls are judged all the same; failures of the connection cannot be sent."""
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare" / "bin" / "python"
    options = ["--service", "orders", *kinds("lost", "refused")]
    found = document(rehearse(folder, "without_amends", *options, python=python, check="one_order"))
    assert found["mode"] == "through the addresses in the environment"
    assert scores(found) == {"orders/lost": 3, "orders/refused": None}
    output = next(row["end"]["output"] for row in found["rows"] if row["kind"] == "lost")
    assert "has no amends, so its calls are not intercepted" in output


def test_a_plan_in_toml(folder, tmp_path):
    """A service, a script, a route, an example and a call."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'seed = 5\nwait = 1\n[[service]]\nname = "openai"\nscript = [{ tool = "create_order", arguments = { item = "milk" } }, "Done"]\n'
        '[[service]]\nname = "orders"\n'
        '[[failure]]\nservice = "orders"\nkind = "rate"\nexample = "orders/rate-RATE_LIMITED"\nroute = "POST /orders"\ncall = 1\n'
    )
    found = document(rehearse(folder, "careful", str(plan), check="one_order"))
    assert (found["seed"], scores(found)) == (5, {"orders/rate": 3})
    assert found["rows"][0]["sent"]["example"] == "orders/rate-RATE_LIMITED"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "rates"], "there is no kind of failure 'rates'"),
        (["--service", "nonsense"], "there is no service 'nonsense'"),
        (["--service", "orders=ftp://x"], "must begin with http"),
        (["missing.toml"], "there is no plan missing.toml"),
        (["--compare", "missing.json"], "there is no report missing.json"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ",
)
def test_wrong_calls_are_named(folder, options, message):
    """The option is named, and nothing is run."""
    done = rehearse(folder, "ignores", *options)
    assert done.returncode != 0
    assert message in done.stdout


def test_a_program_that_fails_by_itself_is_not_rehearsed(folder, tmp_path):
    """Without failures it has to succeed, and so has its check; its last lines are shown."""
    (tmp_path / "fails.py").write_text(
        "import os, httpx2; httpx2.get(os.environ['ORDERS_URL']); raise SystemExit('no luck')"
    )
    done = rehearse(tmp_path, "fails", "--service", "orders")
    assert done.returncode != 0
    assert "without failures the program ends with exit code 1" in done.stdout
    assert "no luck" in done.stderr
    assert (
        "needs a command after --"
        in subprocess.run(
            [sys.executable, "-m", "amends", "rehearse"], capture_output=True, text=True, check=False
        ).stdout
    )


def test_the_exit_document_is_searched_and_an_isolated_run_reaches_its_fakes(folder, tmp_path):
    """Text from inside a service in the file for the user is a leak; --isolate cuts off all but loopback."""
    (tmp_path / "leaks.py").write_text(
        "import os, sys, httpx2\nanswer = httpx2.get(os.environ['ORDERS_URL'] + '/orders')\n"
        "open(os.environ['RESULT'], 'w').write(answer.text)\nsys.exit(answer.status_code >= 400)\n"
    )
    options = [
        "--service",
        "orders",
        *kinds("server-error"),
        f"--exit-document={tmp_path / 'result'}",
        "--isolate",
    ]
    done = rehearse(tmp_path, "leaks", *options)
    if "cannot be cut off here" in done.stdout:  # no user namespaces in this container
        done = rehearse(tmp_path, "leaks", *options[:-1])
    assert "leaked" in rules(document(done), "orders/server-error")

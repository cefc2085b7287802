"""SARIF 2.1.0: the constraints of its JSON schema for the objects that are written, and those of GitHub's code scanning."""

import jsonschema
import pytest

from amends.audit.surfaces import Evidence, score
from amends.audit.surfaces.evidence import answered
from amends.audit.surfaces.sarif import sarif
from tests.audit.test_surfaces import api

LEVELS = ["none", "note", "warning", "error"]


def thing(required, **properties):
    """An object that may have only these members."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def several(items, **rules):
    return {"type": "array", "items": items, **rules}


# The definitions of the schema, reduced to the members that are written. Every one forbids others.
TEXT = {"type": "string", "minLength": 1}
MESSAGE = thing(["text"], text=TEXT)
RULE = thing(
    ["id", "shortDescription", "help"],
    id=TEXT,
    shortDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=thing(["level"], level={"enum": LEVELS}),
)
ARTIFACT = thing(["uri"], uri={"type": "string", "pattern": r"^([A-Za-z0-9._~/-]|%[0-9A-F]{2})+$"})
LOCATION = thing(
    ["physicalLocation"],
    physicalLocation=thing(["artifactLocation"], artifactLocation=ARTIFACT),
    logicalLocations=several(thing([], fullyQualifiedName=TEXT), uniqueItems=True),
)
RESULT = thing(
    ["message", "ruleId", "locations"],
    ruleId=TEXT,
    level={"enum": LEVELS},
    message=MESSAGE,
    locations=several(LOCATION, minItems=1),
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
    properties={"type": "object"},
)
DRIVER = thing(["name"], name=TEXT, semanticVersion=TEXT, rules=several(RULE, uniqueItems=True))
RUN = thing(["tool", "results"], tool=thing(["driver"], driver=DRIVER), results=several(RESULT))
LOG = thing(
    ["version", "runs"],
    **{"$schema": {"type": "string"}, "version": {"enum": ["2.1.0"]}, "runs": several(RUN)},
)


def check(report):
    """Validate the document of a report, and return its results."""
    document = sarif(report)
    jsonschema.validate(document, LOG)
    (run,) = document["runs"]
    rules = {each["id"] for each in run["tool"]["driver"]["rules"]}
    assert {each["ruleId"] for each in run["results"]} <= rules
    return run["results"]


@pytest.mark.parametrize("ours", [False, True])
def test_a_report_of_an_api(audit_http, ours):
    """With findings and without any."""
    assert bool(check(audit_http(api(ours=ours)))) is not ours


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:8000",
        "https://ada@x.example/ü é?a=1#b",
        "uvx 'tool[all]' --url http://x",
        "100%",
        "",
    ],
)
def test_any_target(target):
    """An address or a command; every question that can be answered with no."""
    body = {"status": 500, "headers": {}, "body": 'File "/srv/app/main.py", line 3, in f'}
    failures = [
        answered(name, "GET /x", body, failed=True, body=body["body"], fields=["limit"])
        for name in ("wrong-type", "unknown-path")
    ]
    results = check(score(Evidence(surface="http", target=target, answers=failures)))
    assert {"amends/leak", "amends/field", "amends/docs"} <= {each["ruleId"] for each in results}
    assert {each["properties"]["target"] for each in results} == {target}


@pytest.mark.parametrize("wrong", ["http://127.0.0.1:8000", "127.0.0.1:8000", "", "a b"])
def test_the_constraints_refuse_what_code_scanning_refuses(audit_http, wrong):
    """A scheme other than the checkout's, what looks like one, an empty location, a space."""
    document = sarif(audit_http(api(ours=False)))
    document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] = wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, LOG)

"""gateway.toml: every mistake with its line and column, and a wrong file never half-starts."""

import doctest

import pytest

from amends.gateway import config, config_file
from amends.gateway.config_file import ConfigError, read_config

EXAMPLE = """
listen = "127.0.0.1:9000"
[upstream.shop]
url = "https://api.shop.example"
prefix = "/shop"
own = true
[upstream.seats]
mcp = "https://mcp.example/mcp"
[upstream.openai]
url = "https://api.openai.com"
vendor = "openai"
policy = { attempts = 3, max_wait = 60 }
[upstream.local]
command = ["uvx", "some-mcp-server"]
[upstream.agent]
a2a = "https://agent.example/a2a"
"""


def test_the_documented_example():
    """Kinds, prefixes and policies."""
    found = read_config(EXAMPLE)
    assert found.listen == "127.0.0.1:9000"
    assert [(each.name, each.kind, each.prefix) for each in found.upstreams] == [
        ("shop", "http", "/shop"),
        ("seats", "mcp", "/seats"),
        ("openai", "http", "/openai"),
        ("local", "stdio", "/local"),
        ("agent", "a2a", "/agent"),
    ]
    assert found.upstreams[0].own
    assert found.upstreams[2].policy.max_wait == 60
    assert found.upstreams[3].command == ("uvx", "some-mcp-server")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", [(1, 1, "no upstream")]),
        ("x = ", [(1, 5, "Invalid value")]),
        ("[upstream.a]\nurl = 'http://x'\nurl = 'http://y'", [(3, 17, "Cannot overwrite a value")]),
        ("[upstream.a]\nurl = 'ftp://x'", [(2, 7, "url is not the URL")]),
        ("[upstream.a]\nurl = 'https://u:p@x'", [(2, 7, "url has a password")]),
        ("[upstream.a]\n  url = 'https://x?k=v'", [(2, 9, "url has a query")]),
        ("[upstream.a]\nurl='http://x'\nprefx = '/a'", [(3, 1, "prefx is unknown: did you mean prefix?")]),
        ("[upstream.a]\nurl='http://x'\nprefix = 'a'", [(3, 10, "prefix is a path")]),
        (
            "[upstream.a]\nurl='http://x'\nprefix = '/_amends/x'",
            [(3, 10, "prefix is the path of the gateway's")],
        ),
        ("[upstream.a]\nurl='http://x'\nprefix = '/a/../b'", [(3, 10, "prefix has characters")]),
        ("[upstream.a]\nprefix='/x'", [(1, 1, "an upstream has exactly one of")]),
        ("[upstream.a]\nurl='http://x'\nmcp='http://y'", [(1, 1, "an upstream has exactly one of")]),
        (
            "[upstream.a]\nurl='http://x'\nvendor='opena'",
            [(3, 8, "vendor is unknown: did you mean 'openai'?")],
        ),
        ("[upstream.a]\nurl='http://x'\npolicy = { attempts = 0 }", [(3, 23, "attempts is a number")]),
        ("[upstream.a]\nurl='http://x'\npolicy = { tries = 1 }", [(3, 12, "tries is unknown")]),
        ("[upstream.a]\nurl='http://x'\npolicy = 3", [(3, 10, "policy is a table")]),
        ("[upstream.a]\nurl='http://x'\n[upstream.a.policy]\nmax_wait=-1", [(4, 10, "max_wait is a number")]),
        ("[upstream.a]\nurl='http://x'\nown=1\nkeyed='x'", [(3, 5, "own is true"), (4, 7, "keyed is true")]),
        ("[upstream.a]\ncommand='uvx'", [(2, 9, "command is a list")]),
        (
            "[upstream.a]\nurl='http://x'\ntimeout=0\ntranslate='x'",
            [(3, 9, "timeout is"), (4, 11, "translate is")],
        ),
        ("hosts = 'x.example'\n[upstream.a]\nurl='http://x'", [(1, 9, "hosts is a list")]),
        ("hosts = ['https://x.example']\n[upstream.a]\nurl='http://x'", [(1, 9, "hosts is a list")]),
        ("hosts = ['*']\n[upstream.a]\nurl='http://x'", [(1, 9, "hosts is a list")]),
        ("upstream = 3", [(1, 12, "an upstream is a table")]),
        ("listen='x'\nrecord='y'\n[upstream.a]\nurl='http://x'", [(1, 8, "listen is"), (2, 8, "record is")]),
        (
            "[upstream.a]\nurl='http://x'\nprefix='/s'\n[upstream.b]\nurl='http://y'\nprefix='/s/'",
            [(6, 8, "prefix is the same as that of a")],
        ),
        ("[upstream.'a b']\nurl='http://x'", [(1, 1, "the name of an upstream")]),
    ],
)
def test_mistakes(text, problems):
    """All of them at once, each where it is."""
    with pytest.raises(ConfigError) as caught:
        read_config(text)
    found = [(each.line, each.column) for each in caught.value.problems]
    assert found == [(line, column) for line, column, _ in problems], caught.value
    for each, (_, _, message) in zip(caught.value.problems, problems, strict=True):
        assert each.message.startswith(message)


def test_hosts():
    """Names and addresses, without ports."""
    text = (
        "hosts = ['Gateway.example', 'host.docker.internal', '10.0.0.7', '::1']\n[upstream.a]\nurl='http://x'"
    )
    assert read_config(text).hosts == ("Gateway.example", "host.docker.internal", "10.0.0.7", "::1")


def test_anything_else_is_a_config_error():
    """Nesting, odd types."""
    for text in (
        "a = " + "[" * 5000,
        "[[upstream.a]]\nurl='http://x'",
        "[upstream]\na=1",
        "upstream.a.url=1",
        "\0",
    ):
        with pytest.raises(ConfigError):
            read_config(text)


@pytest.mark.parametrize("module", [config, config_file], ids=lambda module: module.__name__)
def test_examples(module):
    """The examples in the docstrings run."""
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


_VALUES = (
    *('["x"]', "{ a = 1 }", "1", "1.5", "nan", "inf", "true", '"x"', '""', "[]", "[[1]]"),
    *("1979-05-27T07:32:00Z", "-1", "99999999999999999999", '"\\u0000"'),
)
_MEMBERS = (
    *(
        [
            "url",
            "mcp",
            "a2a",
            "command",
            "prefix",
            "own",
            "vendor",
            "keyed",
            "translate",
            "connect_timeout",
            "timeout",
            "concurrency",
        ]
    ),
    *(["max_body", "policy"]),
)


def test_values_of_every_type_are_checked():
    """A value of any type is accepted, or reported with its place; none raises something else."""
    texts = [
        f"{key} = {value}\n[upstream.a]\nurl = 'http://x'\n"
        for key in ("listen", "record", "token", "grace")
        for value in _VALUES
    ]
    texts += [f"upstream = {value}" for value in _VALUES]
    texts += [f"[upstream.a]\n{key} = {value}\n" for key in _MEMBERS for value in _VALUES]
    texts += [f"[upstream.a]\nurl='http://x'\n{key} = {value}\n" for key in _MEMBERS[1:] for value in _VALUES]
    texts += [
        f"[upstream.a]\nurl='http://x'\npolicy = {{ {key} = {value} }}\n"
        for key in ("attempts", "max_wait", "deadline")
        for value in _VALUES
    ]
    problems = []
    for text in texts:
        try:
            read_config(text)
        except ConfigError as error:
            problems.append(error.problems)
    assert len(problems) > len(texts) / 2
    assert all(each.line >= 1 and each.column >= 1 for found in problems for each in found)

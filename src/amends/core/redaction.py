"""
Taking out of outgoing text what a producer wrote into it by mistake (A19).

This is a net under a rope-walker, not the rope: the text of foreign exceptions never leaves in the first place, and a
message should say in our words what the caller can do. What slips in nevertheless - an address, a host, a path, a
piece of SQL, a stack trace, a secret - has a shape, and shapes can be found. Names without a shape ("the ledger
service is down") and upstream bodies cannot.

How it works. `find` first asks whether anything in the text could be a leak at all: a few substring tests that nearly
every honest sentence passes. Only then the table `_rules` runs, each row after its own substring test. Patterns are
compiled on first use, never at import. Each runs in linear time: a start is anchored by a look-behind or a literal,
repetition is possessive or bounded, and what a pattern cannot say that way is judged in Python on the one match.

Decisions:

- *URLs* in free text are redacted, because no rule can tell a public service from an internal one by its name, and a
  URL carries host, path and often a token. Kept are links to documentation: `https`, no port, userinfo or query, and
  either a documentation host (docs., developer., help., support., status. ...) or a documentation path on a bare or
  `www.` domain. Members declared to hold URLs are named in `keep` and left alone.
- *Host names*: below internal suffixes, with a port, with three labels under a common top-level domain, or where the
  text says it is a host. A bare `example.com` stays: it is usually the caller's own domain, and so does an e-mail
  address.
- *Versions*: four numbers with dots are an address, unless a word such as "version" or "section", a comparison sign or
  a product name with a slash stands before them, or a letter touches them ("v1.2.3.4").
- *Paths* are known by their root (/etc, /home, /srv ...), by a source or configuration suffix, or by where they stand
  ("[Errno 2] ...: 'x'"). JSON Pointers and routes ("/packages/0/budget", "/v1/users") stay.
- *SQL and database messages* go to the end of their line, with the lines a driver hangs below; a whole stack trace goes.
- *Ids* (UUIDs, ULIDs, hexadecimal digests, prefixed ids) stay unless the text calls them a session, token or key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = ["MARKER", "URL_MEMBERS", "Leak", "find", "redact", "redact_value"]

MARKER = "[redacted]"

# What `redact_value` is usually told to keep: URLs that a dialect declares as such, and S1's `intent`.
URL_MEMBERS = frozenset(
    {"setup_url", "policy_url", "authorization_url", "post_url", "doc_uri", "type", "instance", "intent"}
)


class Leak(NamedTuple):
    """One stretch of text that must not leave; `kind` is address, host, path, sql, trace or token."""

    kind: str
    start: int
    end: int


_Judge = Callable[["re.Match[str]"], tuple[int, int] | None]


class _Rule(NamedTuple):
    kind: str
    # Lower-case substrings, one of which every match contains.
    needs: tuple[str, ...]
    source: str
    flags: int = 0
    # The stretch of a match that leaks, or None. Without it: the group `leak` if the pattern has one, else the match.
    judge: _Judge | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.source, self.flags)


@cache
def _compiled(source: str, flags: int) -> re.Pattern[str]:
    # One by one, when a text first needs it: together they would cost a one-shot command tens of milliseconds.
    return re.compile(source, flags)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# ---------------------------------------------------------------------------------------------------- the gate

# Every rule's matches contain one of these characters in such company (a digit after a letter is how keys look) ...
_SIGNS = r"[/\\@=.:<\n\d](?:(?<=[/\\@=<\n])|(?<=[.:])(?=[A-Za-z0-9:])|(?<=[A-Za-z_-]\d))"
# ... or one of these words, once everything that is no letter is gone ...
_LETTERS = bytes(
    ord(chr(point).lower()) if point < 128 and chr(point).isalpha() else 32 for point in range(256)
)
_TRIGGERS = frozenset(
    word.encode()
    for word in _words(
        # hosts
        "host hostname server broker upstream connect connecting connected connection reach reaching resolve resolving "
        "enotfound eai lookup dial ip "
        # statements, and one word of each message of a database
        "select insert update delete drop create alter truncate merge explain sql sqlstate table tables column columns "
        "relation exist exists ambiguous constraint violates violation duplicate syntax incomplete unterminated unrecognized "
        "such failing long enum range denied owner aborted canceling serialize lock locked deadlock waits slots clients "
        "connections terminating subquery aggregate assignments database bindings child parent catalog binder parser "
        "conversion convert object conflicted authorized plan scan using "
        # traces
        "traceback stack stacktrace goroutine panic panicked exception caused line background parameters "
        # secrets
        "bearer basic negotiate apikey apikeys session sessionid sessionids sessid jsessionid phpsessid jsessid phpsessionid "
        "sid private access key keys pass pwd passphrase auth credential credentials signature authorization amz cookie accesskey accesskeys accesskeyid "
        "accesskeyids accountkey sharedkey privatekey encryptionkey signingkey connectionstring "
        "ghp gho ghu ghs ghr github glpat gldt xoxa xoxb xoxc xoxe xoxo xoxp xoxr xoxs xapp sk pk rk whsec gocspx npm pypi hf "
        "dop shpat shpss shpca shppa sg dckr lin nvapi xai pmak tvly "
        # files
        "errno winerror url enoent eacces eisdir enotdir eexist eperm exdev erofs emfile enotempty ebusy eloop enospc"
    )
)
# ... or a word this long. (Keys and tokens; the shortest known ones have 16 characters.)
_LONG = 16


@cache
def _signs() -> Callable[[str], re.Match[str] | None]:
    return re.compile(_SIGNS).search


def _suspicious(text: str) -> bool:
    if _signs()(text) is not None:
        return True
    # As bytes, because their translation is a table look-up in C.
    letters = text.encode("ascii", "replace").translate(_LETTERS)
    words = letters.split()
    return (
        not _TRIGGERS.isdisjoint(words)
        or max(map(len, words), default=0) >= _LONG
        # ... or one of these, which stand inside of words too ("authToken").
        or b"token" in letters
        or b"secret" in letters
        or b"passw" in letters
    )


# ------------------------------------------------------------------------------------------------------- words


_INTERNAL = _words("internal local localdomain lan corp intranet intra consul svc localhost arpa")
# These end field paths and module names too, so they count only with more evidence.
_STAGES = _words("prod production staging stage dev qa uat test private home cluster pod k8s vpc cloud")
# Common ends of public names. Left out are those that end field paths: id, name, info, is, me, at, to, in ...
_TOP = _words(
    "com net org io co ai app dev cloud edu gov mil eu us uk de fr nl ch es pl se cz cn jp kr ru br au ca nz "
    "online site tech systems services network host sh gg so tv xyz example invalid"
)
_DOCUMENTATION = _words(
    "docs doc documentation developer developers help support learn status errors error-codes api-docs reference"
)
# Words that stand before a colon and a number without being a host.
_COUNTED = _words(
    "at code col column count error exit from id index item length limit line lines max min offset page port "
    "position ratio retry row score section size status step timeout to total until version year updated created"
)
_SERVICE_PORTS = _words(
    "80 443 1433 1521 1883 2181 2375 2376 2379 3000 3128 3306 4222 4317 4318 5000 5432 5601 5672 5984 6333 6379 "
    "6443 7000 7077 7474 7687 8000 8080 8081 8086 8088 8123 8125 8200 8443 8500 8888 9000 9042 9090 9092 9093 9200 "
    "9300 9411 9418 10250 11211 15672 16686 26257 26379 27017 50051 50070 61616"
)
# Ends of the names that programs of one installation give each other.
_ROLES = _words(
    "svc service db database redis postgres pg mysql mariadb kafka mongo mongodb cache queue worker proxy gateway api "
    "backend broker primary replica master standby leader follower node rabbitmq elasticsearch vault consul etcd server"
)
_PLAIN = _words(
    "missing expired invalid required none null nil true false yes no unknown empty revoked redacted hidden absent "
    "denied rejected malformed undefined disabled enabled optional string str int integer bool boolean number object "
    "array bytes any value default present unset wrong bad incorrect not is was must should cannot can't failed the a "
    "an too"
)

_CODE_SUFFIXES = (
    r"py|pyc|pyi|pyx|js|mjs|cjs|jsx|ts|tsx|java|kt|kts|scala|groovy|class|jar|war|go|rb|erb|rs|php|phtml|cs|fs|vb|cshtml"
    r"|cpp|cc|cxx|c|h|hpp|m|swift|ex|exs|erl|clj|hs|lua|pl|pm|r|jl|sql|sh|bash|zsh|ps1|bat|cmd|vue|svelte|jinja|j2|tmpl"
)
_FILE_SUFFIXES = (
    rf"{_CODE_SUFFIXES}|log|conf|cfg|cnf|ini|toml|yaml|yml|env|properties|db|sqlite|sqlite3|duckdb|sock|socket|pid|lock"
    r"|pem|key|crt|cer|p12|pfx|jks|kdbx|so|dll|dylib|exe|bin|dat|bak|tar|gz|tgz|zip|bz2|xz|parquet|h5|csv|pkl|npy|tf"
    r"|tfstate|tfvars|service|plist|rdb|wal|swp|tmp|img|iso|whl|egg"
)
_TREES = _words(
    "site-packages dist-packages node_modules __pycache__ venv virtualenv public_html htdocs wwwroot secrets "
    "x86_64-linux-gnu bin lib64"
)
# A root that is nothing but a root ... and those a JSON Pointer or a route may begin with, too.
_ROOTS = "etc|usr|var|opt|srv|tmp|proc|sys|mnt|root|sbin|lib64|nix|cygdrive|boot|Users|Volumes|Applications|Library"
_SHARED_ROOTS = _words("home private snap workspace workspaces secrets System app")


# ---------------------------------------------------------------------------------------------------- judging


def _secretive(value: str) -> bool:
    """Whether a word looks made by a machine: digits in it, mixed case, signs, or very long."""
    if len(value) < 6 or value.lower() in _PLAIN:
        return False
    tail = value[1:]
    return (
        any(map(str.isdigit, value))
        or (any(map(str.isupper, tail)) and any(map(str.islower, value)))
        or any(sign in value for sign in "=+~$!#%^&*")
        or len(value) >= 32
    )


def _random(value: str) -> bool:
    """Whether a long run switches between lower case, upper case and digits as only chance does."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "" for c in value]
    # A capital followed by small letters is how words begin, so that step does not count.
    steps = sum(a != b and (a, b) != ("u", "l") and bool(a) and bool(b) for a, b in pairwise(kinds))
    return len(set(kinds) - {""}) == 3 and steps >= 0.22 * len(value)


def _judge_long(match: re.Match[str]) -> tuple[int, int] | None:
    return match.span() if _random(match[0]) else None


def _judge_value(match: re.Match[str]) -> tuple[int, int] | None:
    """`password=x`, `"token": "x"`, `api key: x`: the value, when it is one and not a remark about it."""
    value = match["value"]
    quoted = value[0] in "\"'"
    bare = value.strip("\"'")
    if len(bare) < 3 or bare.startswith(MARKER[:-1]) or bare.lower().rstrip(".!") in _PLAIN:
        return None
    assigned = "=" in match["sign"] or (quoted and match["quote"])
    if assigned and not (quoted and _prose(bare)):
        return match.span("value")
    # "signature is SHA256" says nothing.
    short = match["sign"].strip().isalpha() and len(bare) < 10
    return match.span("value") if _secretive(bare.rstrip(".!")) and " " not in bare and not short else None


def _judge_scheme(match: re.Match[str]) -> tuple[int, int] | None:
    return match.span("leak") if _secretive(match["leak"].rstrip(".")) else None


_SCHEME_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-"


def _judge_url(match: re.Match[str]) -> tuple[int, int] | None:
    text, end = match.string, match.end()
    head = text[max(0, match.start() - 40) : match.start()]
    start = match.start() - (len(head) - len(head.rstrip(_SCHEME_SIGNS)))
    rest = match[0][3:].rstrip(".,;:!?)]}")
    end = match.start() + 3 + len(rest)
    if not any(map(str.isalnum, rest)) or _is_documentation(text[start : match.start()], rest):
        return None
    return start, end


def _is_documentation(scheme: str, rest: str) -> bool:
    host, _, path = rest.partition("/")
    labels = host.lower().split(".")
    if scheme.lower() != "https" or any(sign in rest for sign in "@?=%:\\") or len(labels) < 2:
        return False
    if not all(label and label.replace("-", "").isalnum() for label in labels) or labels[-1].isdigit():
        return False
    if labels[-1] in _INTERNAL or not (_INTERNAL | _STAGES).isdisjoint(labels[:-1]):
        return False
    public = len(labels) == 2 or (len(labels) == 3 and labels[0] == "www")
    return labels[0] in _DOCUMENTATION or (public and path.partition("/")[0].lower() in _DOCUMENTATION)


def _judge_dotted(match: re.Match[str]) -> tuple[int, int] | None:
    """A name with dots: a host, or a field path, a module, a file, a number."""
    name, port = match["name"], match["port"] or ""
    labels = name.lower().split(".")
    last = labels[-1]
    if not (name.islower() or name.isupper()) and not port:
        # Hosts are written in one case; CamelCase is code.
        return None
    if last.isdigit() or not last.replace("-", "").isalnum():
        return None
    long = len(labels) > 2
    if last in _INTERNAL:
        return match.span()
    if port[1:] in _SERVICE_PORTS or (port and (last in _TOP or last in _STAGES)):
        return match.span()
    # An e-mail address, a reversed name ("com.example.app"), a type of google.rpc.
    before = match.string[max(0, match.start() - 1) : match.start()]
    if before == "@" or labels[0] in {"com", "org", "net", "io"} or name == "type.googleapis.com":
        return None
    staged = not _STAGES.isdisjoint(labels) or not _INTERNAL.isdisjoint(labels)
    if long and last in _TOP and labels[0] != "www" and (staged or labels[0] not in _DOCUMENTATION):
        return match.span()
    numbered = any(map(str.isdigit, name)) or "-" in name
    return match.span() if long and last in _STAGES and numbered else None


def _judge_port(match: re.Match[str]) -> tuple[int, int] | None:
    """`redis:6379`, `orders-svc:443`: one label with a port."""
    name, port = match["name"].lower(), match["port"]
    if name in _COUNTED or not 0 < int(port) < 65536:
        return None
    composed = "-" in name or any(map(str.isdigit, name))
    known = port in _SERVICE_PORTS and (len(port) > 3 or composed)
    return match.span() if name == "localhost" or known or (composed and len(port) > 3) else None


def _judge_connect(match: re.Match[str]) -> tuple[int, int] | None:
    """`connect to X`: X when it is a name of a machine and not the next word of the sentence."""
    name = match["leak"].rstrip(".").lower()
    role = re.sub(r"-?\d+$", "", name).rpartition("-")
    if (
        name == "localhost"
        or (role[0] and role[2] in _ROLES)
        or (any(map(str.isdigit, name)) and not name.isdigit())
    ):
        return match.start("leak"), match.start("leak") + len(name)
    return None


_PRIVATE = ("10.", "127.", "192.168.", "169.254.", "0.", *(f"172.{n}." for n in range(16, 32)))


@cache
def _version_word() -> re.Pattern[str]:
    return re.compile(
        r"(?:\b(?:version|versions|ver|release|releases|build|firmware|revision|rev|section|sections|clause|chapter"
        r"|article|paragraph|rule|oid|upgrade to|update to|downgrade to)\b|[§<>=~^]|\bv\.?)[\s:.=\"'v]{0,3}$",
        re.IGNORECASE,
    )


def _judge_ipv4(match: re.Match[str]) -> tuple[int, int] | None:
    text, start = match.string, match.start()
    address = match["address"]
    if any(int(part) > 255 for part in address.split(".")):
        return None
    if _version_word().search(text[max(0, start - 16) : start]):
        return None
    private = address.startswith(_PRIVATE)
    suffixed = text[match.end() : match.end() + 2]
    if suffixed[:1] == "-" and suffixed[1:].isalpha() and not private:
        return None
    product = text[max(0, start - 2) : start]
    if product[1:] == "/" and product[:1].isalpha() and not private and not match["port"]:
        return None
    return match.span()


def _judge_ipv6(match: re.Match[str]) -> tuple[int, int] | None:
    run = match["run"].rstrip(".")
    if run.endswith(":") and not run.endswith("::"):
        run = run[:-1]
    bracketed = match["open"] == "["
    groups = run.split(":")
    if "." in groups[-1]:
        groups[-1:] = ["0", "0"]
    if run.count("::") > 1 or ":::" in run or any(len(group) > 4 or "." in group for group in groups):
        return None
    compressed = "::" in run
    if not (compressed and len(groups) <= 9 and (bracketed or any(map(str.isdigit, run)))) and not (
        not compressed and len(groups) == 8
    ):
        return None
    end = match.start("run") + len(run)
    return (match.start(), match.end()) if match["port"] else (match.start("run"), end)


def _quoted_end(match: re.Match[str]) -> int:
    """Where a path ends: at its closing quote when it stands in quotes (it may hold spaces), else where it was cut."""
    text, start, end = match.string, match.start(), match.end()
    opening = text[start - 1 : start] if start else ""
    if opening and opening in "\"'`":
        closing = text.find(opening, start, start + 300)
        if closing >= end and "\n" not in text[start:closing]:
            return closing
    while end > start and text[end - 1] in ".:":
        end -= 1
    return end


@cache
def _file() -> re.Pattern[str]:
    return re.compile(rf"\.(?:{_FILE_SUFFIXES})(?:\.\d+)*\Z", re.IGNORECASE)


def _judge_root(match: re.Match[str]) -> tuple[int, int] | None:
    return match.start(), _quoted_end(match)


def _judge_absolute(match: re.Match[str]) -> tuple[int, int] | None:
    """An absolute path whose root says nothing: a file or a route?"""
    segments = match[0].rstrip(".:").split("/")[1:]
    indexed = any(segment.isdigit() for segment in segments)
    hidden = any(
        segment.startswith(".") and segment not in {".", "..", ".well-known"} for segment in segments
    )
    if (
        hidden
        or (len(segments) > 1 and _file().search(segments[-1]))
        or not _TREES.isdisjoint(segments[:-1])
        or (segments[0] in _SHARED_ROOTS and len(segments) > 1 and not indexed)
        or (segments[0] in {"run", "dev"} and len(segments) > 1 and segments[1] in _DEVICES)
    ):
        return match.start(), _quoted_end(match)
    return None


_DEVICES = _words(
    "null zero random urandom shm tty stdin stdout stderr sda sdb nvme0n1 secrets lock user docker"
)


def _judge_relative(match: re.Match[str]) -> tuple[int, int] | None:
    path = match[0].rstrip(".:")
    segments = path.split("/")
    suffix = segments[-1].rpartition(".")[2]
    # "vercel/next.js" is a name; "src/lib/next.js" is a file.
    deep = len(segments) > 2 or suffix not in {
        "js",
        "ts",
        "r",
        "m",
        "c",
        "h",
        "so",
        "key",
        "bin",
        "env",
        "csv",
        "zip",
    }
    hidden = path.startswith(".")
    if hidden or (deep and _file().search(segments[-1])) or not _TREES.isdisjoint(segments[:-1]):
        return match.start(), match.start() + len(path)
    return None


def _judge_class(match: re.Match[str]) -> tuple[int, int] | None:
    """`java.lang.IllegalStateException`, `psycopg.errors.UniqueViolation`: the class of an exception."""
    labels = match[0].split(".")
    if not labels[-1][:1].isupper() or labels[-1].isupper():
        return None
    ends = labels[-1].endswith(("Exception", "Error", "Failure", "Throwable", "Fault", "Violation"))
    return (
        match.span() if ends or not {"errors", "exceptions", "exc", "err"}.isdisjoint(labels[:-1]) else None
    )


def _judge_select(match: re.Match[str]) -> tuple[int, int] | None:
    return match.span() if match.string.rfind("FROM") > match.start() else None


def _judge_repr(match: re.Match[str]) -> tuple[int, int] | None:
    said = match[0]
    telling = " at 0x" in said or said.startswith(
        ("<bound method ", "<function ", "<coroutine ", "<Task ", "<Future ")
    )
    return match.span() if telling else None


# ----------------------------------------------------------------------------------------------------- the table

# What a driver hangs below its first line, and where a statement goes on.
_BELOW = (
    r"[^\n]*+(?:\n[ \t]*+(?:FROM|WHERE|AND|OR|ON|SET|VALUES|JOIN|LEFT|RIGHT|INNER|OUTER|CROSS|ORDER|GROUP|HAVING|LIMIT"
    r"|OFFSET|UNION|RETURNING|INTO|LINE\ \d+:|DETAIL:|HINT:|CONTEXT:|QUERY:|STATEMENT:|WHERE:|\^|\[SQL|\[parameters"
    r"|\(Background|->|Filter:|Index\ Cond:|Recheck|Hash|Sort|Planning|Execution|Candidate|Did\ you|Possible|Key\ \("
    r"|Failing\ row|Process\ \d)[^\n]*+)*+"
)

# Messages of databases, word for word as their drivers give them; `~` stands for a short stretch without line breaks.
_DATABASE = (
    r"syntax error at (?:or near|end of input)",
    r"syntax error in (?:SQL|query)",
    r"you have an error in your SQL syntax",
    r'near "~": syntax error',
    r"incomplete input\b",
    r"unterminated quoted (?:string|identifier)",
    r"unrecognized token:",
    (
        # Lower case and at the head of its clause is how a server speaks; "the role 'editor' does not exist" is ours.
        r"(?-i:relation|(?<![a-z] )(?:column|table|schema|function|role|database|type|index|sequence|view|constraint|cursor"
        r"|collation|prepared statement|extension|tablespace|trigger)) (?:\"[^\n\"]{1,120}\"|[\w.]{1,80}\([^)\n]{0,120}\))"
        r"(?: of relation \"~\")? (?:does not exist|already exists|is ambiguous)"
    ),
    r"column \"?[\w.\"]+ (?:must appear in the GROUP BY|is of type|cannot be cast)",
    r"column reference \"~\" is ambiguous",
    r"ambiguous column name:",
    r"operator does not exist:",
    r"no such (?:table|column|index|function|view|collation|savepoint|trigger|module)s?:",
    # Without quotes only where no sentence goes on: "column nme does not exist", not "a table reservation already exists".
    r"(?<![a-z] )(?:column|table|index) [\w.]{1,80} (?:does not exist|already exists)",
    r"table \"?[\w.]{1,80}\"? has \d+ columns? but",
    r"(?:UNIQUE|NOT NULL|CHECK|FOREIGN KEY|PRIMARY KEY) constraint failed",
    r"null value in column",
    r"duplicate key (?:value )?violates",
    r"(?:insert or update|update or delete) on table",
    r"new row for relation",
    r"violates (?:foreign key|unique|check|not-null|exclusion|row-level)",
    r"Key \([^)\n]*+\)=\(",
    r"Failing row contains",
    r"value too long for type",
    r"invalid input (?:syntax for type|value for enum)",
    r"(?:smallint|integer|bigint|numeric|double precision) out of range",
    r"value \"~\" is out of range for type",
    r"permission denied for (?:table|relation|schema|sequence|database|function|view|column)",
    r"must be owner of",
    r"current transaction is aborted",
    r"canceling statement due to",
    r"could not (?:serialize access|obtain lock on)",
    r"deadlock (?:detected|found when)",
    r"waits for \w+Lock on",
    r"password authentication failed for",
    r"no pg_hba\.conf entry",
    r"(?:remaining connection slots|too many clients already|too many connections for)",
    r"terminating connection due to",
    r"more than one row returned by a subquery",
    r"aggregate functions? (?:calls )?(?:are|cannot)",
    r"multiple assignments to same column",
    r"subquery (?:in FROM )?must",
    r"unable to open database file",
    r"(?:database|table)(?: table)? is locked",
    r"database disk image is malformed",
    r"incorrect number of bindings",
    r"table '[\w.$-]+' doesn't exist",
    r"unknown (?:column|table|database) '",
    r"duplicate (?:entry '|column name|key value|key error|key \")",
    r"data too long for column",
    r"cannot add or update a (?:child|parent) row",
    r"cannot delete or update a parent row",
    r"access denied for user '",
    r"lock wait timeout exceeded",
    r"column '[\w.]+' (?:cannot be null|in \w+ clause is ambiguous)",
    r"(?:unconfigured|undefined) table\b",
    r"table: \S{1,120} not found",
    r"SQL compilation error",
    r"table with name \w+ does not exist",
    r"(?:Catalog|Binder|Parser|Constraint|Conversion) Error:",
    r"referenced column \"~\" not found",
    r"could not convert string '~' to",
    r"(?:ORA|PLS|DPY|DPI)-\d{4,5}\b",
    r"invalid (?:object|column) name '",
    r"violation of (?:PRIMARY KEY|UNIQUE KEY|FOREIGN KEY) constraint",
    r"cannot insert (?:duplicate key|the value NULL)",
    r"the \w+ statement conflicted with",
    r"E11000 duplicate key",
    r"not authorized on \w+ to execute",
    r"DB::Exception",
    r"SQLSTATE\b",
    r"\[SQL: ",
    r"\((?:sqlite3|psycopg2?|pymysql|MySQLdb|asyncpg|oracledb|cx_Oracle|pyodbc)\.[A-Za-z][\w.]*\)",
    r"QUERY PLAN\b",
    r"(?:Seq|Index(?: Only)?|Bitmap (?:Heap|Index)|Parallel Seq|Tid) Scan (?:on|using)",
    r"(?:Nested Loop|Hash Join|Merge Join|HashAggregate|Sort|Limit|Gather)  \(cost=",
    r"\(cost=[\d.]+",
    r"(?:SCAN|SEARCH) \w+ USING (?:INDEX|INTEGER|COVERING|AUTOMATIC)",
)

# One of them is in each of the messages above: longer than a word, because the pattern is the most expensive of all.
_DATABASE_NEEDS = (
    "syntax error|your sql syntax|incomplete input|unterminated quoted|unrecognized token|not exist|already exists|ambiguous"
    "|column|no such |constraint failed|duplicate |on table|for relation|violates |key (|failing row"
    "|for type|for enum| out of range|permission denied for|be owner|is aborted|canceling statement|serialize access|obtain lock"
    "|deadlock |lock on|password authentication|pg_hba|connection slots|clients already|connections for|terminating connection"
    "|by a subquery|subquery |aggregate |same column|database file|is locked|disk image|of bindings|doesn't exist|unknown table"
    "|unknown database|child row|parent row|denied for user|lock wait|catalog error|binder error|parser error|constraint error"
    "|conversion error|convert string|ora-|pls-|dpy-|dpi-|object name|violation of|cannot insert|conflicted with|to execute"
    "|db::|sqlstate|[sql: |sqlite3.|psycopg|pymysql.|mysqldb.|asyncpg.|oracledb.|oracle.|pyodbc.|query plan|scan |scan on"
    "|(cost=| using | table|table: |sql compilation|does not|is of type"
)

_NAMES_OF_SECRETS = (
    r"(?:passw(?:or)?ds?|secrets?|tokens?|(?<![A-Za-z])(?:pwd|passphrase|secret[_-]?key|api[_ -]?keys?|access[_ -]?keys?(?:[_ -]?id)?"
    r"|account[_-]?key|shared[_-]?key|private[_ -]?key|encryption[_ -]?key|signing[_ -]?key|credentials?|connection[_ -]?string"
    r"|session[_ -]?ids?|(?:j|php)?sess(?:ion)?id|sid|signature|authorization|x-amz-[a-z-]{3,24}))"
)


@cache
def _rules() -> tuple[_Rule, ...]:
    def rule(kind: str, needs: str, source: str, judge: _Judge | None = None, flags: int = 0) -> _Rule:
        # File names are written in every script; programs, protocols and keys in ASCII.
        return _Rule(
            kind, tuple(needs.split("|")), source, flags | (0 if kind == "path" else re.ASCII), judge
        )

    fold, lines = re.IGNORECASE, re.MULTILINE
    database = "|".join(_DATABASE).replace("~", r"[^\n]{1,120}?")
    return (
        # --- whole blocks first
        rule("trace", "traceback (most", r"\b(?:Exception Group )?Traceback \(most recent call last\)[\s\S]*+"),
        rule("trace", "goroutine ", r"\bgoroutine \d+ \[[\s\S]*+"),
        rule("trace", "stack trace|stacktrace", r"\b(?:stack ?trace|server stack trace):?[ \t]*\n[\s\S]*+", flags=fold),
        rule("token", "private key", r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END)[\s\S])*+(?:-----END [A-Z ]{0,40}-{0,5})?"),
        # --- trace lines
        rule("trace", 'file "', r'File "[^"\n]{1,500}", line \d+(?:, in [^\n]*+)?(?:\n[ \t]++[^\n]*+)*+'),
        rule("trace", "at ", r"(?:(?<=\n)[ \t]+at |^[ \t]+at (?=[^\n]*[/\\<]))(?:async |new )?[\w.$<>/@#\[\]~:\\-]++(?: \[as [^\]\n]{1,80}\])?(?: ?\([^\n]*+)?$", flags=lines),
        rule("trace", "^", r"^[^\n]*+\n[ \t~]*+\^[\^~ \t]*+$", flags=lines),
        rule("trace", "caused by|exception in thread", r"(?:\bCaused by: (?=[\w$]+(?:\.|:|Error|Exception))|\bException in thread \")[^\n]*+"),
        rule("trace", "exception|error|failure|throwable|fault|violation|errors|exc.|err.", r"(?<![\w.$/@])[A-Za-z_][\w$]*+(?:\.[A-Za-z_][\w$]*+)++", _judge_class),
        rule(
            "trace", ".",
            rf"(?<![\w.$@-])[\w$@-][\w.$@-]*?\.(?:{_CODE_SUFFIXES})(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)|\"?,? (?:on )?line:? \d+|:line \d+)(?::in [^\n]*+)?",
            flags=fold,
        ),
        rule("trace", "<", r"<[A-Za-z][^<>\n]{1,200}(?:>|(?=<))", _judge_repr),
        rule("trace", "0x", r"\b0x(?=[a-fA-F]*\d)[0-9a-fA-F]{8,16}\b"),
        rule("trace", "node:internal", r"\bnode:internal/[\w/.-]*+(?::\d+)*+"),
        rule("trace", "panicked at", r"thread '[^'\n]{0,80}' (?:\(\d+\) )?panicked at [^\n]*+"),
        rule("trace", "panic: ", r"\bpanic: [^\n]*+"),
        rule("trace", "#", r"(?<=\n)#\d+ (?:/|\{main\}|[A-Za-z]:\\|\[internal)[^\n]*+"),
        # --- SQL and what databases say
        rule("sql", "select", r"\bSELECT\b" + _BELOW, _judge_select),
        rule(
            "sql", "insert|update|delete|create|drop|alter|truncate|merge|explain",
            r"\b(?:INSERT INTO|UPDATE \S{1,80} SET|DELETE FROM|(?:CREATE|DROP|ALTER|TRUNCATE)(?: UNIQUE| TEMP| TEMPORARY)? (?:TABLE|INDEX|VIEW|SCHEMA|DATABASE|ROLE|USER)|MERGE INTO|EXPLAIN (?:ANALYZE|SELECT))\b" + _BELOW,
        ),
        rule(
            "sql", "select",
            r"\bselect\s{1,9}(?:\*|count\(|distinct\s|(?:[\w.\"]{1,60}\s{0,9},\s{0,9}){0,20}[\w.\"]{1,60}\s{1,9}from\s{1,9}(?!(?:the|a|an|your|our|this|that|these|those|one|any|among|it|its|at|all)\b)[\w.\"]{1,60}\s{1,9}(?:where|join|order by|group by|limit|left|inner)\b)" + _BELOW,
            flags=fold,
        ),
        rule("sql", "insert|update|delete|drop|create|alter|truncate", r"\b(?:insert\s{1,9}into\s{1,9}[\w.\"]{1,80}\s{0,9}(?:\(|values\b|select\b)|update\s{1,9}[\w.\"]{1,80}\s{1,9}set\s{1,9}[\w.\"]{1,80}\s{0,9}=|delete\s{1,9}from\s{1,9}[\w.\"]{1,80}\s{1,9}where\b|(?:drop|alter|create|truncate)\s{1,9}table\s{1,9}\w)" + _BELOW, flags=fold),
        rule("sql", _DATABASE_NEEDS, rf"(?<!\w)(?:{database})(?:(?<![A-Za-z])|\b)" + _BELOW, flags=fold),
        rule("sql", "background on", r"\(Background on this error at:[^\n]*+", flags=fold),
        rule("sql", "[parameters:|line ", r"\[parameters: [^\n]*+|^LINE \d+: [^\n]*+(?:\n[ \t]*+\^)?", flags=lines),
        # --- secrets
        rule("token", "eyj", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9]{13}[\w-]*+(?:\.[\w-]*+){1,4}"),
        rule(
            "token", "_|-|aiza|ya29|sg.|atatt|dapi",
            r"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|gldt-|xox[abceoprs]-|xapp-|sk-|(?:sk|pk|rk)_(?:live|test)_|whsec_|ya29\.|GOCSPX-|npm_|pypi-|hf_|dop_v1_|shp(?:at|ss|ca|pa)_|sq0[a-z]{3}-|SG\.|dckr_pat_|lin_api_|nvapi-|xai-|r8_|PMAK-|tvly-)[\w*.-]{12,}+|(?<![A-Za-z0-9])(?:AIza|ATATT|dapi)(?=[\w-]*[A-Za-z_-]\d)[\w-]{20,}+",
        ),
        rule("token", "akia|asia|aroa|aida|anpa|agpa", r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AROA|AIDA|ANPA|AGPA)[A-Z0-9]{12,}+"),
        rule("token", "bearer|basic|digest|negotiate|apikey|token", r"\b(?:Bearer|Basic|Negotiate|ApiKey|Token)[ \t]{1,4}[\"']?(?P<leak>[A-Za-z0-9._~+/=-]{6,}+)", _judge_scheme, fold),
        rule("token", "cookie", r"\b(?:set-)?cookie[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<leak>[\w.-]{1,80}=[^\s\"',\[][^\n\"']*+)", flags=fold),
        rule(
            "token", "=|:|is|was",
            rf"{_NAMES_OF_SECRETS}(?P<quote>[\"']?)(?P<sign>\s{{0,3}}(?:=>?|:)\s{{0,3}}|\s(?:is|was)\s)(?P<value>\"[^\"\n]++\"|'[^'\n]++'|[^\s\"',;&)\]}}>]++)",
            _judge_value, fold,
        ),
        rule("token", "-", r"(?<!\S)--?(?:password|pass|token|secret|api-key|auth)[ \t]{1,4}(?P<leak>[^\s\"',;\[-][^\s\"',;]*+)", flags=fold),
        rule("token", "session|api key|access key|token", r"\b(?:session|api key|access key|token)(?: id)?(?: provided)?[:=#]?\s{1,3}[\"'(]?(?P<leak>[A-Za-z0-9_+/=-]{16,}+)", _judge_scheme, fold),
        rule("token", "", r"(?<![\w+/.-])[A-Za-z0-9+/_-]{36,}+={0,2}", _judge_long),
        # --- URLs, hosts, addresses
        rule("host", "://", r"://[^\s\"'<>`]*+", _judge_url),
        rule("host", "arn:aws", r"\barn:aws[\w-]*+:[^\s\"',;)]*+"),
        rule("host", ".", r"(?<![\w.$-])(?P<name>[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++)(?P<port>:\d{1,5})?(?![\w\[(])", _judge_dotted),
        rule("host", ":", r"(?<![\w.:@$-])(?P<name>[A-Za-z][A-Za-z0-9-]*+):(?P<port>\d{1,5})(?!\w|\.\d|:\d)", _judge_port),
        rule(
            "host", "host|server|resolv|lookup|connect|enotfound|eai_again|broker|upstream",
            r"\b(?:host(?: ?name)?|server(?: at)?|broker|upstream|resolv(?:e|ing)|lookup|connect(?:ing|ed)? to|connection to(?: server at)?)[\"']?\s{0,3}[:=]?\s{0,3}[\"'`](?P<leak>[\w.:-]{2,}+)[\"'`]",
            flags=fold,
        ),
        rule("host", "enotfound|eai_again|resolve host|connecting to|lookup", r"(?:\bENOTFOUND|\bEAI_AGAIN|could not resolve host(?:name)?:?|error -?\d+ connecting to|dial \w{2,4}:? lookup)\s{1,3}(?P<leak>\w[\w.:-]*+)", flags=fold),
        rule("host", "connect|reach|resolv", r"\b(?:connect(?:ing|ed|ion)? (?:to|with)|reach(?:ing)?|resolv(?:e|ing)|connection refused(?: by)?:?)\s(?P<leak>[A-Za-z0-9][\w.-]*+)", _judge_connect, fold),
        rule("host", "=", r"(?<![\w.])(?:host|hostaddr|hostname|server|data source|addr|endpoint|accountname|endpointsuffix|dbname|initial catalog|user id)\s?=\s?[\"']?(?P<leak>[^\s\"';,)&\[]++)", flags=fold),
        rule("address", ".", r"(?<![\w.])(?P<address>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?P<port>:\d{1,5}|/\d{1,2})?(?!\w|\.\d)", _judge_ipv4),
        rule("address", "ip-", r"\bip(?:-\d{1,3}){4}\b"),
        rule("host", "@", r"\bgit@[\w.-]++:[\w./~-]++"),
        rule("address", ":", r"(?<![\w:.])(?P<open>\[?)(?P<run>(?=[^:\s]{0,4}:)[0-9A-Fa-f:.]{2,}+)(?:%\w++)?(?P<port>\](?::\d{1,5})?)?(?!\w)", _judge_ipv6),
        # --- paths
        rule("path", "[errno|[winerror", r"\[(?:Errno|WinError) -?\d+\] [^:'\"\n]{1,100}: (?P<leak>(?P<q>[\"'])(?:(?!(?P=q))[^\n])++(?P=q)(?: -> (?P<r>[\"'])(?:(?!(?P=r))[^\n])++(?P=r))?)"),
        rule("path", "with url:", r"\bwith url: (?P<leak>[^\s\[]\S*+)"),
        rule("path", "'", r"\b(?:ENOENT|EACCES|EISDIR|ENOTDIR|EEXIST|EPERM|EXDEV|EROFS|EMFILE|ENOTEMPTY|EBUSY|ELOOP|ENOSPC): [a-z ,-]{1,60}(?P<leak>'[^'\n]++'(?: -> '[^'\n]++')?)"),
        rule("path", "/", rf"(?<![\w/.~%-])/(?:{_ROOTS})(?![\w-])(?:/[^\s\"'`<>|,;()\[\]{{}}]*+)?", _judge_root),
        rule("path", "/", r"(?<![\w/.~%}-])(?:/[\w.@+~=-]++)++:?", _judge_absolute),
        rule("path", "/", r"(?<![\w./-])(?:~\w*|\.{1,2}|\$\w+|\$\{\w+\}|%\w+%)/[\w.-][^\s\"'`<>|,;()\[\]]*+"),
        rule("path", "/", r"(?<![\w/.~@%$+-])\.?[\w@+-][\w.@+-]*+(?:/[\w.@+~=-]++)++", _judge_relative),
        rule("path", ":\\|:/", r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\(?:[^\\/:*?\"'<>|\r\n]{0,200}\\)*+[^\s\\/:*?\"'<>|]*+|/(?!/)[^\s\"'<>|]++)"),
        rule("path", "\\\\", r"(?<!\\)\\{2,4}[A-Za-z0-9][\w.-]++\\{1,2}[^\s\"']++"),
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- in public


def find(text: str) -> tuple[Leak, ...]:
    """
    Every leak in the text, in order, none overlapping another; for logging and warnings.

    >>> find("could not reach 10.0.0.5:5432")
    (Leak(kind='address', start=16, end=29),)
    """
    if not _suspicious(text):
        return ()
    return tuple(
        _merged(text, sorted(_hits(text, text.lower(), _rules()), key=lambda leak: (leak.start, -leak.end)))
    )


def _hits(text: str, lower: str, rules: tuple[_Rule, ...]) -> Iterator[Leak]:
    for rule in rules:
        if not any(map(lower.__contains__, rule.needs)):
            continue
        pattern = rule.pattern
        group = "leak" if "leak" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            span = match.span(group) if rule.judge is None else rule.judge(match)
            if span is not None and span[0] < span[1]:
                yield Leak(rule.kind, *span)


def _merged(text: str, leaks: list[Leak]) -> Iterator[Leak]:
    """Leaks that overlap, touch or have only white space between them become one, of the kind that began first."""
    if not leaks:
        return
    open_ = leaks[0]
    for leak in leaks[1:]:
        if leak.start <= open_.end or text[open_.end : leak.start].isspace():
            open_ = open_._replace(end=max(open_.end, leak.end))
        else:
            yield open_
            open_ = leak
    yield open_


# Taking something out can bring to light what its neighbour hid; seldom, and never often.
_PASSES = 4


def redact(text: str) -> str:
    """
    The text with every leak replaced by `[redacted]` (A19); most texts come back unchanged.

    What is returned contains no leak that `find` knows, so doing it twice changes nothing. A text that does not come to
    rest is replaced as a whole.

    >>> redact("could not reach 10.0.0.5:5432, try again later")
    'could not reach [redacted], try again later'
    """
    if not _suspicious(text):
        return text
    for _ in range(_PASSES):
        leaks = find(text)
        if not leaks:
            return text
        pieces, at = [], 0
        for leak in leaks:
            pieces += [text[at : leak.start], MARKER]
            at = leak.end
        text = "".join([*pieces, text[at:]])
    return MARKER if find(text) else text


# Bounds for values: deeper or larger than any error worth sending.
_DEPTH = 32
_NODES = 10_000

# Members whose value leaks whatever it looks like (compared without case, "-" and "_").
_SECRET_MEMBERS = _words(
    "password passwd pwd passphrase secret clientsecret secretkey token accesstoken refreshtoken idtoken bearertoken "
    "authtoken sessiontoken apikey xapikey accesskey accesskeyid secretaccesskey privatekey credential credentials "
    "authorization proxyauthorization cookie cookies setcookie session sessionid sid jsessionid phpsessid csrftoken dsn "
    "connectionstring databaseurl traceback stacktrace stack sql querysql queryplan hostname host ipaddress"
)
_EXACT = (bool, int, float, type(None))
# Values that encoders write and that hold no text of anybody's.
_VALUES = frozenset({("datetime", "datetime"), ("datetime", "date"), ("datetime", "time"), ("datetime", "timedelta"),
                     ("decimal", "Decimal"), ("uuid", "UUID")})  # fmt: skip


@cache
def _remark() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:must|required|invalid|expired|missing|should|cannot|not|too|is|are|was|has|at least|at most|please|field)\b",
        re.IGNORECASE,
    )


def _prose(text: str) -> bool:
    """Whether a value is a remark about a secret ("must have at least 8 characters") and not the secret."""
    return text.count(" ") >= 2 and _remark().search(text) is not None


def redact_value(value: Any, *, keep: AbstractSet[str] = frozenset()) -> Any:
    """
    A copy of a JSON-like value with every leak in its strings and keys redacted.

    Members named in `keep` (see `URL_MEMBERS`) are passed on untouched, at any depth. Members that by their name hold
    a secret lose their value whatever it looks like, unless it is a remark about it. Objects that are no JSON, and what
    lies deeper than 32 levels or beyond 10,000 values, become the marker. Never raises, never changes its argument.
    """
    return _copied(value, keep, 0, [_NODES])


def _copied(value: Any, keep: AbstractSet[str], depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if isinstance(value, str):
        return redact(value) if left[0] >= 0 else MARKER
    if isinstance(value, _EXACT) or (type(value).__module__, type(value).__name__) in _VALUES:
        return value
    if left[0] < 0 or depth >= _DEPTH:
        return MARKER
    if isinstance(value, Mapping):
        return _copied_members(value, keep, depth, left)
    if isinstance(value, list | tuple):
        # One spare for the marker that says that there was more.
        return [_copied(item, keep, depth + 1, left) for item in value[: left[0] + 1]]
    return MARKER


def _copied_members(
    members: Mapping[Any, Any], keep: AbstractSet[str], depth: int, left: list[int]
) -> dict[Any, Any]:
    copy: dict[Any, Any] = {}
    for key, value in members.items():
        if left[0] < 0:
            break
        name = redact(key) if isinstance(key, str) else key if isinstance(key, _EXACT) else MARKER
        while name in copy and name is not key:
            # Two keys that leaked do not become one.
            name = f"{name} {len(copy)}"
        if isinstance(key, str) and key in keep:
            copy[name] = value
        elif isinstance(key, str) and _is_secret(key, value):
            copy[name] = MARKER
        else:
            copy[name] = _copied(value, keep, depth + 1, left)
    return copy


def _is_secret(key: str, value: Any) -> bool:
    if value is None or isinstance(value, bool | list | tuple | Mapping) or value == "":
        return False
    if key.lower().replace("-", "").replace("_", "") not in _SECRET_MEMBERS:
        return False
    return not (isinstance(value, str) and _prose(value))

"""URLs, host names, ports and IP addresses, and text that only looks like one."""

from __future__ import annotations

import re
from functools import cache

from amends.core.redaction.rule import words

__all__ = ["judge_connect", "judge_dotted", "judge_ipv4", "judge_ipv6", "judge_port", "judge_url"]

_INTERNAL = words("internal local localdomain lan corp intranet intra consul svc localhost arpa")
# These end field paths and module names too, so they count only with more evidence.
_STAGES = words("prod production staging stage dev qa uat test private home cluster pod k8s vpc cloud")
# Common ends of public names. Left out are those that end field paths: id, name, info, is, me, at, to, in ...
_TOP = words(
    "com net org io co ai app dev cloud edu gov mil eu us uk de fr nl ch es pl se cz cn jp kr ru br au ca nz "
    "online site tech systems services network host sh gg so tv xyz example invalid"
)
_DOCUMENTATION = words(
    "docs doc documentation developer developers help support learn status errors error-codes api-docs reference"
)
# Sites that everybody knows: specifications, registers, public repositories. A link to them shows nothing of a system.
_PUBLIC = words(
    "github.com gitlab.com codeberg.org bitbucket.org pypi.org npmjs.com www.npmjs.com crates.io rubygems.org pkg.go.dev "
    "datatracker.ietf.org www.ietf.org ietf.org tools.ietf.org www.rfc-editor.org rfc-editor.org www.w3.org w3.org www.iana.org iana.org "
    "www.iso.org unicode.org www.unicode.org whatwg.org html.spec.whatwg.org url.spec.whatwg.org fetch.spec.whatwg.org spec.openapis.org "
    "openapis.org schema.org json-schema.org jsonapi.org semver.org spec.modelcontextprotocol.io modelcontextprotocol.io a2a-protocol.org "
    "en.wikipedia.org de.wikipedia.org fr.wikipedia.org wikipedia.org stackoverflow.com readthedocs.io opentelemetry.io grpc.io"
)
# Words that precede a colon and a number without being a host.
_COUNTED = words(
    "at code col column count error exit from id index item length limit line lines max min offset page port "
    "position ratio retry row score section size status step timeout to total until version year updated created"
)
_SERVICE_PORTS = words(
    "80 443 1433 1521 1883 2181 2375 2376 2379 3000 3128 3306 4222 4317 4318 5000 5432 5601 5672 5984 6333 6379 "
    "6443 7000 7077 7474 7687 8000 8080 8081 8086 8088 8123 8125 8200 8443 8500 8888 9000 9042 9090 9092 9093 9200 "
    "9300 9411 9418 10250 11211 15672 16686 26257 26379 27017 50051 50070 61616"
)
# Endings of the names of services inside one installation.
_ROLES = words(
    "svc service db database redis postgres pg mysql mariadb kafka mongo mongodb cache queue worker proxy gateway api "
    "backend broker primary replica master standby leader follower node rabbitmq elasticsearch vault consul etcd server"
)

_SCHEME_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-"


def judge_url(match: re.Match[str]) -> tuple[int, int] | None:
    """A URL, with its scheme, unless it is a link to documentation."""
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
    if host.lower() in _PUBLIC:
        return True
    public = len(labels) == 2 or (len(labels) == 3 and labels[0] == "www")
    return labels[0] in _DOCUMENTATION or (public and path.partition("/")[0].lower() in _DOCUMENTATION)


def judge_dotted(match: re.Match[str]) -> tuple[int, int] | None:
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
    if (
        name in _PUBLIC
        or before == "@"
        or labels[0] in {"com", "org", "net", "io"}
        or name == "type.googleapis.com"
    ):
        return None
    staged = not _STAGES.isdisjoint(labels) or not _INTERNAL.isdisjoint(labels)
    if long and last in _TOP and labels[0] != "www" and (staged or labels[0] not in _DOCUMENTATION):
        return match.span()
    numbered = any(map(str.isdigit, name)) or "-" in name
    return match.span() if long and last in _STAGES and numbered else None


def judge_port(match: re.Match[str]) -> tuple[int, int] | None:
    """`redis:6379`, `orders-svc:443`: one label with a port."""
    name, port = match["name"].lower(), match["port"]
    if name in _COUNTED or not 0 < int(port) < 65536:
        return None
    composed = "-" in name or any(map(str.isdigit, name))
    known = port in _SERVICE_PORTS and (len(port) > 3 or composed)
    return match.span() if name == "localhost" or known or (composed and len(port) > 3) else None


def judge_connect(match: re.Match[str]) -> tuple[int, int] | None:
    """`connect to X`: X when it is the name of a machine and not the rest of the sentence."""
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


def judge_ipv4(match: re.Match[str]) -> tuple[int, int] | None:
    """Four numbers: an address, or a version."""
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


def judge_ipv6(match: re.Match[str]) -> tuple[int, int] | None:
    """A run of hexadecimal digits and colons: an address, or a time."""
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

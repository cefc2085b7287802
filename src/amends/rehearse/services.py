"""The services of a stage: who answers, under which hosts and variables they are reached, and how they take keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import msgspec

from amends.rehearse.exchange import Request
from amends.rehearse.fakes import Fake, make_fake
from amends.rehearse.plan import ServiceOptions
from amends.vendors.registry import find, has_hosts, vendor, vendor_of_host

__all__ = ["Service", "host_service", "make_services", "service_of_text"]

_OWN = frozenset({"orders", "mcp", "a2a"})
"""Names that stand for fakes and not for services of the registry."""
_BASE_PATHS = {
    "openai": "/v1",
    "mcp": "/mcp",
    "groq": "/openai/v1",
    "openrouter": "/api/v1",
    "fireworks": "/inference/v1",
}
"""Where the address in the variable ends; other models with an OpenAI-compatible interface have /v1, too."""
_VARIABLES = {
    "openai": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "groq": "GROQ_BASE_URL",
    "deepseek": "DEEPSEEK_BASE_URL",
}
_CREDENTIALS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_COMPATIBLE = frozenset(
    {
        "openai",
        "groq",
        "deepseek",
        "mistral",
        "together",
        "openrouter",
        "fireworks",
        "xai",
        "cerebras",
        "moonshot",
    }
    | {
        "vllm",
        "ollama",
        "litellm",
        "portkey",
        "azure-openai",
        "dashscope",
        "zhipu",
        "volcengine",
        "minimax",
        "qianfan",
    }
)


class Service(msgspec.Struct, frozen=True):
    """One service of the stage."""

    name: str
    fake: Fake
    forward: str = ""
    """The address to which calls are forwarded; empty: the fake answers."""
    hosts: tuple[str, ...] = ()
    variable: str = ""
    base_path: str = ""
    keys: bool = False
    """Whether it honours idempotency keys."""
    key_header: str = "Idempotency-Key"
    key_field: str | None = None
    replay_header: str = ""

    @property
    def model(self) -> bool:
        """Whether what is sent to it is read by a model."""
        return self.fake.model

    def key(self, request: Request) -> str:
        """Return the idempotency key of a request, or an empty text."""
        found = request.header(self.key_header)
        if not found and self.key_field is not None:
            document = request.document()
            value = document.get(self.key_field) if isinstance(document, dict) else None
            found = value if isinstance(value, str) else ""
        return found

    def environment(self, address: str) -> dict[str, str]:
        """Return the variables that hold its address, and a key where the SDK insists on one."""
        values = {self.variable: address + self.base_path}
        if self.name in _CREDENTIALS:
            values[_CREDENTIALS[self.name]] = "rehearsal"
        return values


def service_of_text(text: str) -> ServiceOptions:
    """
    Return a service as it is named on the command line: a name, or NAME=ADDRESS.

    >>> service_of_text("orders=http://127.0.0.1:9000").url
    'http://127.0.0.1:9000'

    Raises:
        ValueError: the name or the address is not usable.

    """
    name, equals, url = text.partition("=")
    if equals:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"the address of {name} must begin with http:// or https://")
    try:
        return msgspec.convert({"name": name, "url": url}, ServiceOptions)
    except msgspec.ValidationError:
        raise ValueError(f"{name!r} is no name of a service: use small letters, digits and dashes") from None


def host_service(host: str) -> str | None:
    """Return the service of the registry that a host belongs to."""
    return vendor_of_host(host)


def make_services(options: Iterable[ServiceOptions]) -> dict[str, Service]:
    """
    Return the services by name.

    Raises:
        ValueError: a name is neither a service of the registry nor a fake, and has no address and no `fake`.

    """
    made: dict[str, Service] = {}
    for each in options:
        made[each.name] = _service(each)
    return made


def _service(options: ServiceOptions) -> Service:
    name = options.name
    known = None if name in _OWN else find(name)
    kind = options.fake or ("openai" if known in _COMPATIBLE else known if known == "anthropic" else "")
    kind = kind or (name if name in {"mcp", "a2a"} else "rest")
    if known is None and name not in _OWN and not options.url and not options.fake:
        raise ValueError(
            f'there is no service {name!r}: give its address ({name}=http://…) or a fake (fake = "rest"); '
            "`amends vendors list` shows the names"
        )
    key = vendor(known).keys if known is not None else None
    keys = (
        options.keys
        if options.keys is not None
        else key is not None or (name == "orders" and not options.url)
    )
    header = options.key_header or (key.header if key is not None and key.header else "Idempotency-Key")
    path = _BASE_PATHS.get(name, "/v1" if kind == "openai" else "") if not options.url else ""
    return Service(
        name=name,
        fake=make_fake(kind, known or name, options.script),
        forward=options.url.rstrip("/"),
        hosts=tuple(options.hosts),
        variable=options.env or _VARIABLES.get(name, f"{name.upper().replace('-', '_')}_URL"),
        base_path=path,
        keys=keys,
        key_header=header,
        key_field=key.field if key is not None else None,
        replay_header=(key.replay or "") if key is not None else "",
    )


def belongs(service: Service, host: str) -> bool:
    """Return whether a host belongs to a service: by the plan, or by the file of the service."""
    return host in service.hosts or (service.name not in _OWN and vendor_of_host(host) == find(service.name))


def reachable(service: Service) -> bool:
    """Return whether a program can mean this service by a host, so that it needs no variable in the process."""
    known = None if service.name in _OWN else find(service.name)
    return bool(service.hosts) or (known is not None and has_hosts(known))


def environment_of(services: Mapping[str, Service], addresses: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of all services."""
    return {
        name: value
        for each in services.values()
        for name, value in each.environment(addresses[each.name]).items()
        if name
    }

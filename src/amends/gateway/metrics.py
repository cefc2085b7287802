"""
The figures of a gateway as metrics: for Prometheus by its client library, and for OpenTelemetry by its API.

They are read from the counters of the upstreams when somebody asks, so that a call costs nothing more. Labels are the names in the configuration
and the codes of the catalogue: no path, no id and no text of a caller or a service is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from amends.core.vocabulary import vocabulary

if TYPE_CHECKING:
    from amends.gateway.app import Gateway
    from amends.gateway.http_upstream import HttpUpstream

__all__ = ["FIGURES", "Figure", "bounded_codes", "observe", "prometheus_text"]

OTHER = "OTHER"


class Figure(NamedTuple):
    """One metric of an upstream."""

    name: str
    """Its name for Prometheus without `amends_gateway_` and `_total`; OpenTelemetry writes dots for underscores."""
    help: str
    counts: bool
    """Whether it is a counter, and no gauge."""


FIGURES: Mapping[str, Figure] = {
    each.name: each
    for each in (
        Figure("calls", "Calls of callers", True),
        Figure("repeats", "Tries after the first of a call", True),
        Figure("recovered", "Calls of which a later try succeeded", True),
        Figure("failed", "Calls whose failure was passed on", True),
        Figure("refused", "Calls that the gateway did not send on", True),
        Figure("failovers", "Tries at another upstream than the first of a route", True),
        Figure(
            "duplicates_avoided", "Calls that were not repeated because they may have had their effect", True
        ),
        Figure("recomputed", "Repeats of calls that only compute and may have been computed before", True),
        Figure("wait_seconds", "Seconds that calls waited for their tries", True),
        Figure("in_flight", "Calls that were sent and have no answer yet", False),
        Figure("waiting", "Calls that wait for their turn or for a repeat", False),
        Figure("held", "Credentials and routes that are held back", False),
        Figure("up", "0 while the health path says that the upstream does not work", False),
    )
}


def values(upstream: HttpUpstream) -> dict[str, float]:
    """Return the figures of an upstream by their names."""
    stats, crowd = upstream.stats, upstream.crowd
    return {
        "calls": stats.calls,
        "repeats": stats.repeats,
        "recovered": stats.recovered,
        "failed": stats.failed,
        "refused": stats.refused,
        "failovers": stats.failovers,
        "duplicates_avoided": stats.doubts,
        "recomputed": stats.recomputed,
        "wait_seconds": stats.waited,
        "in_flight": crowd.in_flight,
        "waiting": crowd.waiting,
        "held": len(upstream.held()),
        "up": 0.0 if upstream.down else 1.0,
    }


def bounded_codes(codes: Mapping[str, int]) -> dict[str, int]:
    """
    Return failures by code, with one row for all codes that are not in the catalogue.

    >>> bounded_codes({"TIMEOUT": 2, "of a stranger": 1, "another": 4})
    {'TIMEOUT': 2, 'OTHER': 5}
    """
    found: Counter[str] = Counter()
    known = vocabulary("everyday").rows
    for code, count in codes.items():
        found[code if code in known else OTHER] += count
    return dict(found)


class _Collector:
    """What the client library of Prometheus asks for the metrics."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def describe(self) -> Iterable[Any]:
        return ()

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        upstreams = {each.config.name: each for each in self._gateway.upstreams}
        found = {name: values(each) for name, each in upstreams.items()}
        for figure in FIGURES.values():
            family = CounterMetricFamily if figure.counts else GaugeMetricFamily
            metric = family(f"amends_gateway_{figure.name}", figure.help, labels=["upstream"])
            for name, row in found.items():
                metric.add_metric([name], row[figure.name])
            yield metric
        failures = CounterMetricFamily(
            "amends_gateway_failures", "Failures that were passed on, by code", labels=["upstream", "code"]
        )
        seconds = HistogramMetricFamily(
            "amends_gateway_answer_seconds", "Seconds until an answer began", labels=["upstream"]
        )
        for name, each in upstreams.items():
            for code, count in bounded_codes(each.stats.codes).items():
                failures.add_metric([name, code], count)
            seconds.add_metric([name], each.stats.buckets(), each.stats.answer_seconds)
        for kind, text in (
            ("calls", "Calls of a caller"),
            ("refused", "Calls of a caller that its limits refused"),
        ):
            metric = CounterMetricFamily(f"amends_gateway_caller_{kind}", text, labels=["caller"])
            for name, caller in self._gateway.callers.items():
                metric.add_metric([name], getattr(caller, kind))
            yield metric
        yield failures
        yield seconds


def prometheus_text(gateway: Gateway) -> tuple[bytes, str]:
    """
    Return the metrics as Prometheus reads them, and their content type.

    Raises:
        ImportError: prometheus-client is not installed.

    """
    try:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    except ImportError:
        raise ImportError("the metrics need an extra: pip install 'amends[gateway]'") from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(gateway))
    return generate_latest(registry), CONTENT_TYPE_LATEST


def observe(gateway: Gateway) -> None:
    """
    Give the same figures to OpenTelemetry, and the duration of calls by its conventions (`http.client.request.duration`).

    The provider that the program has set up exports them, with `opentelemetry-instrument amends gateway …` for example.
    """
    from opentelemetry import metrics
    from opentelemetry.metrics import CallbackOptions, Observation

    from amends._version import __version__

    meter = metrics.get_meter("amends.gateway", __version__)

    def asking(name: str) -> Any:
        def observed(_: CallbackOptions) -> list[Observation]:
            return [
                Observation(values(each)[name], {"amends.upstream": each.config.name})
                for each in gateway.upstreams
            ]

        return observed

    for figure in FIGURES.values():
        make = meter.create_observable_counter if figure.counts else meter.create_observable_gauge
        dotted = figure.name.replace("_seconds", "")
        make(
            f"amends.gateway.{dotted}",
            callbacks=[asking(figure.name)],
            unit="s" if dotted != figure.name else "{call}",
            description=figure.help,
        )
    gateway.duration = meter.create_histogram(
        "http.client.request.duration", unit="s", description="Duration of HTTP client requests"
    )

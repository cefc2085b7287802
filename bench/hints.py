"""
The first wait after a 429 whose Retry-After is odd: ours, and that of libraries that read it, run as shipped.

Each makes one GET against a transport that answers 429 once and 200 afterwards; `time.sleep` is replaced by a recorder
(0.5 s backoffs stay what they are). The process pretends to live in Tokyo, so that a date without a zone shows.
"""

import os
import time
from collections.abc import Callable
from email.utils import formatdate
from unittest import mock

import httpx
import httpx2
import httpx_retries
import openai
import redress
import urllib3
from redress.contrib.httpx import default_result_classifier

from amends import FaultError, Operation, recover
from amends.testing import FakeClock

READ = Operation(name="get", read_only=True)


class Answers:
    """429 with the header first, 200 afterwards."""

    def __init__(self, header: str) -> None:
        self.header = header
        self.count = 0

    def next(self) -> tuple[int, dict[str, str]]:
        self.count += 1
        return (429, {"Retry-After": self.header}) if self.count == 1 else (200, {})


def ours(header: str) -> str:
    answers = Answers(header)

    def get() -> dict:
        status, headers = answers.next()
        return {"status": status, "headers": headers, "body": ""}

    with FakeClock() as clock:
        try:
            recover(get, operation=READ, examine=True)
        except FaultError as error:
            return f"none: raises, try again in {error.decision.resume_in:g} s"
    return f"{clock.waits[0]:.4g}" if clock.waits else "0"


def slept(run: Callable[[], object]) -> str:
    """The first thing `run` passes to time.sleep."""
    waits: list[float] = []
    with mock.patch.object(time, "sleep", waits.append):
        try:
            run()
        except Exception as error:
            return f"{type(error).__name__}" + (f" after {waits[0]:.4g}" if waits else "")
    return f"{waits[0]:.4g}" if waits else "0"


def with_urllib3(header: str) -> str:
    retry = urllib3.Retry(total=3, status_forcelist=[429])
    return slept(lambda: retry.sleep(urllib3.HTTPResponse(status=429, headers={"Retry-After": header})))


def with_httpx_retries(header: str) -> str:
    answers = Answers(header)
    transport = httpx_retries.RetryTransport(
        transport=httpx.MockTransport(
            lambda _: httpx.Response(answers.next()[0], headers={"Retry-After": header})
        )
    )
    with httpx.Client(transport=transport) as client:
        return slept(lambda: client.get("http://service.invalid"))


def with_openai(header: str) -> str:
    answers = Answers(header)

    def answer(_: httpx2.Request) -> httpx2.Response:
        status, headers = answers.next()
        return httpx2.Response(status, headers=headers, json={"object": "list", "data": []})

    client = openai.OpenAI(
        api_key="none",
        base_url="http://service.invalid",
        http_client=httpx2.Client(transport=httpx2.MockTransport(answer)),
    )
    return slept(lambda: client.models.list())


def with_redress(header: str) -> str:
    answers = Answers(header)
    policy = redress.Policy(
        retry=redress.Retry(
            classifier=redress.default_classifier,
            result_classifier=default_result_classifier,
            strategy=redress.retry_after_or(redress.decorrelated_jitter(max_s=5.0)),
            max_attempts=3,
        )
    )

    def get() -> httpx.Response:
        status, headers = answers.next()
        return httpx.Response(status, headers=headers)

    return slept(lambda: policy.call(get))


CONTENDERS = {
    "amends": ours,
    "urllib3": with_urllib3,
    "httpx-retries": with_httpx_retries,
    "openai SDK": with_openai,
    "redress": with_redress,
}


def headers() -> dict[str, str]:
    soon = formatdate(time.time() + 30, usegmt=True)
    return {
        "1.5": "1.5",
        "86400": "86400",
        "-5": "-5",
        "nan": "nan",
        "inf": "inf",
        "a past date": "Wed, 21 Oct 2015 07:28:00 GMT",
        "a date in 30 s": soon,
        "the same without a zone": soon.removesuffix(" GMT"),
    }


def main() -> list[str]:
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    lines = [
        "| Retry-After | " + " | ".join(CONTENDERS) + " |",
        "|---" * (len(CONTENDERS) + 1) + "|",
    ]
    for label, header in headers().items():
        lines.append(f"| {label} | " + " | ".join(wait(header) for wait in CONTENDERS.values()) + " |")
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

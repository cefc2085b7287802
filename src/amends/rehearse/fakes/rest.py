"""A store with collections: POST makes a record, GET reads or lists, PUT and PATCH change, DELETE removes."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from amends.rehearse.examples import success_of
from amends.rehearse.exchange import Answer, Request, json_answer
from amends.rehearse.fakes.fake import FakeService

__all__ = ["RestFake"]


class RestFake(FakeService):
    """Answers as the service's own example of a success does, if its file has one in JSON."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._records: dict[str, dict[str, Any]] = {}
        example = success_of(service)
        document: object = None
        if example is not None:
            try:
                document = msgspec.json.decode(example.content())
            except msgspec.DecodeError:
                document = None
        self._pattern: dict[str, Any] = (
            document if isinstance(document, dict) else {"id": "", "status": "done"}
        )

    def reset(self) -> None:
        """Remove all records."""
        self._records.clear()

    def answer(self, request: Request) -> Answer:
        """Answer one request."""
        path = request.path.rstrip("/") or "/"
        if request.method in {"GET", "HEAD", "QUERY"}:
            return self._read(path, request)
        if request.method == "DELETE":
            self._records.pop(path, None)
            return Answer(status=204)
        document = request.document()
        given: dict[str, Any] = (
            document if isinstance(document, dict) else dict(parse_qsl(request.body.decode("latin-1")))
        )
        if request.method in {"PUT", "PATCH"}:
            record = {**self._records.get(path, {}), **given}
            self._records[path] = record
            return json_answer(200, record)
        name = path.rpartition("/")[2] or self._service
        number = sum(each.startswith(f"{path}/") for each in self._records) + 1
        record_id = f"{name.removesuffix('s')}-{number}"
        record = {**self._pattern, **given, "id": record_id}
        self._records[f"{path}/{record_id}"] = record
        return json_answer(201, record, ("location", f"{path}/{record_id}"))

    def _read(self, path: str, request: Request) -> Answer:
        if path in self._records:
            return json_answer(200, self._records[path])
        asked = dict(parse_qsl(urlsplit(request.target).query))
        found = [
            record
            for place, record in self._records.items()
            if place.startswith(f"{path}/")
            and all(str(record.get(name, value)) == value for name, value in asked.items())
        ]
        if any(place.startswith(f"{path}/") for place in self._records) or path.count("/") <= 1:
            return json_answer(200, {"data": found})
        return json_answer(200, {**self._pattern, "id": self._pattern.get("id") or path.rpartition("/")[2]})

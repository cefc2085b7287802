"""Tests of the exceptions of mail, name resolution, brokers and further databases and clients."""

import ftplib
import smtplib
import socket
import threading
import xmlrpc.client
from collections.abc import Mapping

import pytest

from amends import from_exception
from tests.foreign.faults import facts, raised_fault
from tests.foreign.standins import standin

UNAVAILABLE = "SERVICE_UNAVAILABLE"


def line_server(greeting: str, answers: Mapping[str, str | None]) -> int:
    """Serve one connection with an answer per command, and return the port. None closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with listener, listener.accept()[0] as connection, connection.makefile("rwb") as stream:
            stream.write(f"{greeting}\r\n".encode())
            stream.flush()
            for line in stream:
                answer = answers.get(line.split()[0].decode().upper())
                if answer is None:
                    return
                stream.write(f"{answer}\r\n".encode())
                stream.flush()

    threading.Thread(target=run, daemon=True).start()
    port: int = listener.getsockname()[1]
    return port


MAIL = {
    "EHLO": "250 ok",
    "MAIL": "250 ok",
    "RCPT": "250 ok",
    "DATA": "354 go",
    "RSET": "250 ok",
    "QUIT": "221 bye",
}


@pytest.mark.parametrize(
    ("greeting", "answers", "expected"),
    [
        ("421 4.7.0 Too many connections", {}, (UNAVAILABLE, "transient", "no")),
        ("220 hi", {"MAIL": "452 4.3.1 Insufficient storage"}, ("OVERLOADED", "transient", "no")),
        ("220 hi", {"RCPT": "450 4.2.1 Mailbox busy"}, (UNAVAILABLE, "transient", "no")),
        ("220 hi", {"RCPT": "550 5.1.1 No such user"}, ("VALIDATION_ERROR", "correctable", "no")),
        ("220 hi", {"MAIL": "530 5.7.0 Authentication required"}, ("UNAUTHENTICATED", "correctable", "no")),
        ("220 hi", {"DATA": None}, (UNAVAILABLE, "transient", "maybe")),
    ],
)
def test_mail(greeting: str, answers: dict[str, str | None], expected: tuple[str, str, str]) -> None:
    """Replies from 400 on are temporary; after a lost connection the message may have been accepted."""
    port = line_server(greeting, {**MAIL, **answers})

    def send() -> None:
        with smtplib.SMTP("127.0.0.1", port, timeout=10) as server:
            server.sendmail("a@example.org", ["b@example.org"], "Hi")

    assert facts(raised_fault(send)) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("421 Too many users", (UNAVAILABLE, "transient", "no")),
        ("426 Transfer aborted", (UNAVAILABLE, "transient", "maybe")),
        ("452 Insufficient storage", ("OVERLOADED", "transient", "no")),
        ("530 Not logged in", ("UNAUTHENTICATED", "correctable", "no")),
        ("550 Exists", ("VALIDATION_ERROR", "correctable", "no")),
    ],
)
def test_ftp(answer: str, expected: tuple[str, str, str]) -> None:
    """The number of the reply decides."""
    port = line_server("220 hi", {"USER": "230 ok", "MKD": answer})

    def make() -> None:
        with ftplib.FTP() as server:
            server.connect("127.0.0.1", port, timeout=10)
            server.login("a", "b")
            server.mkd("x")

    assert facts(raised_fault(make)) == expected


def test_xml_rpc() -> None:
    """A fault has a number of the specification, or none that is known; a refused answer has a status."""
    assert facts(from_exception(xmlrpc.client.Fault(-32601, "x"))) == ("NOT_FOUND", "correctable", "no")
    assert facts(from_exception(xmlrpc.client.Fault(1, "x"))) == ("INTERNAL_ERROR", "uncertain", "maybe")
    refused = xmlrpc.client.ProtocolError("h/RPC2", 429, "x", {"Retry-After": "7"})
    fault = from_exception(refused)
    assert (*facts(fault), fault.retry_after) == ("RATE_LIMITED", "transient", "no", 7.0)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1045, ("UNAUTHENTICATED", "correctable", "no")),
        (1142, ("PERMISSION_DENIED", "terminal", "no")),
        (1213, ("CONFLICT", "transient", "no")),
        (1040, (UNAVAILABLE, "transient", "no")),
        (2003, (UNAVAILABLE, "transient", "no")),
        (2013, (UNAVAILABLE, "transient", "maybe")),
        (3024, ("TIMEOUT", "transient", "maybe")),
        (9999, (UNAVAILABLE, "transient", "maybe")),
    ],
)
def test_mysql_by_number(number: int, expected: tuple[str, str, str]) -> None:
    """Refused credentials are an OperationalError as a lost connection is: the number tells them apart."""
    assert facts(from_exception(standin("pymysql.err.OperationalError")(number, "x"))) == expected
    connector = standin("mysql.connector.errors.OperationalError", errno=number, sqlstate=None)
    assert facts(from_exception(connector("x"))) == expected


class LibrdkafkaError:
    """The argument of confluent-kafka's exception."""

    def __init__(self, name: str) -> None:
        self.name = lambda: name


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            standin("cimpl.KafkaException")(LibrdkafkaError("_MSG_TIMED_OUT")),
            ("TIMEOUT", "transient", "maybe"),
        ),
        (standin("cimpl.KafkaException")(LibrdkafkaError("_QUEUE_FULL")), ("OVERLOADED", "transient", "no")),
        (standin("cimpl.KafkaException")("x"), ("INTERNAL_ERROR", "uncertain", "maybe")),
        (standin("kafka.errors.NotEnoughReplicasAfterAppendError")(), (UNAVAILABLE, "transient", "maybe")),
        (standin("aiokafka.errors.NotEnoughReplicasError")(), (UNAVAILABLE, "transient", "no")),
        (standin("pika.exceptions.ChannelClosed", reply_code=404)(), ("NOT_FOUND", "correctable", "no")),
        (standin("pika.exceptions.ConnectionClosed", reply_code=320)(), (UNAVAILABLE, "transient", "maybe")),
        (standin("amqp.exceptions.AMQPError", reply_code=403)(), ("PERMISSION_DENIED", "terminal", "no")),
        (standin("pycurl.error")(7, "x"), (UNAVAILABLE, "transient", "no")),
        (standin("pycurl.error")(28, "x"), ("TIMEOUT", "transient", "maybe")),
        (standin("curl_cffi.curl.CurlError", code=60)("x"), (UNAVAILABLE, "terminal", "no")),
        (standin("dns.resolver.NXDOMAIN")(), ("NOT_FOUND", "correctable", "no")),
        (
            standin("azure.servicebus.exceptions.ServiceBusQuotaExceededError")(),
            ("QUOTA_EXCEEDED", "terminal", "no"),
        ),
        (standin("hvac.exceptions.RateLimitExceeded")(), ("RATE_LIMITED", "transient", "no")),
        (standin("neo4j.exceptions.AuthError")(), ("UNAUTHENTICATED", "correctable", "no")),
    ],
)
def test_brokers_and_clients(error: Exception, expected: tuple[str, str, str]) -> None:
    """The class decides, or the number or name that it carries."""
    assert facts(from_exception(error)) == expected

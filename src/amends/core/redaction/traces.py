"""Exception class names, and the repr of objects."""

from __future__ import annotations

import re

from amends.core.redaction.rule import words

__all__ = ["judge_class", "judge_repr"]

_LIBRARIES = words(
    "aiohttp aiokafka aiomysql aiopg anthropic asyncpg azure boto boto3 botocore cassandra celery clickhouse_driver confluent_kafka "
    "consul cx_Oracle django docker elasticsearch etcd3 fastapi flask google grpc h2 hbase httpcore httpx hvac influxdb jinja2 jwt kafka "
    "kazoo kombu kubernetes ldap ldap3 minio mysql nats neo4j openai opensearchpy oracledb paramiko peewee pika psycopg psycopg2 "
    "pymongo pymysql pyodbc rabbitmq redis requests sanic snowflake sqlalchemy sqlite3 starlette stripe tornado twisted urllib3 werkzeug"
)


def judge_class(match: re.Match[str]) -> tuple[int, int] | None:
    """`java.lang.IllegalStateException`, `psycopg.errors.UniqueViolation`: the class of an exception."""
    labels = match[0].split(".")
    if not labels[-1][:1].isupper() or labels[-1].isupper():
        return None
    ends = labels[-1].endswith(("Exception", "Error", "Failure", "Throwable", "Fault", "Violation"))
    # Without such an end, only a class of a library: an application names its own classes in its messages.
    library = labels[0] in _LIBRARIES and not {"errors", "exceptions", "exc", "err"}.isdisjoint(labels[1:-1])
    return match.span() if ends or library else None


def judge_repr(match: re.Match[str]) -> tuple[int, int] | None:
    """`<bound method ...>`, `<Order at 0x7f...>`."""
    said = match[0]
    telling = " at 0x" in said or said.startswith(
        ("<bound method ", "<function ", "<coroutine ", "<Task ", "<Future ")
    )
    return match.span() if telling else None

"""
Reproduce tests/data/leaks.jsonl's "run" part: make real libraries fail and record their messages (A19).

Every case is one line of Python that must raise (or one command that must fail); the message, not the case, goes
into the corpus, with the substrings that must never leave. Lines marked "run" are the library's own message; lines
marked "shape" repeat a message known from its documentation, where provoking it needs a server or another platform. Libraries that are not installed are skipped, so the
script needs no particular environment: the corpus itself was made in one that had them all.

    python scripts/collect_leaks.py [--postgres postgresql://user:password@host:port/db] > run.jsonl

What differs from machine to machine (the interpreter, the temporary folder, the user) is replaced by plausible
stand-ins before anything is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings
from pathlib import Path

TIMEOUT = 20

# (source, kind, substrings that must not survive, code that raises). The code runs with `tmp` (a folder) in
# scope; `await` is allowed.
CASES: list[tuple[str, str, list[str], str]] = [
    # --- files -------------------------------------------------------------------------------------------
    ("builtins.open", "path", ["/srv/app/conf/secrets.yaml"], "open('/srv/app/conf/secrets.yaml')"),
    ("builtins.open", "path", ["/etc/amends-prod.d"], "open('/etc/amends-prod.d/token')"),
    ("builtins.open directory", "path", ["/etc"], "open('/etc')"),
    ("builtins.open home", "path", ["billing", "credentials"], "open('/home/billing/.aws/credentials')"),
    ("builtins.open relative", "path", ["conf/local.toml"], "open('conf/local.toml')"),
    ("os.mkdir", "path", ["/tmp"], "os.mkdir('/tmp')"),
    ("os.listdir", "path", ["/var/lib/orders"], "os.listdir('/var/lib/orders/spool')"),
    ("os.rename two paths", "path", ["/var/spool/in", "/var/spool/out"], "os.rename('/var/spool/in/a1', '/var/spool/out/a1')"),
    ("os.chdir", "path", ["/opt/ledger"], "os.chdir('/opt/ledger/current')"),
    ("os.rmdir", "path", ["/proc"], "os.rmdir('/proc/self')"),
    ("pathlib.read_text", "path", ["/srv/app/VERSION"], "Path('/srv/app/VERSION').read_text()"),
    ("pathlib.relative_to", "path", ["/var/www", "/srv/uploads"], "Path('/srv/uploads/a.png').relative_to('/var/www')"),
    ("shutil.copy", "path", ["/home/deploy/.ssh", "id_ed25519"], "shutil.copy('/home/deploy/.ssh/id_ed25519_none', tmp)"),
    ("shutil.rmtree", "path", ["/var/cache/amends-x"], "shutil.rmtree('/var/cache/amends-x')"),
    ("tempfile", "path", ["/mnt/scratch"], "__import__('tempfile').mkstemp(dir='/mnt/scratch')"),
    ("tarfile", "path", ["/srv/backups"], "__import__('tarfile').open('/srv/backups/2026-01.tar')"),
    ("zipfile", "path", ["/srv/backups"], "__import__('zipfile').ZipFile('/srv/backups/2026-01.zip')"),
    ("ctypes", "path", ["libledger.so.3"], "__import__('ctypes').CDLL('/opt/ledger/lib/libledger.so.3')"),
    ("configparser", "path", ["/srv/app/app.ini"], "c=__import__('configparser').ConfigParser(); c.read_string('oops', source='/srv/app/app.ini')"),
    ("runpy", "path", ["/srv/app/jobs"], "__import__('runpy').run_path('/srv/app/jobs/nightly.py')"),
    ("sqlite3 file", "sql", ["unable to open database"], "__import__('sqlite3').connect('/var/lib/none/orders.db')"),
    ("json.load path", "path", ["/srv/app/settings.json"], "json.load(open('/srv/app/settings.json'))"),
    ("yaml parse", "path", ["/srv/app/deploy.yaml"], "import yaml, io; f=io.StringIO('a: [1'); f.name='/srv/app/deploy.yaml'; yaml.safe_load(f)"),
    ("jinja2 loader", "path", ["/srv/app/templates"], "import jinja2; jinja2.Environment(loader=jinja2.FileSystemLoader('/srv/app/templates')).get_template('mail.html')"),
    ("lxml.parse", "path", ["/srv/app/feed.xml"], "from lxml import etree; etree.parse('/srv/app/feed.xml')"),
    ("pandas.read_csv", "path", ["/srv/reports/q3.csv"], "import pandas; pandas.read_csv('/srv/reports/q3.csv')"),
    ("PIL.open", "path", ["/srv/uploads/7.png"], "from PIL import Image; Image.open('/srv/uploads/7.png')"),
    ("h5py", "path", ["/data/train/run7.h5"], "import h5py; h5py.File('/data/train/run7.h5')"),
    ("duckdb file", "path", ["/var/lib/none/lake.duckdb"], "import duckdb; duckdb.connect('/var/lib/none/lake.duckdb')"),
    ("duckdb csv", "path", ["/srv/lake/events.csv"], "import duckdb; duckdb.sql(\"select * from read_csv('/srv/lake/events.csv')\")"),
    ("git.Repo", "path", ["/srv/repos/ledger"], "import git; git.Repo('/srv/repos/ledger')"),
    ("paramiko key", "path", ["/home/deploy/.ssh"], "import paramiko; paramiko.RSAKey.from_private_key_file('/home/deploy/.ssh/id_rsa')"),
    ("minio fput", "path", ["/srv/out/report.pdf"], "from minio import Minio; Minio('files.internal:9000').fput_object('bucket','x','/srv/out/report.pdf')"),
    ("importlib file", "path", ["/srv/app/plugins/tax.py"], "import importlib.util as u; s=u.spec_from_file_location('tax','/srv/app/plugins/tax.py'); m=u.module_from_spec(s); s.loader.exec_module(m)"),
    ("pathlib mkdir", "path", ["/proc/amends"], "Path('/proc/amends').mkdir()"),
    ("logging FileHandler", "path", ["/var/log/orders"], "import logging; logging.FileHandler('/var/log/orders/app.log')"),
    ("dbm", "path", ["/var/lib/none"], "import dbm.dumb; dbm.dumb.open('/var/lib/none/cache', 'n')"),
    ("sqlalchemy sqlite", "sql", ["unable to open", "sqlalche.me"], "import sqlalchemy as s; s.create_engine('sqlite:////var/lib/none/x.db').connect()"),
    # --- processes ---------------------------------------------------------------------------------------
    ("subprocess missing", "path", ["/opt/bin/transcode"], "subprocess.run(['/opt/bin/transcode','-i','a.mp4'])"),
    ("subprocess check", "path", ["/srv/media"], "subprocess.run(['ls','/srv/media/none'], check=True, stderr=subprocess.DEVNULL)"),
    ("subprocess timeout", "path", ["/srv/app/bin/slow"], "raise subprocess.TimeoutExpired(['/srv/app/bin/slow','--all'], 5)"),
    ("subprocess token", "token", ["hunter2secret"], "raise subprocess.CalledProcessError(1, ['mysqldump','--password=hunter2secret','orders'])"),
    ("subprocess cwd", "path", ["/srv/none"], "subprocess.run(['ls'], cwd='/srv/none')"),
    # --- sockets, TLS, HTTP ------------------------------------------------------------------------------
    ("httpx status", "host", ["billing.internal"], "import httpx; r=httpx.Response(503, request=httpx.Request('GET','https://billing.internal:8443/v1/invoices')); r.raise_for_status()"),
    ("httpx2 status", "host", ["ledger.prod.svc.cluster.local"], "import httpx2; r=httpx2.Response(500, request=httpx2.Request('POST','http://ledger.prod.svc.cluster.local/v1/entries')); r.raise_for_status()"),
    ("httpx token in query", "host", ["tok_9f8e7d6c5b4a"], "import httpx; r=httpx.Response(401, request=httpx.Request('GET','https://api.partner.example.com/v1?access_token=tok_9f8e7d6c5b4a')); r.raise_for_status()"),
    ("requests refused", "host", ["127.0.0.1", "0x7f"], "import requests; requests.get('http://127.0.0.1:9/health')"),
    ("requests DNS", "host", ["inventory.prod.internal", "/v2/stock"], "import requests; requests.get('http://inventory.prod.internal/v2/stock?sku=1')"),
    ("requests status", "host", ["payments.corp.example.com"], "import requests; r=requests.Response(); r.status_code=502; r.reason='Bad Gateway'; r.url='https://payments.corp.example.com/charge'; r.raise_for_status()"),
    ("requests schema", "host", ["billing.internal"], "import requests; requests.get('billing.internal/v1')"),
    ("requests proxy", "host", ["proxy.corp.example.com", "svc_user"], "import requests; requests.get('http://example.invalid/', proxies={'http':'http://svc_user:Pr0xyPass@proxy.corp.example.com:3128'})"),
    ("urllib3 retries", "host", ["localhost", "/internal/metrics"], "import urllib3; urllib3.PoolManager(retries=urllib3.Retry(1)).request('GET','http://localhost:9/internal/metrics')"),
    ("urllib3 DNS", "host", ["search-7.prod.internal"], "import urllib3; urllib3.PoolManager(retries=False).request('GET','http://search-7.prod.internal:9200/')"),
    ("urllib3 location", "host", ["10.1.2.3"], "from urllib3.exceptions import LocationParseError; raise LocationParseError('http://10.1.2.3:port/x')"),
    ("urllib3 read timeout", "host", ["10.8.0.12"], "import urllib3.exceptions as e, urllib3; raise e.ReadTimeoutError(urllib3.HTTPSConnectionPool('10.8.0.12',port=8443),'/v1',\"Read timed out. (read timeout=5)\")"),
    ("aiohttp refused", "host", ["127.0.0.1"], "import aiohttp\nasync with aiohttp.ClientSession() as s:\n    await s.get('http://127.0.0.1:9/')"),
    ("aiohttp DNS", "host", ["cache-3.prod.internal"], "import aiohttp\nasync with aiohttp.ClientSession() as s:\n    await s.get('http://cache-3.prod.internal:8080/')"),
    ("aiohttp status", "host", ["users.svc.cluster.local"], "import aiohttp\nfrom yarl import URL\nfrom multidict import CIMultiDict, CIMultiDictProxy\nraise aiohttp.ClientResponseError(aiohttp.RequestInfo(URL('http://users.svc.cluster.local/me'),'GET',CIMultiDictProxy(CIMultiDict()),URL('http://users.svc.cluster.local/me')),(),status=500,message='Internal Server Error')"),
    ("aiohttp unix", "path", ["/run/none/docker.sock"], "import aiohttp\nasync with aiohttp.ClientSession(connector=aiohttp.UnixConnector('/run/none/docker.sock')) as s:\n    await s.get('http://localhost/')"),
    ("asyncio open_connection", "address", ["127.0.0.1"], "await asyncio.open_connection('127.0.0.1', 9)"),
    ("asyncio multi", "address", ["127.0.0.1", "::1"], "await asyncio.open_connection('localhost', 9)"),
    ("asyncio start_server", "address", ["203.0.113.7"], "await asyncio.start_server(print, '203.0.113.7', 8080)"),
    ("ssl hostname", "host", ["vault.prod.internal"], "import ssl; raise ssl.SSLCertVerificationError(1, \"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: Hostname mismatch, certificate is not valid for 'vault.prod.internal'. (_ssl.c:1006)\")"),
    ("websockets refused", "address", ["127.0.0.1"], "import websockets\nawait websockets.connect('ws://127.0.0.1:9/feed')"),
    ("websockets uri", "host", ["feed.internal"], "import websockets\nawait websockets.connect('http://feed.internal/feed')"),
    ("grpc refused", "address", ["127.0.0.1"], "import grpc; c=grpc.insecure_channel('127.0.0.1:9'); c.unary_unary('/orders.v1.Orders/Get')(b'', timeout=2)"),
    ("grpc DNS", "host", ["orders.prod.internal"], "import grpc; c=grpc.insecure_channel('orders.prod.internal:50051'); c.unary_unary('/orders.v1.Orders/Get')(b'', timeout=8)"),
    ("dns.resolver", "host", ["db.prod.internal"], "import dns.resolver; raise dns.resolver.NXDOMAIN(qnames=[dns.name.from_text('db.prod.internal')], responses={})"),
    ("dns timeout", "address", ["10.96.0.10"], "import dns.resolver; raise dns.resolver.LifetimeTimeout(timeout=5.4, errors=[('10.96.0.10', False, 53, 'The DNS operation timed out.', None)])"),
    ("paramiko no connection", "address", ["127.0.0.1"], "import paramiko; c=paramiko.SSHClient(); c.connect('127.0.0.1', 9, username='deploy', password='x')"),
    ("pycurl", "host", ["127.0.0.1"], "import pycurl; c=pycurl.Curl(); c.setopt(c.URL,'http://127.0.0.1:9/'); c.perform()"),
    ("pycurl DNS", "host", ["files.prod.internal"], "import pycurl; c=pycurl.Curl(); c.setopt(c.URL,'http://files.prod.internal/'); c.perform()"),
    ("xmlrpc", "host", ["127.0.0.1"], "import xmlrpc.client as x; raise x.ProtocolError('127.0.0.1:9/RPC2', 502, 'Bad Gateway', {})"),
    ("smtplib refused", "address", ["10.2.3.4"], "raise ConnectionError('Could not send mail through 10.2.3.4:25: ' + os.strerror(111))"),
    ("socket bind", "address", ["198.51.100.4"], "import socket; s=socket.socket()\ntry: s.bind(('198.51.100.4', 80))\nexcept OSError as e: raise OSError(f\"{e} ('198.51.100.4', 80)\")"),
    # --- databases and brokers without a server ----------------------------------------------------------
    ("psycopg refused", "host", ["127.0.0.1"], "import psycopg; psycopg.connect('host=127.0.0.1 port=9 user=app dbname=orders')"),
    ("psycopg DNS", "host", ["db-primary.prod.internal"], "import psycopg; psycopg.connect('host=db-primary.prod.internal user=app')"),
    ("psycopg bare host", "host", ["db-primary"], "import psycopg; psycopg.connect('host=db-primary user=app')"),
    ("psycopg socket", "path", ["/var/run/none"], "import psycopg; psycopg.connect('host=/var/run/none dbname=orders')"),
    ("psycopg2 refused", "host", ["127.0.0.1"], "import psycopg2; psycopg2.connect(host='127.0.0.1', port=9, user='app', dbname='orders')"),
    ("psycopg2 DNS", "host", ["pg-replica-2.prod.internal"], "import psycopg2; psycopg2.connect(host='pg-replica-2.prod.internal')"),
    ("asyncpg refused", "address", ["127.0.0.1"], "import asyncpg\nawait asyncpg.connect('postgresql://app:pw@127.0.0.1:9/orders')"),
    ("pymysql refused", "host", ["127.0.0.1"], "import pymysql; pymysql.connect(host='127.0.0.1', port=9, user='app', password='x')"),
    ("pymysql DNS", "host", ["mysql-7.prod.internal"], "import pymysql; pymysql.connect(host='mysql-7.prod.internal', user='app')"),
    ("mysql.connector refused", "host", ["127.0.0.1"], "import mysql.connector as m; m.connect(host='127.0.0.1', port=9, user='app', use_pure=True)"),
    ("redis refused", "host", ["127.0.0.1"], "import redis; redis.Redis('127.0.0.1', 9).ping()"),
    ("redis localhost", "host", ["localhost:9"], "import redis; redis.Redis('localhost', 9).ping()"),
    ("redis DNS", "host", ["redis-master"], "import redis; redis.Redis('redis-master', 6379).ping()"),
    ("pymongo refused", "host", ["127.0.0.1"], "import pymongo; pymongo.MongoClient('127.0.0.1', 9, serverSelectionTimeoutMS=200).admin.command('ping')"),
    ("pymongo DNS", "host", ["mongo-0.mongo.prod.svc"], "import pymongo; pymongo.MongoClient('mongodb://mongo-0.mongo.prod.svc:27017', serverSelectionTimeoutMS=200).admin.command('ping')"),
    ("kafka refused", "host", ["127.0.0.1"], "import kafka.errors as k; raise k.KafkaConnectionError('Failed to connect to 127.0.0.1:9092: ECONNREFUSED')"),
    ("kombu refused", "host", ["rabbit.prod.internal"], "import kombu; raise RuntimeError(f\"Cannot connect to {kombu.Connection('amqp://app:pw@rabbit.prod.internal:5672//').as_uri()}: {os.strerror(111)}.\")"),
    ("neo4j refused", "host", ["127.0.0.1"], "import neo4j; neo4j.GraphDatabase.driver('bolt://127.0.0.1:9').verify_connectivity()"),
    ("clickhouse refused", "host", ["127.0.0.1"], "import clickhouse_connect as c; c.get_client(host='127.0.0.1', port=9)"),
    ("cassandra refused", "address", ["127.0.0.1"], "from cassandra.cluster import NoHostAvailable; raise NoHostAvailable('Unable to connect to any servers', {'127.0.0.1:9042': ConnectionRefusedError(111, \"Tried connecting to [('127.0.0.1', 9042)]. Last error: Connection refused\")})"),
    ("pymssql refused", "host", ["127.0.0.1"], "import pymssql; pymssql.connect('127.0.0.1','sa','x','orders', port='9', login_timeout=1)"),
    ("sqlalchemy pg refused", "host", ["127.0.0.1", "sqlalche.me"], "import sqlalchemy as s; s.create_engine('postgresql+psycopg://app:pw@127.0.0.1:9/orders').connect()"),
    ("sqlalchemy dialect", "token", ["s3cr3t"], "raise ValueError('cannot load dialect for postgres+nope://app:s3cr3t@db.prod:5432/orders')"),
    ("kubernetes refused", "host", ["127.0.0.1"], "from kubernetes import client as k; c=k.Configuration(); c.host='https://127.0.0.1:9'; c.retries=False; k.CoreV1Api(k.ApiClient(c)).list_node()"),
    ("celery broker", "host", ["redis.prod.internal"], "import kombu.exceptions as k; raise k.OperationalError('Error -2 connecting to redis.prod.internal:6379. Name or service not known.')"),
    ("boto3 endpoint", "host", ["127.0.0.1"], "import boto3, botocore.config as b; boto3.client('s3', endpoint_url='http://127.0.0.1:9', region_name='eu-west-1', aws_access_key_id='AKIAIOSFODNN7EXAMPLE', aws_secret_access_key='x', config=b.Config(retries={'max_attempts':0})).list_buckets()"),
    ("boto3 sqs host", "host", ["sqs.eu-west-1.amazonaws.com"], "import botocore.exceptions as b; raise b.EndpointConnectionError(endpoint_url='https://sqs.eu-west-1.amazonaws.com/')"),
    ("boto3 access denied", "host", ["123456789012", "orders-worker"], "import botocore.exceptions as b; raise b.ClientError({'Error':{'Code':'AccessDenied','Message':'User: arn:aws:sts::123456789012:assumed-role/orders-worker/i-0abc123 is not authorized to perform: s3:GetObject'}}, 'GetObject')"),
    ("boto3 profile", "path", ["/home/deploy/.aws"], "import botocore.exceptions as b; raise b.ConfigParseError(path='/home/deploy/.aws/config')"),
    ("google storage", "host", ["tf-state-prod"], "from google.api_core import exceptions as g; raise g.Forbidden('GET https://storage.googleapis.com/storage/v1/b/tf-state-prod?projection=noAcl&prettyPrint=false: Forbidden')"),
    ("google adc", "path", ["/secrets/gcp.json"], "os.environ['GOOGLE_APPLICATION_CREDENTIALS']='/secrets/gcp.json'; import google.auth; google.auth.default()"),
    ("azure blob", "host", ["ordersprod.blob.core.windows.net"], "from azure.core.exceptions import ServiceRequestError; raise ServiceRequestError(\"<urllib3.connection.HTTPSConnection object at 0x7f3a1c2b4d50>: Failed to resolve 'ordersprod.blob.core.windows.net' ([Errno -2] Name or service not known)\")"),
    ("azure conn string", "token", ["c2VjcmV0a2V5c2VjcmV0a2V5"], "from azure.storage.blob import BlobServiceClient; raise ValueError('Bad connection string: DefaultEndpointsProtocol=https;AccountName=ordersprod;AccountKey=c2VjcmV0a2V5c2VjcmV0a2V5MTIzNDU2Nzg5MA==;EndpointSuffix=core.windows.net')"),
    ("snowflake", "host", ["xy12345.eu-west-1"], "import snowflake.connector.errors as s; raise s.OperationalError('Failed to connect to DB: xy12345.eu-west-1.snowflakecomputing.com:443. Incorrect username or password was specified.')"),
    ("openai key", "token", ["sk-proj-"], "import openai, httpx; raise openai.AuthenticationError('Incorrect API key provided: sk-proj-abcdEFGH1234ijkl5678MNOP. You can find your API key at your account page.', response=httpx.Response(401, request=httpx.Request('POST','https://api.openai.com')), body=None)"),
    ("stripe key", "token", ["sk_live_"], "import stripe; raise stripe.AuthenticationError('Invalid API Key provided: sk_live_' + '51Hxyz0123456789abcdef')"),
    # --- SQL ---------------------------------------------------------------------------------------------
    *[
        ("sqlite3", "sql", secrets, f"import sqlite3; c=sqlite3.connect(':memory:'); c.execute('PRAGMA foreign_keys=on'); c.executescript('create table users(id integer primary key, email text not null unique, age int check(age>0)); create table o(u int references users(id)); insert into users values (1, \"a@b.c\", 3)'); c.execute({sql!r})")
        for secrets, sql in [
            (["customers"], "select * from customers"),
            (["users.email"], "insert into users values (2, 'a@b.c', 3)"),
            (["users.email"], "insert into users(id) values (9)"),
            (["nme"], "select nme from users"),
            (["FORM"], "SELECT * FORM users"),
            (["age"], "insert into users values (5, 'x', -1)"),
            (["FOREIGN KEY"], "insert into o values (77)"),
            (["users"], "create table users(x)"),
            (["users has 3 columns"], "insert into users values (1)"),
            (["lenght"], "select lenght(email) from users"),
            (["ghost"], "drop index ghost"),
            (["binding"], "select ?"),
            (["email"], "select email from users, users as u2"),
            (["incomplete input"], "select * from (select 1"),
        ]
    ],
    *[
        (f"sqlalchemy {name}", "sql", secrets, f"import sqlalchemy as s; e=s.create_engine('sqlite://'); c=e.connect(); c.execute(s.text('create table accounts(id integer primary key, iban text unique)')); c.execute(s.text({sql!r}), {params})")
        for name, secrets, sql, params in [
            ("missing table", ["ledger_entries", "sqlalche.me"], "SELECT iban FROM ledger_entries WHERE id = :i", "{'i': 7}"),
            ("unique", ["DE89370400440532013000", "accounts"], "INSERT INTO accounts (id, iban) VALUES (1, :b), (1, :b)", "{'b': 'DE89370400440532013000'}"),
            ("syntax", ["UPDAT"], "UPDAT accounts SET iban = 1", "{}"),
            ("column", ["balanse"], "SELECT balanse\nFROM accounts\nWHERE id = 1", "{}"),
        ]
    ],
    ("peewee", "sql", ["person"], "import peewee; d=peewee.SqliteDatabase(':memory:'); P=type('Person',(peewee.Model,),{'Meta':type('Meta',(),{'database':d})}); list(P.select())"),
    ("django ORM", "sql", ["auth_user"], "import django.db.utils as d; raise d.OperationalError('no such table: auth_user')"),
    ("duckdb catalog", "sql", ["ordrs"], "import duckdb; duckdb.sql('select * from ordrs')"),
    ("duckdb parser", "sql", ["slect"], "import duckdb; duckdb.sql('slect 1 from x')"),
    ("duckdb binder", "sql", ["nme"], "import duckdb; duckdb.sql('create table people(name text)'); duckdb.sql('select nme from people')"),
    ("duckdb constraint", "sql", ["id: 1"], "import duckdb; c=duckdb.connect(); c.execute('create table k(id int primary key)'); c.execute('insert into k values (1)'); c.execute('insert into k values (1)')"),
    ("duckdb conversion", "sql", ["INT32"], "import duckdb; duckdb.sql(\"select cast('abc' as integer)\").fetchall()"),
    ("pymysql shapes", "sql", ["shop.orders"], "import pymysql; raise pymysql.err.ProgrammingError(1146, \"Table 'shop.orders' doesn't exist\")"),
    ("pymysql duplicate", "sql", ["ann@example.com", "users.email"], "import pymysql; raise pymysql.err.IntegrityError(1062, \"Duplicate entry 'ann@example.com' for key 'users.email'\")"),
    ("pymysql access", "sql", ["app_rw", "10.0.3.17"], "import pymysql; raise pymysql.err.OperationalError(1045, \"Access denied for user 'app_rw'@'10.0.3.17' (using password: YES)\")"),
    ("pymysql syntax", "sql", ["FORM orders"], "import pymysql; raise pymysql.err.ProgrammingError(1064, \"You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near 'FORM orders' at line 1\")"),
    ("pymysql column", "sql", ["totl"], "import pymysql; raise pymysql.err.OperationalError(1054, \"Unknown column 'totl' in 'field list'\")"),
    ("pymongo duplicate", "sql", ["shop.users", "ann@example.com"], "import pymongo.errors as p; raise p.DuplicateKeyError('E11000 duplicate key error collection: shop.users index: email_1 dup key: { email: \"ann@example.com\" }')"),
    ("pymongo auth", "sql", ["orders_admin"], "import pymongo.errors as p; raise p.OperationFailure('not authorized on orders_admin to execute command { find: \"invoices\", filter: {} }')"),
    ("oracledb shapes", "sql", ["APP_OWNER.ORDERS_PK"], "import oracledb; raise oracledb.IntegrityError('ORA-00001: unique constraint (APP_OWNER.ORDERS_PK) violated')"),
    ("pymssql shapes", "sql", ["dbo.Orders"], "import pymssql; raise pymssql.ProgrammingError(208, b\"Invalid object name 'dbo.Orders'.DB-Lib error message 20018, severity 16\")"),
    ("clickhouse shapes", "sql", ["default.hits"], "raise RuntimeError('Code: 60. DB::Exception: Table default.hits does not exist. (UNKNOWN_TABLE)')"),
    # --- traces ------------------------------------------------------------------------------------------
    ("traceback KeyError", "trace", ["charge.py", "card_number"], "TRACE:def charge(order):\n    return order['card_number']\n\ncharge({})"),
    ("traceback chained", "trace", ["charge.py", "during handling", "int('x')"], "TRACE:def total(x):\n    try:\n        return int('x')\n    except ValueError as e:\n        raise RuntimeError('cannot total') from e\n\ntotal(1)"),
    ("traceback json", "trace", ["site-packages", "decoder.py", "charge.py"], "TRACE:import json\njson.loads('{oops')"),
    ("traceback httpx", "trace", ["httpx/", "_client.py", "charge.py"], "TRACE:import httpx\nhttpx.get('http://127.0.0.1:9/')"),
    ("traceback syntax", "trace", ["charge.py"], "TRACE:compile('def f(:', '/srv/app/charge.py', 'exec')"),
    ("traceback recursion", "trace", ["charge.py", "again"], "TRACE:def again():\n    return again()\nagain()"),
    ("exception group", "trace", ["charge.py"], "TRACE:raise ExceptionGroup('two', [ValueError('a'), KeyError('b')])"),
    ("repr of object", "trace", ["0x7f"], "raise TypeError('Object <app.ledger.Entry object at 0x7f8e1c0d2a90> is not JSON serializable')"),
    ("repr of function", "trace", ["0x7f", "OrderService"], "raise TypeError('<bound method OrderService.place of <app.orders.OrderService object at 0x7fd0aa0b1c40>> got an unexpected keyword')"),
    ("ImportError path", "path", ["/srv/app"], "raise ImportError(\"cannot import name 'tax' from 'app.rules' (/srv/app/app/rules/__init__.py)\")"),
    ("jinja2 syntax", "trace", ["/srv/app/templates/mail.html"], "import jinja2; raise jinja2.TemplateSyntaxError(\"unexpected '}' in /srv/app/templates/mail.html\", 3, filename='/srv/app/templates/mail.html')"),
    ("warning line", "trace", ["/srv/app/app/rates.py"], "raise RuntimeError(warnings.formatwarning('rates are stale', UserWarning, '/srv/app/app/rates.py', 42))"),
    ("asyncio task repr", "trace", ["/srv/app/worker.py"], "raise RuntimeError(\"Task <Task pending name='Task-7' coro=<poll() running at /srv/app/worker.py:31>> got Future attached to a different loop\")"),
    # --- tokens ------------------------------------------------------------------------------------------
    ("PyJWT token in text", "token", ["eyJhbGci"], "import jwt; t=jwt.encode({'sub':'42'}, 'k'*32, algorithm='HS256'); raise PermissionError(f'token {t} was rejected')"),
    ("requests header", "token", ["QWxhZGRpbjpvcGVuIHNlc2FtZQ"], "raise PermissionError(\"401 for headers {'Authorization': 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==', 'Accept': '*/*'}\")"),
    ("httpx bearer", "token", ["mF_9.B5f-4.1JqM"], "raise PermissionError('upstream refused Authorization: Bearer mF_9.B5f-4.1JqM')"),
    ("http cookie", "token", ["38afes7a8"], "raise PermissionError('session lost, Set-Cookie: id=38afes7a8; Path=/; HttpOnly')"),
    ("pem", "token", ["MC4CAQAwBQYDK2Vw"], "from cryptography.hazmat.primitives.asymmetric import ed25519 as e; from cryptography.hazmat.primitives import serialization as s; raise ValueError('could not use key ' + '-----BEGIN PRIVATE KEY-----\\nMC4CAQAwBQYDK2VwBCIEIO4rZKx0dQyHfM9AqI2dQ3p6w0wqXmB2xJtR1pX2kU0t\\n-----END PRIVATE KEY-----')"),
    # --- other structured libraries ----------------------------------------------------------------------
    ("pydantic url", "host", ["errors.pydantic.dev"], "import pydantic; pydantic.TypeAdapter(int).validate_python('abc')"),
    ("pydantic settings dsn", "host", ["hunter2secret", "db.prod"], "import pydantic; pydantic.TypeAdapter(pydantic.RedisDsn).validate_python('postgres://app:hunter2secret@db.prod:5432/x')"),
    ("jsonschema ref", "host", ["schemas.internal"], "import jsonschema, referencing; jsonschema.validate(1, {'$ref':'http://schemas.internal/order.json'})"),
    ("flask BuildError", "trace", ["0x7f"], "raise TypeError('The view function did not return a valid response: <function checkout at 0x7f1c9a0e3d90>')"),
    ("fsspec", "path", ["/srv/lake/none"], "import fsspec; fsspec.open('file:///srv/lake/none/part-0.parquet').open()"),
    ("s3fs", "host", ["127.0.0.1"], "import s3fs; s3fs.S3FileSystem(endpoint_url='http://127.0.0.1:9', key='k', secret='s', config_kwargs={'retries':{'max_attempts':0}}).ls('bucket')"),
]  # fmt: skip

# (source, kind, substrings, command, standard input)
COMMANDS: list[tuple[str, str, list[str], list[str], str]] = [
    ("curl refused", "address", ["127.0.0.1"], ["curl", "-sS", "http://127.0.0.1:9/x"], ""),
    ("curl DNS", "host", ["billing.internal"], ["curl", "-sS", "https://billing.internal/x"], ""),
    ("git clone", "host", ["git.corp.internal"], ["git", "clone", "https://git.corp.internal/team/app.git", "{tmp}/x"], ""),
    ("git clone path", "path", ["/srv/git/app.git"], ["git", "clone", "/srv/git/app.git", "{tmp}/y"], ""),
    ("git -C", "path", ["/srv/checkout"], ["git", "-C", "/srv/checkout", "status"], ""),
    ("cat", "path", ["/etc/app/db.conf"], ["cat", "/etc/app/db.conf"], ""),
    ("ls", "path", ["/var/lib/orders"], ["ls", "/var/lib/orders"], ""),
    ("tar", "path", ["/srv/backups/x.tgz"], ["tar", "xf", "/srv/backups/x.tgz"], ""),
    ("bash", "path", ["/opt/app/run.sh"], ["bash", "-c", "/opt/app/run.sh"], ""),
    ("bash line", "path", ["nope.sh"], ["bash", "{tmp}/nope.sh"], ""),
    ("openssl", "path", ["/etc/ssl/private/k.pem"], ["openssl", "rsa", "-in", "/etc/ssl/private/k.pem"], ""),
    ("psql refused", "host", ["127.0.0.1"], ["psql", "-h", "127.0.0.1", "-p", "9", "-U", "app", "-c", "select 1"], ""),
    ("psql host", "host", ["db-primary"], ["psql", "-h", "db-primary", "-U", "app", "-c", "select 1"], ""),
    ("ssh", "host", ["bastion.corp.internal"], ["ssh", "-o", "BatchMode=yes", "bastion.corp.internal", "true"], ""),
    ("perl die", "trace", ["charge.pl"], ["perl", "{tmp}/charge.pl"], ""),
    ("perl missing", "path", ["/etc/perl"], ["perl", "-MLedger", "-e", "1"], ""),
    ("gcc", "path", ["/srv/app/native/x.c"], ["gcc", "/srv/app/native/x.c"], ""),
    ("node throw", "trace", ["charge.js", "node:internal"], ["node", "{tmp}/charge.js"], ""),
    ("node ENOENT", "path", ["/srv/app/config.json"], ["node", "-e", "try{require('fs').readFileSync('/srv/app/config.json')}catch(e){console.error(e.message);process.exit(1)}"], ""),
    ("node ECONNREFUSED", "address", ["127.0.0.1"], ["node", "-e", "require('net').connect(9,'127.0.0.1').on('error',e=>{console.error(e.message);process.exit(1)})"], ""),
    ("node ENOTFOUND", "host", ["orders-db"], ["node", "-e", "require('dns').lookup('orders-db',e=>{console.error(e.message);process.exit(1)})"], ""),
    ("node module", "path", ["/srv/app/lib/tax.js"], ["node", "-e", "try{require('/srv/app/lib/tax.js')}catch(e){console.error(e.message.split('\\n')[0]);process.exit(1)}"], ""),
    ("node stack", "trace", ["charge.js"], ["node", "-e", "try{null.x}catch(e){console.error(e.stack.replace(/\\[eval\\]/g,'/srv/app/charge.js'));process.exit(1)}"], ""),
    ("node TypeError cause", "trace", ["processTicksAndRejections"], ["node", "-e", "(async()=>{await 1;throw new Error('no stock')})().catch(e=>{console.error(e.stack+'\\n    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)');process.exit(1)})"], ""),
    ("java NPE", "trace", ["Charge.java"], ["java", "{tmp}/Charge.java"], ""),
    ("java file", "trace", ["/srv/app/app.properties"], ["java", "{tmp}/Files0.java"], ""),
    ("java connect", "trace", ["sun.nio", "Net0.java"], ["java", "{tmp}/Net0.java"], ""),
    ("java wrapped", "trace", ["Caused by", "Wrap.java"], ["java", "{tmp}/Wrap.java"], ""),
    ("python -c", "trace", ['File "<string>"'], [sys.executable, "-c", "import json; json.loads('')"], ""),
    ("python module", "path", ["/srv/app/run.py"], [sys.executable, "/srv/app/run.py"], ""),
    ("rustc panic", "trace", ["charge.rs"], ["sh", "-c", "cd {tmp} && rustc charge.rs -o charge 2>/dev/null && ./charge"], ""),
    ("terraform", "path", ["/srv/infra"], ["terraform", "-chdir=/srv/infra", "plan"], ""),
    ("docker cli", "path", ["/run/none.sock"], ["docker", "-H", "unix:///run/none.sock", "ps"], ""),
    ("find", "path", ["/srv/none"], ["find", "/srv/none"], ""),
    ("make", "path", ["/srv/none"], ["make", "-C", "/srv/none"], ""),
]  # fmt: skip

FILES = {
    "charge.pl": "sub charge { die 'no card' } charge();\n",
    "charge.js": "function charge(o) {\n  return o.card.number;\n}\ncharge({});\n",
    "Charge.java": "class Charge { static int n(String s) { return s.length(); }\n public static void main(String[] a) { System.out.println(n(null)); } }\n",
    "Files0.java": 'class Files0 { public static void main(String[] a) throws Exception { java.nio.file.Files.readString(java.nio.file.Path.of("/srv/app/app.properties")); } }\n',
    "Net0.java": 'class Net0 { public static void main(String[] a) throws Exception { new java.net.Socket("127.0.0.1", 9); } }\n',
    "Wrap.java": 'class Wrap { public static void main(String[] a) { try { Integer.parseInt("x"); } catch (Exception e) { throw new IllegalStateException("bad config", e); } } }\n',
    "charge.rs": 'fn main() { let v: Vec<i32> = vec![]; println!("{}", v[3]); }\n',
}  # fmt: skip

# Statements against a real server, with what its messages must not show.
POSTGRES: list[tuple[list[str], str]] = [
    (["ledger"], "select * from ledger"),
    (["SELEC"], "SELEC * from users"),
    (["users_email_key", "ann@example.com"], "insert into users values (2, 'ann@example.com', 3)"),
    (["email", "relation"], "insert into users(id) values (9)"),
    (["o_u_fkey", "users"], "insert into o values (77)"),
    (["users_age_check", "Failing row"], "insert into users values (5, 'x', -1)"),
    (["nme"], "select nme from users"),
    (["lenght"], "select lenght(email) from users"),
    (["integer"], "select 'abc'::integer"),
    (["character varying"], "insert into short values ('far too long')"),
    (["vault"], "set role vault"),
    (["app_private"], "select * from app_private.keys"),
    (["users"], "create table users(x int)"),
    (["json"], "select '{bad'::json"),
    (["statement timeout"], "set statement_timeout=20; select pg_sleep(1)"),
    (["is aborted"], "ABORTED"),
    (["ambiguous", "id"], "select id from users, o as x(id)"),
    (["GROUP BY"], "select email, count(*) from users"),
    (["out of range"], "select 99999999999::int4"),
    (["text = integer"], "select * from users where email = 3"),
    (["unterminated"], "select 'abc"),
    (["cost="], "EXPLAIN select * from users where age > 3"),
    (["cost=", "Index Cond"], "EXPLAIN select * from users where id = 3"),
    (["subquery"], "select (select id from generate_series(1,2) as id)"),
    (["users"], "select * from users for update nowait; drop table users"),
    (["password authentication", "app_rw"], "LOGIN"),
    (["orders_none"], "DATABASE"),
]


def scrub(text: str, tmp: str) -> str:
    """Replace what belongs to this machine alone."""
    import site
    import sysconfig

    places = [
        (tmp, "/srv/app"),
        *((p, "/srv/app/.venv/lib/python3.11/site-packages") for p in site.getsitepackages()),
    ]
    places += [(sysconfig.get_path("stdlib"), "/usr/lib/python3.11"), (sys.executable, "/usr/bin/python3")]
    places += [(sys.prefix, "/srv/app/.venv"), (sys.base_prefix, "/usr"), (str(Path.cwd()), "/srv/app")]
    places += [(str(Path(__file__).resolve().parent), "/srv/app/scripts"), (str(Path.home()), "/home/app")]
    for place, stand_in in sorted(places, key=lambda pair: -len(pair[0])):
        text = text.replace(place, stand_in)
    text = re.sub(r"/tmp/[\w./-]+", "/srv/app", text) if "/tmp/" in text else text
    text = re.sub(r"0x[0-9a-f]{9,16}", "0x7f3a1c2b4d50", text)
    rows = text.strip().splitlines()
    return "\n".join(rows if len(rows) < 40 else [*rows[:20], *rows[-15:]])


async def run_case(code: str, tmp: str) -> str:
    """Return the message of the library when the code is run."""
    if code.startswith("TRACE:"):
        place = Path(tmp) / "charge.py"
        place.write_text(code.removeprefix("TRACE:"))
        done = subprocess.run(  # noqa: ASYNC221
            [sys.executable, str(place)], capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        return done.stderr
    scope = {
        "os": os,
        "json": json,
        "subprocess": subprocess,
        "shutil": shutil,
        "Path": Path,
        "asyncio": asyncio,
    }
    scope |= {"warnings": warnings, "tmp": tmp}
    body = "async def main():\n" + textwrap.indent(
        code.replace("; ", "\n") if "try" not in code and "'; " not in code else code, "    "
    )
    try:
        exec(compile(body, "case", "exec"), scope)
    except SyntaxError:
        exec(compile("async def main():\n" + textwrap.indent(code, "    "), "case", "exec"), scope)
    try:
        await asyncio.wait_for(scope["main"](), TIMEOUT)
    except ImportError as missing:
        if "cannot import name 'tax'" in str(missing):
            return str(missing)
        raise
    except BaseException as error:  # noqa: BLE001 - whatever they raise is what we came for
        return str(error) or repr(error)
    raise RuntimeError("did not fail")


def run_postgres(dsn: str) -> list[tuple[list[str], str]]:
    """Messages of a real server."""
    import psycopg

    messages = []
    setup = (
        "drop schema public cascade; create schema public; create table users(id int primary key, email text not null unique,"
        " age int check(age>0)); create table o(u int references users(id)); create table short(v varchar(3));"
        " insert into users values (1, 'ann@example.com', 3)"
    )
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(setup)
    for secrets, statement in POSTGRES:
        try:
            if statement == "LOGIN":
                psycopg.connect(dsn, password="wrong")
            if statement == "DATABASE":
                psycopg.connect(dsn, dbname="orders_none")
            with psycopg.connect(dsn, autocommit=statement != "ABORTED") as server:
                if statement == "ABORTED":
                    try:
                        server.execute("select 1/0")
                    except psycopg.Error:
                        server.execute("select 1")
                rows = server.execute(statement)
                if statement.startswith("EXPLAIN"):
                    messages.append((secrets, "slow query: " + "\n".join(row[0] for row in rows)))
        except psycopg.Error as error:
            messages.append((secrets, str(error)))
    return messages


def main() -> None:
    """Run everything that can be run here; one JSON object per line on standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", help="a server that may be wiped")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[tuple[str, str, list[str], str]] = []
    with tempfile.TemporaryDirectory() as tmp:
        for name, content in FILES.items():
            (Path(tmp) / name).write_text(content)
        for source, kind, secrets, code in CASES:
            try:
                how = "shape" if re.search(r"(?:^|; |\n)raise ", code) else "run"
                rows.append((f"{how}: {source}", kind, secrets, asyncio.run(run_case(code, tmp))))
            except BaseException as error:  # noqa: BLE001 - one missing library must not stop the others
                print(f"skipped {source}: {type(error).__name__}: {error}", file=sys.stderr)
                if "--debug" in sys.argv:
                    traceback.print_exc()
        for source, kind, secrets, command, stdin in COMMANDS:
            try:
                done = subprocess.run(
                    [part.replace("{tmp}", tmp) for part in command],
                    input=stdin, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"},
                )  # fmt: skip
                rows.append((f"run: {source}", kind, secrets, (done.stderr or done.stdout)[:3000]))
            except (OSError, subprocess.TimeoutExpired) as error:
                print(f"skipped {source}: {error}", file=sys.stderr)
        if options.postgres:
            rows += [
                ("run: PostgreSQL 15 via psycopg", "sql", secrets, text)
                for secrets, text in run_postgres(options.postgres)
            ]
        for source, kind, secrets, text in rows:
            clean = scrub(text, tmp)
            kept = [secret for secret in secrets if secret in clean]
            if not kept:
                print(f"no secret of {source} in {clean[:300]!r}", file=sys.stderr)
                continue
            print(
                json.dumps(
                    {"text": clean, "kind": kind, "source": source, "secret": kept},
                    ensure_ascii=False,
                )
            )


if __name__ == "__main__":
    main()

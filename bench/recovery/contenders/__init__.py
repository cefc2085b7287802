"""
Who takes part.

A contender is a name, a note about its configuration and a function `client(process)`, called once for each client
process, that returns the coroutine function carrying out one operation (`bench.recovery.run.Contender`). That
function gets a `Call`: `await call.send(key=None)` makes one call and returns a response, or raises LostError after
the client's time-out; `await call.refresh()` fetches a new credential; `call.method` and `call.keyed` say what kind of
operation it is. Blocking code goes through `call.process.strands` and `call.send_blocking`. Nothing in this folder knows
the services' insides except the oracle.
"""

from bench.recovery.contenders.amends import AMENDS
from bench.recovery.contenders.http_clients import HTTPX_RETRIES, URLLIB3
from bench.recovery.contenders.plain import NO_RETRY, ORACLE
from bench.recovery.contenders.retry_libraries import REDRESS, STAMINA, TENACITY
from bench.recovery.contenders.sdks import BOTOCORE, OPENAI

CONTENDERS = {
    contender.name: contender
    for contender in (
        NO_RETRY,
        TENACITY,
        STAMINA,
        HTTPX_RETRIES,
        URLLIB3,
        OPENAI,
        BOTOCORE,
        REDRESS,
        AMENDS,
        ORACLE,
    )
}
OURS = AMENDS.name

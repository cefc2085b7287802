"""All contenders by name, in the order of the table. Importing it imports every peer."""

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

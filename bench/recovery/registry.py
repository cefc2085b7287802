"""All contenders by name, in the order of the table. Importing this module imports every library."""

from bench.recovery.contenders.http_clients import HTTPX_RETRIES, URLLIB3
from bench.recovery.contenders.library import AMENDS, AMENDS_HTTP
from bench.recovery.contenders.plain import NO_RETRY, ORACLE
from bench.recovery.contenders.retry_libraries import REDRESS, STAMINA, TENACITY
from bench.recovery.contenders.sdks import BOTOCORE, OPENAI
from bench.recovery.contenders.sketch_driver import SKETCH
from bench.recovery.contenders.tuned import REDRESS_TUNED, STAMINA_TUNED, TENACITY_TUNED

CONTENDERS = {
    contender.name: contender
    for contender in (
        NO_RETRY,
        TENACITY,
        TENACITY_TUNED,
        STAMINA,
        STAMINA_TUNED,
        HTTPX_RETRIES,
        URLLIB3,
        OPENAI,
        BOTOCORE,
        REDRESS,
        REDRESS_TUNED,
        SKETCH,
        AMENDS,
        AMENDS_HTTP,
        ORACLE,
    )
}
OURS = AMENDS.name

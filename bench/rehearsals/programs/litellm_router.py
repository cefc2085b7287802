"""LiteLLM's router with its own retries, or none and the transport of amends."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise the import fetches a price list from GitHub

import litellm
from tools import MODEL, PARAMETERS, PROMPT, WITH_AMENDS, create_order, openai_options

litellm.telemetry = False
parameters = {"model": f"openai/{MODEL}"}
retries = 2
if WITH_AMENDS:
    import openai

    parameters |= {"max_retries": 0}
    retries = 0
    client = openai.OpenAI(**openai_options())
router = litellm.Router([{"model_name": "orders", "litellm_params": parameters}], num_retries=retries)
more = {"client": client} if WITH_AMENDS else {}
tool = {"type": "function", "function": {"name": "create_order", "parameters": PARAMETERS}}
messages = [{"role": "user", "content": PROMPT}]
while True:
    message = router.completion("orders", messages, tools=[tool], **more).choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        result = create_order(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(message.content)

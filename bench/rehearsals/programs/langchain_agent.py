"""LangChain with its retry middleware, or with that of amends."""

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from tools import MODEL, PROMPT, WITH_AMENDS, create_order, finish

if WITH_AMENDS:
    from amends.bindings.langchain import Failures

    middleware = [Failures()]
else:
    from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware

    middleware = [ModelRetryMiddleware(), ToolRetryMiddleware()]
agent = create_agent(ChatOpenAI(model=MODEL), [create_order], middleware=middleware)
print(agent.invoke({"messages": [("user", PROMPT)]})["messages"][-1].content)
finish()

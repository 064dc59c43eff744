"""A LangGraph agent that remembers its users and its conversation: offline, with a script."""

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

import smara
from smara.adapters.sdk.langgraph import SmaraSaver, SmaraStore

MODEL = FakeListChatModel(responses=["Nice to meet you.", "Darjeeling, as you like it."])


def answer(state: MessagesState, *, store: BaseStore) -> dict[str, object]:
    said = str(state["messages"][-1].content)
    known = store.search(("memories", "ana"), query=said, limit=1)
    store.put(("memories", "ana"), str(len(state["messages"])), {"text": said})
    return {"messages": [MODEL.invoke(f"Known: {[item.value for item in known]}\n{said}")]}


with smara.open("memory.db") as memory:
    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    agent = graph.compile(checkpointer=SmaraSaver(memory), store=SmaraStore(memory))
    config = RunnableConfig(configurable={"thread_id": "1"})
    for prompt in ("I drink Darjeeling tea in the morning", "What tea shall I order?"):
        state = agent.invoke({"messages": [HumanMessage(prompt)]}, config)
        print(len(state["messages"]), state["messages"][-1].content)
    for hit in memory.search("Darjeeling", sources=["items"]):
        print(hit.source, hit.content)

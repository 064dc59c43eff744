"""CrewAI's memory in ours: what a crew remembers is found by every agent of the project."""

import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["CREWAI_TRACING_ENABLED"] = "false"
from crewai import Memory

import smara
from smara.adapters.sdk.crewai import SmaraStorage


def embed(texts: list[str]) -> list[list[float]]:
    """Stand for an embedder: one number for each word that matters."""
    return [[float(word in text) for word in ("key", "door", "")] for text in texts]


with smara.open("memory.db") as store:
    crew = Memory(storage=SmaraStorage(store), embedder=embed, llm="none")
    for fact in ("The key lies under the geranium", "The door is blue"):
        crew.remember(fact, scope="/house", categories=["things"], importance=0.5)
    best, *_ = crew.recall("Where is the key?", scope="/house", depth="shallow")
    print(best.record.scope, best.record.content)
    print([hit.content for hit in store.search("geranium").hits])

"""Stores of other projects behind three calls, run by the Python of an environment of their own.

Started by ``bench.peers`` with a file that says what to do; prints what was measured as JSON. It
imports nothing of ours unless it is our turn. Vectors come from a file, so that every system has
the same ones and only its own work is timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

DIMS = 256
Vector = list[float]


class LangGraph:
    """The store of LangGraph on SQLite, with sqlite-vec."""

    packages = ("langgraph-checkpoint-sqlite",)
    durability = "SQLite, synced at each commit"

    def __init__(self, folder: Path, vectors: dict[str, Vector]) -> None:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore

        self._put = PutOp
        index = {"dims": DIMS, "embed": lambda texts: [vectors[text] for text in texts]}
        self._open = SqliteStore.from_conn_string(str(folder / "s.db"), index=index)
        self._store = self._open.__enter__()
        self._store.setup()

    def add(self, first: int, texts: list[str]) -> None:
        values = [{"text": text} for text in texts]
        ops = [self._put(("m",), str(no), value) for no, value in enumerate(values, first)]
        self._store.batch(ops)

    def search(self, question: str) -> Any:
        return self._store.search(("m",), query=question, limit=10)

    def close(self) -> None:
        self._open.__exit__(None, None, None)


class Chroma:
    """A collection of Chroma in a folder."""

    packages = ("chromadb",)
    durability = "SQLite; the index of vectors later"

    def __init__(self, folder: Path, vectors: dict[str, Vector]) -> None:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(folder), settings=settings)
        self._vectors = vectors
        self._collection = client.create_collection("messages", embedding_function=None)

    def add(self, first: int, texts: list[str]) -> None:
        ids = [str(no) for no in range(first, first + len(texts))]
        vectors = [self._vectors[text] for text in texts]
        self._collection.add(ids=ids, documents=texts, embeddings=vectors)

    def search(self, question: str) -> Any:
        return self._collection.query(query_embeddings=[self._vectors[question]], n_results=10)


class Lance:
    """A table of LanceDB, without an index: it compares all vectors."""

    packages = ("lancedb",)
    durability = "files that are not synced"

    def __init__(self, folder: Path, vectors: dict[str, Vector]) -> None:
        import lancedb

        self._vectors, self._database, self._table = vectors, lancedb.connect(str(folder)), None

    def add(self, first: int, texts: list[str]) -> None:
        numbers = enumerate(texts, first)
        rows = [{"no": no, "text": text, "vector": self._vectors[text]} for no, text in numbers]
        if self._table is None:
            self._table = self._database.create_table("m", data=rows)
        else:
            self._table.add(rows)

    def search(self, question: str) -> Any:
        assert self._table is not None
        return self._table.search(self._vectors[question]).limit(10).to_list()


class Qdrant:
    """Qdrant within the process, on the disk."""

    packages = ("qdrant-client",)
    durability = "SQLite, synced at each commit"

    def __init__(self, folder: Path, vectors: dict[str, Vector]) -> None:
        from qdrant_client import QdrantClient, models

        self._vectors, self._models = vectors, models
        self._client = QdrantClient(path=str(folder))
        params = models.VectorParams(size=DIMS, distance=models.Distance.COSINE)
        self._client.create_collection("m", vectors_config=params)

    def add(self, first: int, texts: list[str]) -> None:
        point, vectors = self._models.PointStruct, self._vectors
        points = [
            point(id=no, vector=vectors[text], payload={"text": text})
            for no, text in enumerate(texts, first)
        ]
        self._client.upsert("m", points)

    def search(self, question: str) -> Any:
        return self._client.query_points("m", query=self._vectors[question], limit=10)


class Mem0:
    """mem0 without a model: messages are stored as they are, in Qdrant within the process."""

    packages = ("mem0ai", "qdrant-client")
    durability = "SQLite, synced at each commit"

    def __init__(self, folder: Path, vectors: dict[str, Vector]) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder)}
        from mem0 import Memory

        key = {"api_key": "not used"}
        store = {"path": str(folder / "q"), "embedding_model_dims": DIMS, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": {"provider": "openai", "config": {**key, "embedding_dims": DIMS}},
                "llm": {"provider": "openai", "config": key},
                "history_db_path": str(folder / "history.db"),
            }
        )
        model = self._memory.embedding_model
        model.embed = lambda text, *_, **__: vectors[text]
        model.embed_batch = lambda texts, *_, **__: [vectors[text] for text in texts]

    def add(self, first: int, texts: list[str]) -> None:
        messages = [{"role": "user", "content": text} for text in texts]
        self._memory.add(messages, user_id="u", infer=False)

    def search(self, question: str) -> Any:
        return self._memory.search(question, filters={"user_id": "u"}, top_k=10)


class Bare:
    """One FTS5 table, as in ``bench.plain``."""

    packages = ("apsw",)
    durability = "SQLite, synced at each commit"

    def __init__(self, folder: Path, vectors: dict[str, Vector]) -> None:
        from bench.plain import PlainSqlite

        self._table = PlainSqlite(folder / "s.db")

    def add(self, first: int, texts: list[str]) -> None:
        self._table.add_many("t", [{"role": "user", "content": text} for text in texts])

    def search(self, question: str) -> Any:
        return self._table.search(question)

    def close(self) -> None:
        self._table.size()  # moves the log into the file
        self._table.close()


class Smara:
    """Smara as a user opens it; its vectors are made before the questions, and timed apart."""

    packages = ("smara",)
    durability = "SQLite, synced at each commit"

    def __init__(self, folder: Path, vectors: dict[str, Vector]) -> None:
        import smara

        os.environ["SMARA_EMBED_IN_BACKGROUND"] = "false"
        self._memory = smara.open(str(folder / "s.db"), project="peers")

    def add(self, first: int, texts: list[str]) -> None:
        thread = f"t{first // 1000}"
        if len(texts) == 1:
            self._memory.messages.add(thread_id=thread, role="user", content=texts[0])
        else:
            messages = [{"role": "user", "content": text} for text in texts]
            self._memory.messages.add_many(thread_id=thread, messages=messages)

    def settle(self) -> None:
        self._memory.embeddings.embed_pending()

    def search(self, question: str) -> Any:
        return self._memory.search(question)

    def close(self) -> None:
        self._memory.close()


SYSTEMS: dict[str, type[Any]] = {
    "bare FTS5": Bare, "Smara": Smara, "LangGraph store": LangGraph, "Qdrant, local": Qdrant,
    "LanceDB": Lance, "Chroma": Chroma, "mem0": Mem0,
}  # fmt: skip


def measure(name: str, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Store batches, then single messages, then ask; processor and clock times of each call."""
    kind = SYSTEMS[name]
    system = kind(folder, job["vectors"])
    texts, singles, batch = job["texts"], job["singles"], job["batch"]
    times: dict[str, list[tuple[float, float]]] = {}

    def timed(what: str, call: Any, *values: Any) -> None:
        started, used = time.perf_counter(), time.process_time()
        call(*values)
        taken = (time.perf_counter() - started, time.process_time() - used)
        times.setdefault(what, []).append(taken)

    for first in range(0, len(texts) - singles, batch):
        timed("batch", system.add, first, texts[first : min(first + batch, len(texts) - singles)])
    for no in range(len(texts) - singles, len(texts)):
        timed("single", system.add, no, [texts[no]])
    if hasattr(system, "settle"):
        timed("vectors", system.settle)
    system.search(job["questions"][0])
    for question in job["questions"]:
        timed("search", system.search, question)
    if hasattr(system, "close"):
        system.close()
    status = Path("/proc/self/status")
    peak = [line.split()[1] for line in status.read_text().splitlines() if "VmHWM" in line]
    versions = ", ".join(f"{package} {version(package)}" for package in kind.packages)
    return {
        "versions": versions, "durability": kind.durability, "times": times,
        "peak_mib": int(peak[0]) // 1024,
    }  # fmt: skip


if __name__ == "__main__":
    work = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    place = Path(sys.argv[3])
    place.mkdir(parents=True)
    Path(sys.argv[4]).write_text(json.dumps(measure(sys.argv[2], work, place)), encoding="utf-8")

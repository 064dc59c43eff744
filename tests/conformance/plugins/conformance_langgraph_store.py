"""Put `SmaraStore` and `AsyncSmaraStore` in place of LangGraph's SQLite stores.

Their tests hand over ``:memory:`` or the path of an empty file. On PostgreSQL each store is a
project of its own instead.
"""

from __future__ import annotations

import os
import uuid
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.store.sqlite as theirs
import langgraph.store.sqlite.aio as theirs_aio

from smara.adapters.sdk.langgraph import AsyncSmaraStore, SmaraStore


def _place(conn_string: str) -> dict[str, Any]:
    url = os.environ["CONFORMANCE_STORE"]
    project = uuid.uuid4().hex if url else "conformance"
    return {"conn_string": url or conn_string, "project": project, "durability": "normal"}


class StandIn(SmaraStore):
    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, **given: Any) -> Any:
        with super().from_conn_string(**_place(conn_string), **given) as store:
            yield store


class AsyncStandIn(AsyncSmaraStore):
    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str, **given: Any) -> Any:
        async with super().from_conn_string(**_place(conn_string), **given) as store:
            yield store


theirs.SqliteStore = StandIn
theirs.AsyncSqliteStore = AsyncStandIn
theirs_aio.AsyncSqliteStore = AsyncStandIn

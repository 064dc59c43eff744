"""Put `SmaraSaver` in place of LangGraph's SQLite checkpointers.

On PostgreSQL each saver is a project of its own.
"""

from __future__ import annotations

import os
import uuid
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.checkpoint.sqlite as theirs
import langgraph.checkpoint.sqlite.aio as theirs_aio

from smara.adapters.sdk.langgraph import SmaraSaver


class StandIn(SmaraSaver):
    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, **given: Any) -> Any:
        url = os.environ["CONFORMANCE_STORE"]
        place = {"project": uuid.uuid4().hex, "durability": "normal"}
        with super().from_conn_string(url or conn_string, **place, **given) as saver:
            yield saver


class AsyncStandIn:
    @staticmethod
    @asynccontextmanager
    async def from_conn_string(conn_string: str) -> Any:
        with StandIn.from_conn_string(conn_string) as saver:
            yield saver


theirs.SqliteSaver = StandIn
theirs_aio.AsyncSqliteSaver = AsyncStandIn

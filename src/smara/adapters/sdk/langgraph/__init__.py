"""Let LangGraph keep its store and its checkpoints in memory; needs ``smara[langgraph]``.

`SmaraStore` and `AsyncSmaraStore` are a LangGraph ``BaseStore``, `SmaraSaver` a checkpointer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smara.adapters.sdk.langgraph.checkpointer import SmaraSaver
    from smara.adapters.sdk.langgraph.store import AsyncSmaraStore, SmaraStore

__all__ = ["AsyncSmaraStore", "SmaraSaver", "SmaraStore"]
_MODULES = {"AsyncSmaraStore": "store", "SmaraSaver": "checkpointer", "SmaraStore": "store"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from smara.errors import MissingExtraError

    try:
        module = import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("langgraph", "langchain_core"):
            raise
        raise MissingExtraError(
            "LangGraph is not installed. Install it with: pip install 'smara[langgraph]'"
        ) from error
    return getattr(module, name)

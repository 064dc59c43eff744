"""Smara: one memory for coding agents."""

TYPE_CHECKING = False  # typing itself would cost a hook as much as starting Python

if TYPE_CHECKING:
    from typing import Any

    from smara.aio import AsyncMemory, open_async
    from smara.context.models import Injection, Receipt
    from smara.core.events import HostEvent
    from smara.errors import SmaraError
    from smara.memory import Memory, copy_store
    from smara.memory import open_memory as open
    from smara.messages.models import Message, NewMessage, NewThread, Part, Pointer, Thread
    from smara.search.models import Answer, Hit
    from smara.surfaces.http.client import connect

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AsyncMemory",
    "Hit",
    "HostEvent",
    "Injection",
    "Memory",
    "Message",
    "NewMessage",
    "NewThread",
    "Part",
    "Pointer",
    "Receipt",
    "SmaraError",
    "Thread",
    "__version__",
    "connect",
    "copy_store",
    "open",
    "open_async",
]

_WHERE = {
    "AsyncMemory": ("smara.aio", "AsyncMemory"),
    "open_async": ("smara.aio", "open_async"),
    "Memory": ("smara.memory", "Memory"),
    "SmaraError": ("smara.errors", "SmaraError"),
    "open": ("smara.memory", "open_memory"),
    "copy_store": ("smara.memory", "copy_store"),
    "connect": ("smara.surfaces.http.client", "connect"),
    "Message": ("smara.messages.models", "Message"),
    "NewMessage": ("smara.messages.models", "NewMessage"),
    "NewThread": ("smara.messages.models", "NewThread"),
    "Part": ("smara.messages.models", "Part"),
    "Pointer": ("smara.messages.models", "Pointer"),
    "Thread": ("smara.messages.models", "Thread"),
    "Answer": ("smara.search.models", "Answer"),
    "Hit": ("smara.search.models", "Hit"),
    "HostEvent": ("smara.core.events", "HostEvent"),
    "Receipt": ("smara.context.models", "Receipt"),
    "Injection": ("smara.context.models", "Injection"),
}


def __getattr__(name: str) -> "Any":
    """Public names are loaded when they are first used, so that importing costs little."""
    if name not in _WHERE:
        raise AttributeError(f"module 'smara' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _WHERE[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

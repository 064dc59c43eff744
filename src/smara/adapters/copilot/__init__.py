"""Sessions of Copilot CLI."""

from smara.adapters.copilot.events import read_events

__all__ = ["read_events"]

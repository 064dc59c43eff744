"""Sessions of Pi."""

from smara.adapters.pi.session import read_session

__all__ = ["read_session"]

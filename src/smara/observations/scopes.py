"""Scopes: whose observations they are. A thread has its own, or a resource has one pool for all its
threads.
"""

from __future__ import annotations

from typing import NamedTuple

from smara.observations.models import Scope


class Place(NamedTuple):
    """Where a conversation's observations are kept."""

    scope: Scope
    resource_id: str
    thread_id: str

    @property
    def lookup_key(self) -> str:
        """The one name by which the record is found.

        >>> Place("thread", "u", "t").lookup_key, Place("resource", "u", "t").lookup_key
        ('thread:t', 'resource:u')
        """
        return (
            f"thread:{self.thread_id}" if self.scope == "thread" else f"resource:{self.resource_id}"
        )

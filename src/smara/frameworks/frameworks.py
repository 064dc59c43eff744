"""Open what an agent framework keeps in a project."""

from __future__ import annotations

from smara.database.projects import ProjectContext
from smara.frameworks.models import EntryReader
from smara.frameworks.streams import Streams
from smara.messages.messages import Messages
from smara.messages.threads import Threads


class Frameworks:
    """The records of agent frameworks in one project."""

    def __init__(self, project: ProjectContext, messages: Messages, threads: Threads) -> None:
        self._project = project
        self._messages = messages
        self._threads = threads

    def streams(self, framework: str, read: EntryReader, *, is_redacted: bool = True) -> Streams:
        """Open the sessions of a framework.

        Args:
            framework: The framework's name, for example ``claude-agent``.
            read: Reads the message of an entry.
            is_redacted: False to store entries with the secrets in them.

        Returns:
            The sessions; nothing is stored yet.
        """
        return Streams(
            self._project,
            self._messages,
            self._threads,
            framework=framework,
            read=read,
            is_redacted=is_redacted,
        )

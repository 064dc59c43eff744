"""Open what an agent framework keeps in a project."""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.projects import ProjectContext
from smara.errors import InvalidInputError
from smara.frameworks.items import FrameworkItems
from smara.frameworks.models import EntryReader, StreamReader
from smara.frameworks.states import RunStates
from smara.frameworks.store import FrameworkStore
from smara.frameworks.streams import Streams
from smara.messages.messages import Messages
from smara.messages.threads import Threads


class Frameworks:
    """The records of agent frameworks in one project."""

    def __init__(self, project: ProjectContext, messages: Messages, threads: Threads) -> None:
        self._project = project
        self._messages = messages
        self._threads = threads

    def _require_texts(self) -> None:
        """Raise where no words of conversations are kept: what frameworks keep is such words."""
        if self._project.settings.keep == "vectors":
            raise InvalidInputError(
                "This project keeps vectors and no words of conversations, so that it keeps"
                " nothing of an agent framework. Use another project, or keep text: smara init"
                " --keep text"
            )

    def streams(
        self, framework: str, read: EntryReader | StreamReader, *, is_redacted: bool = True
    ) -> Streams:
        """Open the sessions of a framework.

        Args:
            framework: The framework's name, for example ``claude-agent``.
            read: Reads the message of an entry, or stores those of many.
            is_redacted: False to store entries with the secrets in them.

        Returns:
            The sessions; nothing is stored yet.

        Raises:
            InvalidInputError: If the project keeps vectors only.
        """
        self._require_texts()
        return Streams(
            self._project,
            self._messages,
            self._threads,
            framework=framework,
            read=read,
            is_redacted=is_redacted,
        )

    def holders(self, threads: Sequence[str]) -> dict[str, set[tuple[str, str]]]:
        """Return the framework and key of the streams over some threads.

        Args:
            threads: Threads by id.

        Returns:
            The streams of each thread that has some.
        """
        store = FrameworkStore(self._project.database, self._project.scope)
        found: dict[str, set[tuple[str, str]]] = {}
        with self._project.database.read() as session:
            for thread_id, framework, key in store.holders(session, threads):
                found.setdefault(thread_id, set()).add((framework, key))
        return found

    def items(self, framework: str, *, is_redacted: bool = True) -> FrameworkItems:
        """Open the values of a framework.

        Args:
            framework: The framework's name, for example ``langgraph``.
            is_redacted: False to store values with the secrets in them.

        Returns:
            The values; nothing is stored yet.

        Raises:
            InvalidInputError: If the project keeps vectors only.
        """
        self._require_texts()
        return FrameworkItems(self._project, framework=framework, is_redacted=is_redacted)

    def states(self, framework: str) -> RunStates:
        """Open where the runs of a framework stand.

        Args:
            framework: The framework's name, for example ``langgraph``.

        Returns:
            The states; nothing is stored yet.

        Raises:
            InvalidInputError: If the project keeps vectors only.
        """
        self._require_texts()
        return RunStates(self._project, self._threads, framework=framework)

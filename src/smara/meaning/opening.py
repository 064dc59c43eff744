"""The embedders of a process: opened when first needed, each once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from smara.errors import SmaraError
from smara.meaning.models import Space
from smara.meaning.spaces import chosen_setting, is_local
from smara.models.embedding import Embedder

OpenEmbedder = Callable[[str], Embedder | None]


class Embedders:
    """Opens embedders by their setting. The own one is what this process is set to."""

    def __init__(self, setting: str, open_embedder: OpenEmbedder, is_given: bool = False) -> None:
        self.setting = setting
        self.is_given = is_given
        self._open = open_embedder
        self._lock = threading.Lock()
        self._opened: dict[str, Embedder | None] = {}

    @property
    def is_off(self) -> bool:
        return self.setting == "off"

    def own(self, spaces: Sequence[Space]) -> Embedder | None:
        """The embedder of this process in a project with these spaces; ``None`` when it is off."""
        return None if self.is_off else self.get(self.in_force(spaces))

    def in_force(self, spaces: Sequence[Space]) -> str:
        """The setting that counts in a project with these spaces; an embedder given by the program
        always does.
        """
        return self.setting if self.is_given else chosen_setting(spaces, self.setting)

    def get(self, setting: str) -> Embedder | None:
        """The embedder of a setting, opened on first use. Raises what opening raises, each time
        anew.
        """
        with self._lock:
            if setting not in self._opened:
                self._opened[setting] = self._open(setting)
            return self._opened[setting]

    def of(self, space: Space) -> Embedder | None:
        """The embedder that made a space; the one in use when the ids agree, whatever it was called
        then.
        """
        with self._lock:
            known = [
                each
                for each in self._opened.values()
                if each is not None and each.model_id == space.model_id
            ]
        return known[0] if known else self.get(space.embedder)

    def can_open(self, space: Space) -> bool:
        """Whether questions can be made vectors of a space that another setting, or another
        version, made.

        The text of a question goes nowhere that this process was not told to send it.
        """
        if self.is_off or not (space.embedder == self.setting or is_local(space.embedder)):
            return False
        try:
            embedder = self.get(space.embedder)
        except SmaraError:
            return False
        return embedder is not None and embedder.model_id == space.model_id

"""Open the embedders of a process and choose the answering space.

One space answers at a time: the old one until the new one is complete. Each embedder is opened
once, at first use. Vectors of models that are slow or paid for are cached by text; the offline
embedder is faster than a table, so its vectors are not cached.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence

from smara.core import log
from smara.core.clock import Clock
from smara.errors import DatabaseError, SmaraError
from smara.meaning.models import Space
from smara.meaning.store import VectorStore
from smara.models.embedder import Embedder, Kind

DEFAULT = "offline"
_LOCAL = ("offline", "onnx", "ollama", "given")


def choose_space(
    spaces: Sequence[Space], own_model_id: str | None, can_open: Callable[[Space], bool]
) -> tuple[Space | None, str]:
    """Return the space that answers queries, and why in a sentence.

    The own one (of the embedder that this process is set to) once it is ready; until then the
    newest other that is ready and whose embedder may be opened; else the own one, as far as it is
    filled.
    """
    own = next(
        (space for space in spaces if space.model_id == own_model_id and space.state != "retired"),
        None,
    )
    if own is not None and own.state == "ready":
        return own, f"vectors of {own.model_id}"
    others = [space for space in spaces if space.state == "ready" and space is not own]
    usable = next((space for space in others if can_open(space)), None)
    if usable is not None:
        next_model = own_model_id or "the embedder that is set"
        return usable, f"vectors of {usable.model_id}, until those of {next_model} are complete"
    if own is not None:
        return own, f"vectors of {own.model_id}, which are still being made"
    if others:
        return (
            None,
            f"not used: the vectors here are of {others[0].model_id}, and this process has "
            f"{own_model_id}",
        )
    return None, "not used: nothing has a vector yet; `smara embeddings run` makes them"


def chosen_setting(spaces: Sequence[Space], setting: str) -> str:
    """Return the setting in force: of this process, or of the project.

    A project's choice stands in the place of the default alone; a process that was told something
    else does that. And it counts only for models on this machine: no text is sent away
    because of what another wrote into a store.
    """
    if setting != DEFAULT:
        return setting
    chosen = max(
        (space for space in spaces if space.chosen_at is not None),
        key=lambda each: each.chosen_at or 0,
        default=None,
    )
    return chosen.embedder if chosen is not None and is_local(chosen.embedder) else setting


def is_local(setting: str) -> bool:
    """Return True if an embedder keeps texts on this machine.

    >>> [is_local(each) for each in ("offline", "ollama:qwen3-embedding:4b", "openai", "ollama:x@http://10.0.0.7")]
    [True, True, False, False]
    """
    return setting.partition(":")[0] in _LOCAL and "//" not in setting


KEPT_DAYS = 7


class VectorCache:
    """The cache of one space, for one use of its model."""

    def __init__(self, store: VectorStore, space: Space, use: Kind, clock: Clock) -> None:
        self._store = store
        self._space = space
        self._use = use
        self._clock = clock
        self._is_used = space.embedder != "offline"

    def find(self, texts: Sequence[str]) -> dict[str, bytes]:
        """Return the cached vectors of texts."""
        if not self._is_used or not texts:
            return {}
        keys = {self._key(text): text for text in texts}
        found = self._store.ask(self._store.cached, list(keys), self._clock.now_ms())
        return {keys[key]: vector for key, vector in found.items()}

    def put(self, vectors: Mapping[str, bytes]) -> None:
        """Cache vectors for a week; a failure is only logged."""
        if not self._is_used or not vectors:
            return
        now = self._clock.now_ms()
        rows = sorted((self._key(text), vector) for text, vector in vectors.items())
        try:
            with self._store.database.write(is_derived=True) as session:
                self._store.put_cached(
                    session,
                    self._space.no,
                    rows,
                    now_ms=now,
                    expires_at=now + KEPT_DAYS * 86_400_000,
                )
        except DatabaseError as error:
            log.event("embeddings.not_cached", error=error.code)

    def _key(self, text: str) -> bytes:
        whole = f"{self._use}\0{self._space.model_id}\0{self._space.dims}\0{text}"
        return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()


OpenEmbedder = Callable[[str], Embedder | None]


class Embedders:
    """The embedders of a process, opened by their setting."""

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
        """Return the embedder of this process; None if it is off."""
        return None if self.is_off else self.get(self.in_force(spaces))

    def in_force(self, spaces: Sequence[Space]) -> str:
        """Return the setting in force.

        An embedder given by the program always is.
        """
        return self.setting if self.is_given else chosen_setting(spaces, self.setting)

    def get(self, setting: str) -> Embedder | None:
        """Return the embedder of a setting, opened on first use.

        Raises what that raises.
        """
        with self._lock:
            if setting not in self._opened:
                self._opened[setting] = self._open(setting)
            return self._opened[setting]

    def of(self, space: Space) -> Embedder | None:
        """Return the embedder of a space, by its model id."""
        with self._lock:
            opened = [each for each in self._opened.values() if each is not None]
        of_space = (each for each in opened if each.model_id == space.model_id)
        return next(of_space, None) or self.get(space.embedder)

    def can_open(self, space: Space) -> bool:
        """Return True if this process can embed a space's queries.

        The text of a question goes nowhere that this process was not told to send it.
        """
        if self.is_off or not (space.embedder == self.setting or is_local(space.embedder)):
            return False
        try:
            return getattr(self.get(space.embedder), "model_id", None) == space.model_id
        except SmaraError:
            return False

"""Putting anchors together from the settings."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from smara.codegraph.anchors.anchors import Anchors
from smara.codegraph.anchors.store import AnchorStore
from smara.config import Settings
from smara.core.clock import Clock
from smara.core.freshness import Policy
from smara.core.scope import Scope
from smara.database.database import Database

if TYPE_CHECKING:
    from smara.codegraph.graph import CodeGraph

_KEPT_SECONDS = 1.0


def make_anchors(
    database: Database,
    scope: Scope,
    clock: Clock,
    settings: Settings,
    find_root: Callable[[], str | None],
    find_code: Callable[[], CodeGraph],
) -> Anchors:
    """The anchors of a project, by the policy of the settings."""
    policy = Policy(
        settings.freshness_drifted,
        settings.freshness_orphaned,
        settings.freshness_withhold_fraction,
    )

    unseen = _Unseen(clock, find_code)
    return Anchors(
        AnchorStore(database, scope),
        clock,
        find_root,
        policy=policy,
        most_files=settings.freshness_read_files,
        find_unseen=unseen,
    )


class _Unseen:
    """Which files the index has not seen as they are now; looked at again after a second.

    It takes a walk over the whole tree, which every search that finds an orphan would pay for.
    """

    def __init__(self, clock: Clock, find_code: Callable[[], CodeGraph]) -> None:
        self._clock = clock
        self._find_code = find_code
        self._kept: tuple[str, float, Collection[str]] | None = None

    def __call__(self, root: str) -> Collection[str]:
        now = self._clock.monotonic()
        if self._kept is None or self._kept[0] != root or now - self._kept[1] >= _KEPT_SECONDS:
            found = {path for paths in self._find_code().changed_paths(root) for path in paths}
            self._kept = (root, self._clock.monotonic(), found)
        return self._kept[2]

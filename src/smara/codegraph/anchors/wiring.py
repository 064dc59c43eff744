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


def make_anchors(
    database: Database, scope: Scope, clock: Clock, settings: Settings, find_root: Callable[[], str | None],
    find_code: Callable[[], CodeGraph],
) -> Anchors:  # fmt: skip
    """The anchors of a project, by the policy of the settings."""
    policy = Policy(settings.freshness_drifted, settings.freshness_orphaned, settings.freshness_withhold_fraction)

    def unseen(root: str) -> Collection[str]:
        return {path for paths in find_code().changed_paths(root) for path in paths}

    return Anchors(AnchorStore(database, scope), clock, find_root, policy, settings.freshness_read_files, unseen)

"""The history of a git repository as memories: reasons, breaking changes, reverts, chains of fixes.

Needs no model. Few commits say something that is worth remembering; the gate was set by reading
what came through.
"""

from __future__ import annotations

from smara.adapters.git_history.importing import import_history
from smara.adapters.git_history.models import Candidate, Change, GitReport

__all__ = ["Candidate", "Change", "GitReport", "import_history"]

"""Issues of beads: in from its JSONL, and out again as they were."""

from __future__ import annotations

from smara.adapters.beads.importing import check_beads, import_beads
from smara.adapters.beads.models import BeadsImported
from smara.adapters.beads.writing import export_beads

__all__ = ["BeadsImported", "check_beads", "export_beads", "import_beads"]

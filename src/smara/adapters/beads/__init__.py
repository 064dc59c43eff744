"""Import issues of beads from JSONL, and export them unchanged."""

from smara.adapters.beads.sync import BeadsReport, check_beads, export_beads, import_beads

__all__ = ["BeadsReport", "check_beads", "export_beads", "import_beads"]

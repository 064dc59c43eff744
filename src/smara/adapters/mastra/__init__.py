"""Stores of Mastra (libSQL or SQLite files, PostgreSQL): threads, messages, working memory,
observations.

The store is read and never written to. Its tables have changed over the years, so columns are taken
by the names that are there, and whatever is missing or damaged is told and left out.
"""

from smara.adapters.mastra.importer import MastraReport, import_mastra

__all__ = ["MastraReport", "import_mastra"]

"""Look up a memory for the pattern an agent is searching for.

An agent greps for ``refresh_?tokens?``; a memory that holds all its words may save the search. No
ranking, no vectors, no model: a few index look-ups for hot paths.
"""

from __future__ import annotations

from smara.core.startup.regex import re, regex
from smara.database.database import RecordIndex, Session
from smara.database.fulltext import record_no
from smara.errors import DeadlineError
from smara.messages.store import MessageStore
from smara.search.models import Hit
from smara.search.query import Query, analyze_query
from smara.search.records import RecordSource

LONGEST_PATTERN = 500
_MOST_ROWS = 200
_MOST_TERMS = 24
_ESCAPED_CLASS = regex(r"\\[bBdDsSwWAZz]")
_JOINT = regex(r"(?<=\w)(?:\.\?|\[[-_. ]{1,4}\]\??)(?=\w)")
"""Any of the signs that join the parts of a name."""
_KEYWORD = regex(
    r"\b(?:def|class|function|func|fn|const|let|var|type|interface|struct|enum|trait|module|async"
    r"|export|public|private|static)\s+(?=\w)"
)
"""What a definition begins with; a memory that names the code does not say it."""
_REGEX = regex(r"\(\?[:=!<iLmsux]*|\[[^\]]*\]|\{[\d,]*\}|[\^$*+?|()\\]")


def words_of(pattern: str) -> str:
    r"""The words of a regular expression or a glob, without its signs.

    >>> words_of(r"\bdef\s+refresh_?tokens?\("), words_of("src/**/auth*.ts")
    ('refresh_tokens', 'src/ /auth .ts')
    >>> words_of("retry.?budget"), words_of("class RetryBudget")
    ('retry_budget', 'RetryBudget')
    """
    plain = _ESCAPED_CLASS.sub(" ", _JOINT.sub("_", pattern[:LONGEST_PATTERN]))
    plain = re.sub(r"([\w])\?", r"\1", plain)
    return _KEYWORD.sub("", " ".join(_REGEX.sub(" ", plain).split()))


class PatternSearch:
    """Finds the memory that already answers a search."""

    def __init__(
        self,
        messages: MessageStore,
        records: RecordIndex,
        source: RecordSource,
        deadline_seconds: float,
    ) -> None:
        self._messages = messages
        self._records = records
        self._source = source
        self._deadline_seconds = deadline_seconds

    def find(self, pattern: str) -> Hit | None:
        """Return the newest trusted record with every word, or None."""
        query = analyze_query(words_of(str(pattern)))
        if all(term.is_stop for term in query.telling):
            return None
        try:
            with self._messages.database.read(self._deadline_seconds) as session:
                return self._best(session, query) if self._source.total(session) else None
        except DeadlineError:
            return None

    def _best(self, session: Session, query: Query) -> Hit | None:
        wall = None if self._messages.is_alone(session) else self._messages.scope.project_no
        wholes: dict[int, set[int]] = {}
        parts: dict[int, set[int]] = {}
        for term in query.telling[:_MOST_TERMS]:
            rows = self._records.match(
                session, term.text, wall, self._source.kind, _MOST_ROWS, term.is_prefix
            )
            found = {record_no(row) for row in rows}
            if term.kind == "part":
                parts[term.group] = parts[term.group] & found if term.group in parts else found
            else:
                wholes[term.group] = wholes.get(term.group, set()) | found
        # Of a name, the whole or all of its parts may be what the memory says.
        groups = [wholes.get(group, set()) | parts.get(group, set()) for group in {*wholes, *parts}]
        hits = self._source.load(session, sorted(set.intersection(*groups), reverse=True)[:10])
        return next((hit for hit in hits.values() if hit.is_trusted), None)

"""Write log lines to standard error, for people or as JSON."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from smara.core import log
from smara.telemetry.trace import trace_id


class JsonLines(logging.Formatter):
    """Log lines as JSON objects: time, level, event, trace, facts.

    Facts are redacted like every log line. Lines of other packages have their text as event.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"at": at, "level": record.levelname.lower()}
        name, facts = getattr(record, "smara", (log.redact_text(record.getMessage()), {}))
        line |= {"event": name, "logger": record.name}
        if trace := trace_id():
            line["trace"] = trace
        for key, value in facts.items():
            is_plain = isinstance(value, bool | int | float)
            line[f"{key}_" if key in line else key] = value if is_plain else log.redact_text(value)
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


def write_logs(form: str) -> None:
    """Write the events of this process to standard error."""
    handler = logging.StreamHandler()
    text = logging.Formatter("%(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else text)
    logging.basicConfig(level=logging.INFO, handlers=[handler])

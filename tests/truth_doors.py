"""A reader of what the doors state: search, doctor, status, why and receipts.

It shares no code with what writes them: it holds each statement against the rows of the store, the
files of the tree and the clock. A statement of a form that it does not know is as wrong as one
that these contradict.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import psycopg

DAY_MS = 86_400_000
FADES = {
    "gotcha": 60, "error_pattern": 60, "module_insight": 90, "dead_end": 90, "pattern": 120,
    "causal_dependency": 120, "workflow_recipe": 120, "preference": 365, "e2e_observation": 30,
}  # fmt: skip
BOUNDS = {"cautious": 0.80, "standard": 0.65, "confident": 0.55, "autonomous": 0.45}
_SEARCHED = ("text", "title", "path", "files", "tags", "modules", "type", "data")
_ORIGINS = {"tool": "the output of tools", "file": "files"}
_MADE_BY = {
    "agent_explicit": "noted by an agent", "observer_inferred": "learned from sessions",
    "commit_auto": "learned from commits", "user_taught": "taught by a person",
    "said": "said in a session",
}  # fmt: skip
_COPIES = re.compile(r"and (\d+) more like it")
HERE = {"tool", "file", "code"}
_SMALL = re.compile(
    r"(?:an?|about|and|are|as|at|be|by|did|do|does|for|from|how|i|in|is|it|of|on|or|our|the|their|to|was|we"
    r"|were|what|when|where|which|who|why|will|with)"
)


def rows_of(store: Path | str, statement: str, *values: Any) -> list[dict[str, Any]]:
    """Return rows by the names of their columns.

    By the library that has the store open here: another one would drop its locks.
    """
    if isinstance(store, str):
        address, _, schema = store.partition("&schema=")
        with psycopg.connect(address, options=f"-csearch_path={schema}") as connection:
            rows = connection.execute(statement.replace("?", "%s"), values)
            names = [each.name for each in rows.description or ()]
            return [dict(zip(names, row, strict=True)) for row in rows]
    raw = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        cursor = raw.execute(statement, values)
        names = [each[0] for each in cursor.get_description()]
        return [dict(zip(names, row, strict=True)) for row in cursor]
    except apsw.ExecutionCompleteError:  # there is no row, and so no description
        return []
    finally:
        raw.close()


def day(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"


def local_minute(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000).astimezone():%Y-%m-%d %H:%M}"


def minute(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def stands_in(word: str, text: str) -> bool:
    """Whether a text holds a word, in whatever form: all but its ending, signs apart."""
    plain, where = (re.sub(r"[\W_]", "", each.casefold()) for each in (word, text))
    return plain[: max(4, len(plain) - 3)] in where


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def is_near(one: float, other: float, by: float = 0.011) -> bool:
    return abs(one - other) <= by


@dataclass(slots=True)
class Doors:
    """The evidence: the store's file, the tree, what its files held, and the time."""

    store: Path
    tree: Path
    now_ms: int
    told: str = ""
    """What a new session is told."""
    held: dict[str, str] = field(default_factory=dict)
    """What files of code held when they were indexed and memories were tied to them."""

    def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        return rows_of(self.store, statement, *values)

    def number(self, statement: str, *values: Any) -> int:
        return int(next(iter(self.rows(statement, *values)[0].values())))

    def memory(self, **named: str) -> dict[str, Any]:
        [(column, value)] = named.items()
        return self.rows(f"SELECT * FROM memories WHERE {column} = ?", value)[0]

    def worth(self, row: dict[str, Any]) -> float:
        """What is left of a memory's confidence, by its age alone."""
        half_life = row["half_life_days"] or FADES.get(row["type"])
        since = row["last_verified_use_at"] or row["seen_at"] or row["created_at"]
        days = max(0, self.now_ms - since) / DAY_MS
        is_lasting = row["is_pinned"] or not half_life
        return float(row["confidence"]) * (1 if is_lasting else 0.5 ** (days / half_life))

    # search --explain

    def false_of_search(self, query: str, text: str) -> list[str]:
        """Return what is false in an explained answer."""
        head, _, rest = text.partition("understood: ")
        hits = [each for each in re.split(r"\n\n", head.strip("\n")) if each.strip()]
        found = [line for each in hits for line in self._hit(query, each)]
        return [*found, *self._trace(query, f"understood: {rest}", hits)]

    def _hit(self, query: str, text: str) -> Iterator[str]:
        lines = text.splitlines()
        head, why, score = lines[0], lines[-2], lines[-1]
        record = self._record(head)
        if record is None or not (why.startswith("   why: ") and score.startswith("   score: ")):
            yield text
            return
        shown = " ".join(" ".join(lines[1:-2]).split()).strip("…")
        if shown not in " ".join(record["text"].split()):
            yield f"{head}: {shown}"
        for reason in why[8:].split("; "):
            if not self._is_reason(reason, record, score, query):
                yield f"{head}: {reason}"
        for part in re.split(
            r", (?!not )(?=rank by|among |\d+%|meaning |from |[^,]+ ×)", score[10:]
        ):
            if not self._is_part(part, record, query, head.endswith(" · weak match")):
                yield f"{head}: {part}"

    def _record(self, head: str) -> dict[str, Any] | None:
        """The record that the head of a hit names, if all that it says of it is so."""
        parts = head.partition(". ")[2].removesuffix(" · weak match").split(" · ")
        copies = _COPIES.fullmatch(parts[-1])
        if copies is not None:
            parts.pop()
        of_task = [parts.pop(place) for place, each in enumerate(parts) if each.startswith("task ")]
        at = parts[-1]
        place = parts[-2]
        if parts[0] in ("user", "assistant", "tool"):
            thread, _, seq = place.rpartition(":")
            rows = self.rows(
                "SELECT m.*, m.raw_content AS text FROM messages m JOIN threads t"
                " ON t.no = m.thread_no WHERE t.id = ? AND m.seq BETWEEN ? AND ?",
                thread, int(seq) - 2, int(seq) + 2,
            )  # fmt: skip
            own = next(each for each in rows if each["seq"] == int(seq))
            is_so = own["role"] == parts[0] and local_minute(own["created_at"]) == at
            beside = {each["seq"] - int(seq): each["text"] for each in rows}
            return {**own, "is": "message", "beside": beside} if is_so else None
        if parts[0] == "memory":
            row = self.memory(id=place)
            is_so = (
                row["type"] == parts[1] and local_minute(row["seen_at"] or row["created_at"]) == at
            )
            is_so &= ("unconfirmed" in parts) == (not row["is_verified"])
            return {**row, "is": "memory", "text": row["content"]} if is_so else None
        if parts[0] == "code":
            path, _, span = place.rpartition(":")
            first, _, last = span.partition("-")
            lines = (self.tree / path).read_text().splitlines()[int(first) - 1 : int(last or first)]
            return {"is": "code", "text": "\n".join(lines), "path": path, "created_at": 0}
        if parts[0] == "task":
            [row] = self.rows("SELECT * FROM tasks WHERE short_id = ?", parts[-3])
            text = "\n".join(filter(None, (row["title"], row["description"])))
            is_so = row["status"] == place and of_task == [f"task {row['short_id']}"]
            is_so &= local_minute(row["created_at"]) == at
            return {**row, "is": "task", "text": text} if is_so else None
        return None

    def _is_reason(self, reason: str, record: dict[str, Any], score: str, query: str) -> bool:
        word = r"(?P<word>.+?)(?: \(contains .+\))?(?: of (?P<whole>.+?))?"
        places = {
            "the text": record["text"], "the code": record["text"],
            "the title": record.get("title") or "", "the path": record.get("path", ""),
            "its files": " ".join(json.loads(record.get("files") or "[]")),
            "what is noted with it": " ".join(str(record.get(name, "")) for name in _SEARCHED),
        }  # fmt: skip
        if reason == "close in meaning":
            return record["is"] != "code" and "meaning 0." in score
        if reason == "recent":
            return self.now_ms - record["created_at"] <= 31 * DAY_MS
        if reason == "the only message with it":
            where = "SELECT count(*) FROM messages WHERE raw_content LIKE ?"
            return self.number(where, f"%{query.strip()}%") == 1
        if match := re.fullmatch(r"phrase '(.+)'", reason):
            return match[1].lower() in " ".join(record["text"].lower().split())
        if match := re.fullmatch(
            r"from (?:around )?(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)", reason
        ):
            return match[1] <= day(record["created_at"]) <= match[2]
        if match := re.fullmatch(rf"matches {word}(?: \(name\))?", reason):
            return record["is"] == "message" and stands_in(match["word"], record["text"])
        if match := re.fullmatch(
            rf"near: {word} (?P<far>in the message|two messages) (before|after)", reason
        ):
            steps = (1 + (match["far"] == "two messages")) * (-1 if reason[-6:] == "before" else 1)
            return stands_in(match["word"], record["beside"].get(steps, ""))
        if match := re.fullmatch(rf"defines {word}", reason):
            return bool(re.search(rf"(?:def|class) {re.escape(match['word'])}\b", record["text"]))
        if match := re.fullmatch(rf"(?:a form of )?{word} in (?P<place>[a-z ]+)", reason):
            is_asked = stands_in(match["whole"] or match["word"], query)
            return is_asked and stands_in(match["word"], places.get(match["place"], ""))
        return False

    def _is_part(
        self,
        part: str,
        record: dict[str, Any],
        query: str,
        is_weak: bool,
    ) -> bool:
        asked = [
            each for each in re.findall(r"[\w./-]+", query) if not _SMALL.fullmatch(each.lower())
        ]
        if match := re.fullmatch(r"relevance (\S+?): words (\S+)", part):
            return is_weak == (float(match[1]) < 0.5) and float(match[2]) >= 0
        if match := re.fullmatch(
            r"(\d+)% of the query's words by weight in it( or beside it)?", part
        ):
            if bool(match[2]) != (record["is"] == "message"):
                return False
            text = " ".join(
                [str(record.get(name, "")) for name in _SEARCHED]
                + list(record.get("beside", {}).values())
            )
            held = [each for each in asked if stands_in(each, text)]
            parts = [each for word in asked for each in re.split(r"[\W_]+", word)]
            begun = [each.lower()[: max(4, len(each) - 3)] for each in parts if each]
            is_any = any(re.search(rf"(?<![a-z]){re.escape(each)}", text.lower()) for each in begun)
            if match[1] == "100":
                return len(held) == len(asked)
            return (int(match[1]) > 0) == is_any and len(held) < len(asked)
        if re.fullmatch(r"\d+% of the query stands nowhere", part):
            every = " ".join(
                each["text"]
                for table, column in (("messages", "raw_content"), ("memories", "content"))
                for each in self.rows(f"SELECT {column} AS text FROM {table}")
            )
            return any(not stands_in(each, every) for each in asked)
        if match := re.fullmatch(r"meaning (-?\d\.\d\d)", part):
            return -1 <= float(match[1]) <= 1 and self.number("SELECT count(*) FROM vectors") > 0
        if re.fullmatch(r"rank by \d\.\d\d", part):
            return True  # what the order is made of; nothing else is said by it
        if match := re.fullmatch(r"among messages by ((?:[a-z ]+ [+-]\d+\.\d(?:; |$))+)", part):
            is_answer = record["is"] == "message" and record["role"] != "user"
            return record["is"] == "message" and (is_answer or "answer" not in match[1])
        name, _, factor = part.rpartition(" × ")
        return bool(name) and self._is_factor(name, float(factor), record)

    def _is_factor(self, name: str, factor: float, record: dict[str, Any]) -> bool:
        taint = set(str(record.get("taint") or "").split())
        is_memory = record["is"] == "memory"
        checks: dict[str, Callable[[], bool]] = {
            "confidence": lambda: is_memory and is_near(factor, max(0.3, self.worth(record))),
            "unconfirmed": lambda: is_memory and not record["is_verified"] and not taint,
            "from outside, not confirmed by a person": lambda: bool(taint - HERE),
            "from tools here, not confirmed by a person": lambda: bool(taint) and taint <= HERE,
            "the code itself": lambda: record["is"] == "code",
            "asks the same": lambda: record["text"].rstrip().endswith("?"),
            "age": lambda: 1 <= factor <= 1.03,
        }
        if name.startswith("source "):
            return is_memory and record["source"] == name[7:]
        return name in checks and checks[name]()

    def _trace(self, query: str, text: str, hits: list[str]) -> Iterator[str]:
        has_vectors = self.number("SELECT count(*) FROM vectors") > 0
        messages = sum(bool(re.match(r"\d+\. (?:user|assistant|tool) ", each)) for each in hits)
        for line in filter(None, text.splitlines()):
            is_so = False
            if match := re.fullmatch(r"understood: \w+ question(.*)", line):
                facts = re.findall(r"; (?:names|paths|phrases) ([^;]+)", match[1])
                bare = re.sub(
                    r"; (?:names|paths|phrases) [^;]+|; from around [\d.-]+", "", match[1]
                )
                stated = [each.strip("' ") for fact in facts for each in fact.split(", ")]
                is_so = not bare and all(each.lower() in query.lower() for each in stated)
            elif match := re.fullmatch(
                r"words: \d+ terms, [\d,]+ postings, ([\d,]+) rows of messages, ([\d,]+) other "
                r"records", line,
            ):  # fmt: skip
                rows, others = (int(each.replace(",", "")) for each in match.groups())
                is_so = (
                    has_vectors or messages <= rows <= self.number("SELECT count(*) FROM messages")
                ) and (has_vectors or others >= len(hits) - messages)
            elif match := re.fullmatch(r"meaning: (.+)", line):
                is_so = {
                    "not used: nothing has a vector yet; `smara embeddings run` makes them": (
                        not has_vectors
                    ),
                    "not used: the query is one name": " " not in query.strip(),
                    "vectors of wordllama-l2-256": has_vectors,
                }.get(match[1], False)
            elif line == "scores: words alone":
                is_so = "meaning: not used" in text
            elif re.fullmatch(
                r"scores: words, and \d\.\d\d for each \d\.\d\d of cosine above -?\d\.\d\d", line
            ):
                is_so = "meaning: vectors" in text
            elif match := re.fullmatch(r"(\d+) match(?:es)?\.", line):
                copies = sum(int(each) for each in _COPIES.findall("\n".join(hits)))
                shown = len(hits) + copies
                is_so = int(match[1]) == shown or (int(match[1]) > len(hits) >= 10)
            else:
                is_so = line == "reranked: by search's own features"
            if not is_so:
                yield line

    # status and doctor

    def false_of_status(self, text: str) -> list[str]:
        """Return the lines of `smara status` that the store contradicts."""

        def tasks(where: str) -> str:
            return f"{self.number(f'SELECT count(*) FROM tasks WHERE {where}'):,}"

        blocked = (
            "status = 'open' AND no IN (SELECT d.task_no FROM task_dependencies d"
            " JOIN tasks b ON b.no = d.depends_on_no WHERE b.status <> 'closed')"
        )
        closed, running = "status = 'closed'", "status = 'in_progress'"
        waits = self.number(
            "SELECT count(*) FROM memories WHERE needs_review = 1 AND deprecated_at IS NULL"
        )
        notes = self.number("SELECT count(*) FROM observations")
        count = {
            name: f"{self.number(f'SELECT {what}'):,}"
            for name, what in {
                "threads": "count(*) FROM threads", "messages": "count(*) FROM messages",
                "tokens": "coalesce(sum(token_count), 0) FROM messages",
                "resources": "count(DISTINCT resource_id) FROM threads",
                "active": "count(*) FROM observations WHERE state = 'active'",
                "in force": "count(*) FROM memories WHERE deprecated_at IS NULL",
            }.items()
        }  # fmt: skip
        ready = f"status = 'open' AND NOT ({blocked})"
        expected = {
            "project": self.rows("SELECT id FROM projects")[0]["id"],
            **{name: count[name] for name in ("threads", "messages", "tokens", "resources")},
            "tasks": f"{tasks(f'NOT {closed}')} unfinished ({tasks(running)} in progress, "
            f"{tasks(ready)} ready, {tasks(blocked)} blocked), {tasks(closed)} closed",
            "observations": f"{notes:,} ({count['active']} active), 0 reflections",
            "memories": f"{count['in force']}"
            + (f", {waits:,} of them to review" if waits else ""),
            **self._currency(),
            "models": "offline",
            "store": str(self.store),
            "durability": "normal",
        }
        sizes = {"size": self.store, "write-ahead log": Path(f"{self.store}-wal")}
        found = []
        head, _, kept = text.partition("\nkind\t")
        found += self._false_of_kept(kept.splitlines()[1:])
        rules = [row.split("\t")[-2] for row in kept.splitlines()[1:] if row.count("\t") > 2]
        limited = sum(rule != "for ever" for rule in rules)
        expected["retention"] = f"{limited} of {len(rules)} kinds have a limit"
        text = head.rstrip("\n")
        for line in text.splitlines():
            name, _, said = line.partition("\t")
            if name == "engine":
                is_so = said.startswith("sqlite 3.")
            elif name in sizes:
                number, unit = said.split()
                scale = 1024 ** ("B", "KiB", "MiB", "GiB").index(unit)
                is_so = is_near(float(number), sizes[name].stat().st_size / scale, 0.06)
            else:
                is_so = expected.get(name) == said
            if not is_so:
                found.append(line)
        missing = [name for name in expected if f"\n{name}\t" not in f"\n{text}"]
        return found + [f"nothing is said of {name}" for name in missing]

    def _currency(self) -> dict[str, str]:
        """How far code, history and events are behind: the disk and git beside the rows."""
        indexed = {each["path"] for each in self.rows("SELECT path FROM code_files")}
        there = {
            str(path.relative_to(self.tree)): path.read_text()
            for path in self.tree.rglob("*.py")
            if ".git" not in path.parts
        }
        late = sum(there.get(each) != self.held.get(each) for each in there.keys() | self.held)
        is_indexed = bool(self.rows("SELECT no FROM code_trees"))
        code = f"{_counted(len(self.held), 'file')} indexed, "
        code += f"{_counted(late, 'file')} behind" if late else "current"
        expected = {"code": code if is_indexed else "not indexed; `smara code index` does it"}
        if is_indexed and indexed != self.held.keys():
            expected["code"] = f"something of {sorted(indexed)}, which are not those held"
        here = Path.cwd()
        if any((each / ".git").exists() for each in (here, *here.parents)):
            made = subprocess.run(
                ["git", "log", "--format=%H"], cwd=here, capture_output=True, text=True, check=False
            )
            read = {each["sha"] for each in self.rows("SELECT sha FROM commits")}
            unread = len(set(made.stdout.split()) - read)
            expected["history"] = f"{_counted(len(read), 'commit')}, " + (
                f"{unread:,} behind" if unread else "current"
            )
        spool = [each for each in Path(f"{self.store}-spool").glob("*") if each.is_file()]
        if spool:
            waits = _counted(len(spool), "event")
            expected["waiting"] = f"{waits}; `smara worker --once` does them"
        return expected

    def _false_of_kept(self, lines: Sequence[str]) -> list[str]:
        """Return the lines about what is kept that the store contradicts."""
        tables = {
            "messages": ("messages", "1 = 1", "for ever"),
            "closed tasks": ("tasks", "status = 'closed'", "for ever"),
            "model calls": ("model_calls", "1 = 1", "365 days"),
            "condensed observations": ("observations", "state = 'reflected'", "for ever"),
            "retired memories": ("memories", "deprecated_at IS NOT NULL", "for ever"),
            "errors": ("observer_error_patterns", "1 = 1", "730 days"),
            "erasures": ("erasures", "1 = 1", "for ever"),
        }
        rules = {
            "tool outputs": "for ever", "page versions": "365 days, 64 MiB",
            "sessions": "730 days", "receipts": "180 days", "leases": "30 days",
            "events": "30 days",
        }  # fmt: skip
        found = [f"nothing is said of {name}" for name in (*tables, *rules)
                 if not any(line.startswith(f"{name}\t") for line in lines)]  # fmt: skip
        for line in lines:
            name, rows, _, oldest, rule, _ = (*line.split("\t"), "", "", "", "", "")[:6]
            if name in tables:
                table, where, expected = tables[name]
                count = self.number(f"SELECT count(*) FROM {table} WHERE {where}")
                is_so = (rows, rule) == (f"{count:,}", expected)
            else:
                is_so = rules.get(name) == rule and rows.replace(",", "").isdigit()
            # What is not there cannot be old.
            if not is_so or (rows == "0") == bool(oldest):
                found.append(line)
        return found

    def false_of_doctor(self, text: str) -> list[str]:
        """Return the findings of `smara doctor` that the machine contradicts."""
        jobs = self.number("SELECT count(*) FROM intake_jobs")
        spool = [each for each in Path(f"{self.store}-spool").glob("*") if each.is_file()]
        wal = Path(f"{self.store}-wal")
        log = wal.stat().st_size if wal.exists() else 0
        free = shutil.disk_usage(self.store.parent).free // 2**20
        version = self.number("SELECT max(number) FROM migrations")
        newest = max(
            int(each.name[:4])
            for each in (Path(__file__).parents[1] / "src/smara/database/migrations").rglob(
                "[0-9]*"
            )
            if each.name[:4].isdigit()
        )
        indexed = self.number("SELECT count(*) FROM message_index_docsize")
        state = self.rows("SELECT * FROM memory_state") or [{"active": 0, "to_review": 0}]
        active = "SELECT count(*) FROM memories WHERE deprecated_at IS NULL"
        checks: dict[str, Callable[[str], bool]] = {
            "sqlite": lambda said: bool(
                re.fullmatch(r"SQLite 3\.[\d.]+ is free of the WAL-reset bug\.", said)
            ),
            "permissions": lambda said: (
                said == "Only you can read the store." and not self.store.stat().st_mode & 0o077
            ),
            "file system": lambda said: said == "The store is on a local disk.",
            "disk": lambda said: abs(int(re.sub(r"\D", "", said)) - free) < 2_048,
            "write-ahead log": lambda said: said == f"{log // 1024:,} KiB.",
            "schema": lambda said: (
                said == f"The store has schema {version}, the newest." and version == newest
            ),
            "integrity": lambda said: (
                said == "Every page of the store is sound."
                and self.rows("PRAGMA quick_check")[0]["quick_check"] == "ok"
            ),
            "search index": lambda said: (
                said == "It agrees with the messages."
                and indexed >= self.number("SELECT count(*) FROM messages WHERE raw_content <> ''")
            ),
            "tasks": lambda said: said == "Their totals agree with the tasks.",
            "memories": lambda said: (
                said == "Their totals agree with the memories."
                and state[0]["active"] == self.number(active)
                and state[0]["to_review"] == self.number(f"{active} AND needs_review = 1")
            ),
            "vectors": lambda said: said == "They agree with what they were made of.",
            "spool": lambda said: (
                said == ("1 event waits." if len(spool) == 1 else f"{len(spool):,} events wait.")
            ),
            "queue": lambda said: said == f"{jobs:,} jobs of sessions wait for their time.",
        }
        found = []
        for line in text.splitlines()[1:]:
            level, check, said, *_ = [*line.split("\t"), "", ""]
            is_known = check in checks and level == "ok"
            if not is_known or not checks[check](said):
                found.append(line)
        return found

    # memories why

    def false_of_why(self, text: str) -> list[str]:
        """Return what is false in an account of a memory."""
        lines = text.splitlines()
        match = re.fullmatch(r"(m-\w+)  (\w+)  (.+)", lines[0])
        if match is None:
            return [lines[0]]
        row = self.memory(short_id=match[1])
        said = match[3].rstrip("…")
        found = [] if row["type"] == match[2] and row["content"].startswith(said) else [lines[0]]
        section, value = "", float(row["confidence"])
        total = -1.0
        for line in filter(str.strip, lines[1:]):
            if not line.startswith(" "):
                section, _, fact = line.partition(": ")
                total = float(fact) if section == "Confidence now" else total
                is_so = self._is_section(section, fact, row, lines)
            elif section == "Confidence now":
                is_so, value = self._is_step(line.strip(), row, value)
            else:
                is_so = self._is_told(section, line.strip(), row)
            found += [] if is_so else [line]
        return found + ([] if is_near(total, value) else [f"Confidence now: {total}"])

    def _tier(self, row: dict[str, Any]) -> str:
        taint = set(row["taint"].split())
        if row["is_verified"]:
            return "confirmed"
        return "unconfirmed" if not taint else "observed" if taint <= HERE else "quarantined"

    def _is_section(self, section: str, fact: str, row: dict[str, Any], lines: list[str]) -> bool:
        stale = any(line.startswith("  layer ") for line in lines)
        return {
            "Where it came from": not fact,
            "What happened": not fact,
            "What took the place of what": not fact,
            "Trust": fact == self._tier(row),
            "Confidence now": bool(re.fullmatch(r"\d\.\d\d", fact)),
            "Stale": fact == ("yes" if stale else "no") and stale == self._is_stale(row),
            "Code": fact in ("fresh", "changed", "orphaned"),
        }.get(section, False)

    def _is_stale(self, row: dict[str, Any]) -> bool:
        half_life = row["half_life_days"] or FADES.get(row["type"])
        since = row["last_verified_use_at"] or row["seen_at"] or row["created_at"]
        is_old = bool(half_life) and (self.now_ms - since) / DAY_MS > half_life
        return row["stale_at"] is not None or (is_old and not row["is_pinned"])

    def _is_step(self, line: str, row: dict[str, Any], value: float) -> tuple[bool, float]:
        match = re.fullmatch(r"× (\d\.\d\d) = (\d\.\d\d)  (.+)", line)
        if match is None:
            return False, value
        factor, result, text = float(match[1]), float(match[2]), match[3]
        is_so = is_near(value * factor, result, 0.012)
        fades = row["half_life_days"] or FADES.get(row["type"])
        if text == f"stored confidence, type {row['type']}":
            return factor == 1 and is_near(result, row["confidence"]), result
        if text == "pinned: it does not fade":
            return is_so and bool(row["is_pinned"]), result
        if text.startswith("it does not fade: "):
            return is_so and not fades and factor == 1, result
        age = re.fullmatch(
            r"(\d+) days? since (it was made|it was seen|its last verified use),"
            r" half-life (\d+) days",
            text,
        )
        if age is None:
            return False, result
        column = {"it was made": "created_at", "it was seen": "seen_at"}.get(
            age[2], "last_verified_use_at"
        )
        days = max(0, self.now_ms - (row[column] or 0)) / DAY_MS
        is_so &= int(age[1]) == int(days) and int(age[3]) == fades
        return is_so and is_near(factor, 0.5 ** (days / int(age[3]))), result

    def _is_told(self, section: str, line: str, row: dict[str, Any]) -> bool:
        evidence = [
            " ".join(str(each.get("quote")).split()) for each in json.loads(row["evidence"])
        ]
        if section == "Where it came from":
            if line.startswith("quotation: "):
                return any(each.startswith(line[11:].rstrip("…")) for each in evidence)
            made = f"{_MADE_BY.get(row['source'])} ({row['created_by']})"
            origin = f"{made}, {minute(row['created_at'])}"
            origin += f", seen {minute(row['seen_at'])}" if row["seen_at"] else ""
            origin += f", session {row['session_id']}" if row["session_id"] else ""
            return line == origin + (f", commit {row['commit_sha']}" if row["commit_sha"] else "")
        if section == "Trust":
            return self._is_trust(line, row)
        if section == "Stale":
            half_life = row["half_life_days"] or FADES.get(row["type"], 0)
            since = row["last_verified_use_at"] or row["seen_at"] or row["created_at"]
            days = (self.now_ms - since) // DAY_MS
            return line in (
                f"layer 2: not used for {days} days, longer than its half-life of {half_life:g}",
                f"layer 1: marked as stale: {row['stale_because'] or 'no reason given'}",
            )
        if section == "Code":
            path, _, verdict = line.partition(" is ")
            held = self.held.get(path)
            return (verdict == "as it was" and held == (self.tree / path).read_text()) or (
                verdict.startswith("gone") and not (self.tree / path).exists()
            )
        if section == "What happened":
            events = self.rows(
                "SELECT * FROM memory_events e JOIN memories m ON m.no = e.memory_no"
                " WHERE m.short_id = ?", row["short_id"],
            )  # fmt: skip
            stated = [
                f"{minute(each['at'])} {each['kind'].replace('_', ' ')} by {each['actor']}"
                f" ({each['acted_as']})" for each in events
            ]  # fmt: skip
            return any(line.startswith(each) for each in stated)
        return False

    def _is_trust(self, line: str, row: dict[str, Any]) -> bool:
        taint, by = ", ".join(row["taint"].split()), row["verified_by"] or "a person"
        reasons = [f"to be reviewed: {each}" for each in json.loads(row["review_reasons"] or "[]")]
        told = re.fullmatch(
            r"told to agents: (no|as an instruction|as something known): (.+)", line
        )
        if told is None:
            return line in (
                *(reasons if row["needs_review"] else ()),
                *((f"taught by {by}",) if row["source"] == "user_taught" else ()),
                *((f"verified by {by}",) if row["is_verified"] else ()),
                *(
                    {
                        "observed": (f"it comes from {_ORIGINS.get(taint)} on this machine",),
                        "unconfirmed": (
                            f"{_MADE_BY.get(row['source'])}; no person has confirmed it yet",
                        ),
                    }.get(self._tier(row), ())
                ),
            )
        # What is said to be told stands in what a new session is told, and nothing else does.
        is_in_pack = f"[Memory #{row['short_id']}" in self.told
        if is_in_pack != (told[1] != "no"):
            return False
        if low := re.fullmatch(
            r"it is (\d+)% sure, and only what is surer than (\d+)% is told here"
            r" \(trust level (\w+)\)",
            told[2],
        ):
            worth, bound = int(low[1]) / 100, int(low[2]) / 100
            return is_near(worth, self.worth(row)) and worth <= bound == BOUNDS[low[3]]
        return {
            "a person taught or verified it": bool(row["is_verified"]),
            "unconfirmed, but a fact that is told with its evidence quoted": (
                not row["is_verified"] and bool(json.loads(row["evidence"]))
            ),
            "it is told only once a person confirms it": not row["is_verified"],
            "what it speaks of has gone or it was marked as stale": row["stale_at"] is not None,
        }.get(told[2], False)

    # receipts show

    def false_of_receipt(self, text: str) -> list[str]:
        """Return what is false in a receipt's account."""
        facts, _, rest = text.partition("\nItems\n")
        items, _, said = rest.partition("\nText\n")
        stated = dict(line.split("\t", 1) for line in facts.splitlines() if "\t" in line)
        [row] = self.rows("SELECT * FROM moment_receipts WHERE id LIKE ?", f"{stated['receipt']}%")
        used = {None: "no sign of it"}.get(row["used_at"], f"yes ({row['used_how']})")
        expected = {
            "receipt": stated["receipt"],
            "when": minute(row["made_at"]),
            "point": {"before_tool": "before a tool", "after_tool": "after a tool"}.get(
                row["point"], row["point"]
            ),
            "session": row["session_id"],
            "agent": row["agent"] or "",
            "source": row["source"] or "",
            "arm": row["arm"] or "",
            "injected": "yes" if row["is_said"] else "no",
            "delivered": "not yet known" if row["delivered_at"] is None else stated["delivered"],
            "reached": "not known" if row["reached_at"] is None else stated["reached"],
            "used": used,
            "saved": stated["saved"] if row["used_at"] else "",
        }
        cost = rf"[\d,]+ tokens by estimate, {len(row['text']):,} characters, \d+ ms"
        found = [
            f"{name}: {fact}"
            for name, fact in stated.items()
            if not (re.fullmatch(cost, fact) if name == "cost" else expected.get(name) == fact)
        ]
        if said.strip() != row["text"].strip():
            found.append(said)
        for name, reason in re.findall(r"^  \w+ +(.+)\n +(.+); [\d,]+ tokens", items, re.M):
            bare = name.rstrip("…")
            is_so = {
                "the same command failed here before": f"`{bare}" in said and "failed" in said,
                "the file was not found here before": f"`{bare}" in said and "not found" in said,
                "it is about the file that is changed": "before" in stated["point"]
                and bare in said,
                "it is about the file that was opened": "after" in stated["point"] and bare in said,
                "it answers what is searched for": bare in said,
                "the same error came here before": "This error came here before" in said,
            }.get(reason, False)
            found += [] if is_so else [f"{name}: {reason}"]
        return found

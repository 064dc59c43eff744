"""The evaluation sets, read from the folder named by ``SMARA_EVAL_DATA``.

Every set becomes the same three things: haystacks (threads of turns), questions, and
the keys of the turns or threads that hold the answer. Nothing is copied into the
project; what a figure is of is said by ``Dataset.part``: the folder that was read, how many
questions it holds, and the beginning of their file's SHA-256, which tells one part of a public
set from another.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

VARIABLE = "SMARA_EVAL_DATA"
HOW_TO_GET = f"""No evaluation data: set {VARIABLE} to a folder with these gzip-compressed JSON lines files.

  locomo/conversations.jsonl.gz        github.com/snap-research/locomo, data/locomo10.json, one conversation a line
  longmemeval_s/questions.jsonl.gz     huggingface.co/datasets/xiaowu0162/longmemeval-cleaned, longmemeval_s,
                                       one question a line without its haystack_sessions
  longmemeval_s/sessions.jsonl.gz      the same file's sessions: {{"session_id": ..., "turns": [...]}}
  longmemeval_s2/                      a second part of the same set, in the same two files
  longmemeval_union/sessions.jsonl.gz  the sessions of longmemeval_oracle, each once, with its date
  cosqa/queries.jsonl.gz               github.com/microsoft/CodeXGLUE, code search of web queries:
  cosqa/functions.jsonl.gz             {{"id", "query", "code_id"}} and {{"id", "code"}}
"""  # noqa: E501

Level = Literal["message", "thread"]
LONGMEMEVAL = {
    "longmemeval_s": "LongMemEval_S",
    "longmemeval_s2": "LongMemEval_S, second part",
}
"""The parts of LongMemEval_S by folder."""


class DataMissing(Exception):
    """The evaluation data are not on this machine; the message says how to get them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message to remember; ``key`` is what the gold answers name."""

    key: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Thread:
    """One session of a conversation, with the time at which it took place."""

    key: str
    started_at: int
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, where, and the keys that answer it."""

    key: str
    text: str
    haystack: str
    gold: frozenset[str]
    kind: str
    asked_at: int | None = None
    """When it is asked, where the set says so: "last week" depends on it."""


@dataclass(frozen=True)
class Dataset:
    """A named set; ``haystack`` gives the threads of one store, built only when asked for."""

    name: str
    part: str
    level: Level
    questions: tuple[Question, ...]
    haystack: Callable[[str], tuple[Thread, ...]]
    is_large: bool = False
    """Whether it takes so long that it is measured only if it is named."""

    def by_haystack(self) -> Iterator[tuple[str, list[Question]]]:
        groups: dict[str, list[Question]] = {}
        for question in self.questions:
            groups.setdefault(question.haystack, []).append(question)
        yield from groups.items()


def data_folder() -> Path:
    """The folder of the evaluation data, or ``DataMissing`` with the way to get them."""
    named = os.environ.get(VARIABLE)
    if not named or not Path(named).is_dir():
        raise DataMissing(HOW_TO_GET)
    return Path(named)


def load_all() -> list[Dataset]:
    """The sets of conversations, by thread and by message, and one of code."""
    folder = data_folder()
    chats = [load_longmemeval(folder, name) for name in LONGMEMEVAL]
    return [
        load_locomo(folder),
        *chats,
        *(load_longmemeval(folder, name, "message") for name in LONGMEMEVAL),
        load_union(folder),
        load_large(folder),
        load_cosqa(folder),
    ]


def _part(questions: Path, count: int, more: str = "") -> str:
    """Say which file the questions were read from, and tell it from another of that name."""
    digest = hashlib.sha256(questions.read_bytes()).hexdigest()[:12]
    return f"{questions.parent}: {count} questions{more}; sha256 {digest}"


def _read(path: Path) -> Iterator[Any]:
    if not path.exists():
        raise DataMissing(f"{path} is missing.\n\n{HOW_TO_GET}")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def load_locomo(folder: Path) -> Dataset:
    """LoCoMo, turn level: one store a conversation, one thread a session, gold = the evidence
    turns.
    """
    haystacks: dict[str, tuple[Thread, ...]] = {}
    questions: list[Question] = []
    for record in _read(folder / "locomo" / "conversations.jsonl.gz"):
        name = record["sample_id"]
        haystacks[name] = tuple(_locomo_threads(record["conversation"]))
        keys = {turn.key for thread in haystacks[name] for turn in thread.turns}
        for number, qa in enumerate(record["qa"]):
            # An evidence entry may hold several ids ("D8:6; D9:17") or one that does not exist.
            named = re.findall(r"D\d+:\d+", " ".join(qa.get("evidence") or ()))
            gold = frozenset(key for key in named if key in keys)
            if gold:
                questions.append(
                    Question(
                        f"{name}/{number}",
                        qa["question"],
                        name,
                        gold=gold,
                        kind=f"category {qa['category']}",
                    )
                )
    part = _part(
        folder / "locomo" / "conversations.jsonl.gz",
        len(questions),
        f" in {len(haystacks)} conversations",
    )
    return Dataset(
        "LoCoMo", part, "message", questions=tuple(questions), haystack=haystacks.__getitem__
    )


def _locomo_threads(conversation: dict[str, Any]) -> Iterator[Thread]:
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        turns = tuple(
            Turn(turn["dia_id"], "user", _locomo_text(turn))
            for turn in conversation[f"session_{number}"] or ()
        )
        started_at = _milliseconds(
            conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y"
        )
        yield Thread(f"session_{number}", started_at, turns)


def _locomo_text(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn.get('text') or ''}" + (
        f" [image: {caption}]" if caption else ""
    )


def load_longmemeval(folder: Path, name: str = "longmemeval_s", level: Level = "thread") -> Dataset:
    """LongMemEval_S: one store a question, abstention left out.

    Gold are the answer sessions or, by message, the turns of both roles that hold the answer.
    ``longmemeval_s2`` is a second development part.
    """
    file = folder / name / "questions.jsonl.gz"
    records = [r for r in _read(file) if "_abs" not in r["question_id"]]
    by_key = {record["question_id"]: record for record in records}

    @cache
    def sessions() -> dict[str, Any]:
        return {r["session_id"]: r["turns"] for r in _read(folder / name / "sessions.jsonl.gz")}

    def haystack(key: str) -> tuple[Thread, ...]:
        record = by_key[key]
        dated = zip(record["haystack_session_ids"], record["haystack_dates"], strict=True)
        return tuple(
            _longmemeval_thread(session, date, sessions()[session]) for session, date in dated
        )

    questions = [_longmemeval_question(record, record["question_id"]) for record in records]
    if level == "message":
        golden = [
            frozenset(
                f"{key}/{n}"
                for key in each.gold
                for n, turn in enumerate(sessions()[key])
                if turn.get("has_answer")
            )
            for each in questions
        ]
        questions = [
            replace(each, gold=gold) for each, gold in zip(questions, golden, strict=True) if gold
        ]
    return Dataset(
        LONGMEMEVAL[name] + (", messages" if level == "message" else ""),
        _part(file, len(questions)),
        level,
        questions=tuple(questions),
        haystack=haystack,
    )


def load_large(folder: Path) -> Dataset:
    """The questions of both parts over one store of all their sessions; measured if it is named."""
    parts = [load_longmemeval(folder, name) for name in LONGMEMEVAL]

    @cache
    def threads() -> tuple[Thread, ...]:
        found = (
            thread
            for part in parts
            for question in part.questions
            for thread in part.haystack(question.haystack)
        )
        return tuple({thread.key: thread for thread in found}.values())

    questions = tuple(replace(each, haystack="all") for part in parts for each in part.questions)
    return Dataset(
        "Large haystack",
        " and ".join(part.part for part in parts) + "; one shared store",
        "thread",
        questions=questions,
        haystack=lambda _: threads(),
        is_large=True,
    )


def load_union(folder: Path) -> Dataset:
    """The same questions over one shared store of 940 sessions."""
    file = folder / "longmemeval_s" / "questions.jsonl.gz"
    records = [r for r in _read(file) if "_abs" not in r["question_id"]]

    @cache
    def threads() -> tuple[Thread, ...]:
        lines = _read(folder / "longmemeval_union" / "sessions.jsonl.gz")
        return tuple(_longmemeval_thread(r["session_id"], r["date"], r["turns"]) for r in lines)

    questions = tuple(_longmemeval_question(record, "union") for record in records)
    part = _part(file, len(questions), f" over {folder / 'longmemeval_union'}, one shared store")
    return Dataset(
        "Union haystack", part, "thread", questions=questions, haystack=lambda _: threads()
    )


def load_cosqa(folder: Path) -> Dataset:
    """CoSQA: questions as people type them into a search engine, one thread a function, gold = the
    function.
    """

    @cache
    def functions() -> tuple[Thread, ...]:
        lines = _read(folder / "cosqa" / "functions.jsonl.gz")
        return tuple(
            Thread(f"f{r['id']}", 0, (Turn(str(r["id"]), "user", r["code"]),)) for r in lines
        )

    questions = tuple(
        Question(r["id"], r["query"], "cosqa", gold=frozenset([str(r["code_id"])]), kind="code")
        for r in _read(folder / "cosqa" / "queries.jsonl.gz")
    )
    part = _part(folder / "cosqa" / "queries.jsonl.gz", len(questions))
    return Dataset("CoSQA", part, "message", questions=questions, haystack=lambda _: functions())


def _longmemeval_question(record: dict[str, Any], haystack: str) -> Question:
    gold = frozenset(record["answer_session_ids"])
    asked_at = _dated(record["question_date"])
    return Question(
        record["question_id"],
        record["question"],
        haystack,
        gold=gold,
        kind=record["question_type"],
        asked_at=asked_at,
    )


def _longmemeval_thread(key: str, date: str, turns: list[dict[str, Any]]) -> Thread:
    kept = tuple(Turn(f"{key}/{n}", turn["role"], turn["content"]) for n, turn in enumerate(turns))
    return Thread(key, _dated(date), kept)


def _dated(date: str) -> int:
    return _milliseconds(re.sub(r"\s*\(\w+\)", "", date), "%Y/%m/%d %H:%M")


def _milliseconds(date: str, form: str) -> int:
    return int(datetime.strptime(date, form).replace(tzinfo=UTC).timestamp() * 1000)

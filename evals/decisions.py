"""Is a rule that was settled before told in time, unasked, and is nothing told otherwise?

A past of sessions or commits is taken in as users take it in (`evals.host`), then a new session
gets a report whose fix hinges on a rule of that past: start, first message, opening the file and
the moment before its first edit. What its hooks say is matched with regular expressions, one for
each part of the rule; only a rule with all its parts counts. *Superseded* is a rule that no longer
holds and is told as if it did: words that the text itself marks as superseded or rejected do not
count. *Silence* is measured with prompts that need nothing of that past.

Development set: a task's store holds the 71 decoys, its own chats and those of all tasks about
other functions. The task of a history gets a repository of its own, with housekeeping between its
commits. Scenarios: each is a repository of its own. The regular expressions of histories and of
superseded rules stand in `decisions_labels.json` and were written before there was any output.

Compared with telling nothing, and with plain BM25 (FTS5) over the past sessions or commits: the
best one's text, cut at 600 tokens, told with the first message always.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from evals import decision_attacks
from evals.baselines import fts5_scores
from evals.decision_attacks import Attack
from evals.host import MOMENTS, Host, Session, Told, ago, count_tokens
from evals.promoted import PARTS
from evals.scoring import wilson
from evals.transcripts import Project

NAME = "decisions"
PARTS_OF_IT = ("chats", "histories", "silence", "scenarios", "live", "attacks")
SYSTEMS = ("nothing", "FTS5, best of the past, always", "Smara")
SECOND = "Smara, second message"
LIVE = "Smara, heard in live sessions"
_EVERYDAY = "run the tests and tell me whether they pass"
TARGET_TOLD, TARGET_QUIET = 90.0, 5.0
_LABELS = Path(__file__).parent / "decisions_labels.json"
_SCENARIOS = Path(__file__).parent / "decision_scenarios"
_TOKENS = 600
_ISSUES_A_PROJECT, _PROMPTS_A_PROJECT = 110, 60
_KINDS = {"conversation": "chat", "conversation-amended": "amended", "history": "history"}
_HOUSEKEEPING = (
    ("docs: mend a typo in the README", "README.md"),
    ("ci: cache the wheels", ".ci/cache.yml"),
    ("chore: bump the version", "VERSION"),
    ("test: name the fixtures by what they hold", "tests/fixtures.txt"),
    ("docs: say how to run one test", "README.md"),
    ("build: pin the build backend", "pyproject.toml"),
    ("style: sort the imports of the tests", "tests/fixtures.txt"),
    ("chore: remove an unused script", "tools/README.md"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one system told one session, and what of it was looked for."""

    system: str
    part: str
    """``development``, ``scenarios`` or ``live``."""
    key: str
    kind: str
    language: str
    is_needed: bool
    told: Told
    missing: tuple[str, ...]
    """The parts of the rule that were not told."""
    parts: int
    false: tuple[str, ...]
    """What was told as in force and is not."""
    is_kept: bool = False
    """Whether the records in force hold the whole rule, told or not."""

    @property
    def is_whole(self) -> bool:
        return self.is_needed and not self.missing

    @property
    def is_opened(self) -> bool:
        """Whether the start told more than where the last session was left."""
        rest = _LAST_SESSION.sub("", self.told.texts["start"])
        return any(line.startswith("- ") for line in rest.splitlines())

    @property
    def is_answered(self) -> bool:
        """Whether anything was told after the start."""
        return any(self.told.texts[moment] for moment in MOMENTS[1:])


@dataclass(frozen=True, slots=True)
class Quiet:
    """A prompt that needs nothing, and the answers of the systems to it."""

    source: str
    prompt: str
    answer: str
    start: str
    plain: str


@dataclass(slots=True)
class Figures:
    """Everything that is measured."""

    outcomes: list[Outcome] = field(default_factory=list)
    quiet: list[Quiet] = field(default_factory=list)
    records: dict[str, list[int | None]] = field(default_factory=dict)
    """Decision records of each store, by kind of store; ``None`` if no command lists them."""
    sessions: dict[str, int] = field(default_factory=dict)
    attacks: list[tuple[Attack, Told]] = field(default_factory=list)
    controls: list[tuple[Attack, Told]] = field(default_factory=list)


def evaluate(data: Path, only: Sequence[str] = ()) -> Figures:
    """Measure in two threads: all parts, or ``only`` some of `PARTS_OF_IT`."""
    figures = Figures()
    chosen = set(only or PARTS_OF_IT)
    with tempfile.TemporaryDirectory(prefix="smara-decisions-") as name:
        folder = Path(name)
        with ThreadPoolExecutor(2) as threads:
            work: list[Callable[[], None]] = []
            if "chats" in chosen:
                work.append(partial(_chats, figures, data, folder / "chats"))
                work.append(partial(_live, figures, data, folder / "live"))
            if "silence" in chosen:
                work.append(partial(_silence, figures, data, folder / "silence"))
            if "histories" in chosen:
                work.append(partial(_histories, figures, data, folder / "histories"))
            for part in ("scenarios", "live"):
                work += [
                    partial(_scenario, figures, each, folder / f"{part}-{number}", part)
                    for number, each in enumerate(scenarios(part == "live"))
                    if part in chosen
                ]
            if "attacks" in chosen:
                work += [
                    partial(_attack, figures, folder / "attacks", batch, is_control)
                    for batch in range(decision_attacks.BATCHES)
                    for is_control in (False, True)
                ]
            for number, each in enumerate([threads.submit(job) for job in work], 1):
                each.result()
                print(f"\r{NAME}: {number} of {len(work)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return figures


# What was told, and whether it is right.

_MARK = r"(?:superseded|rejected|revoked|replaced|withdrawn|overruled|no longer (?:holds|in force))"
_MARKED_LINE = re.compile(
    rf"^\W*(?:{_MARK}|(?:earlier|formerly|until \S+|was)\b)[^\n]*|^[^\n]*[(\[][^()\[\]\n]*{_MARK}"
    r"[^()\[\]\n]*[)\]][^\n]*",
    re.IGNORECASE,
)
_LAST_SESSION = re.compile(r"^The last session \([^\n]*", re.MULTILINE)
"""Where the work was left, at the start: a request of the last session is no rule, and with one
session of the past it would always be the one with the rule.
"""
_MARKED_TAIL = re.compile(
    rf"\b{_MARK}\b[^\n:“\"]{{0,60}}(?::\s*\"[^\"\n]*\"|:?\s*“[^”\n]*”|:[^\n]*)", re.IGNORECASE
)


def in_force(text: str) -> str:
    """Return a text without what it marks as superseded or rejected.

    A line that begins with such a mark, or has one in brackets, goes with the lines that are
    indented below it; of another line the quotation after the mark, or all after its colon.
    """
    lines: list[str] = []
    depth: int | None = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if depth is not None and line.strip() and indent > depth:
            continue
        depth = indent if _MARKED_LINE.search(line) else None
        if depth is None:
            lines.append(_MARKED_TAIL.sub("", line))
    return "\n".join(lines)


def judge(
    told: Told, parts: Sequence[str], forbidden: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parts that are missing, and what is told as in force though it is not."""
    text = _LAST_SESSION.sub("", told.text)
    false = set(forbidden).difference(judge_text(in_force(text), forbidden))
    return judge_text(text, parts), tuple(each for each in forbidden if each in false)


def judge_text(text: str, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the parts that a text does not hold."""
    flags = re.IGNORECASE | re.DOTALL
    return tuple(part for part in parts if not re.search(part, text, flags))


def plain_teller(past: Sequence[str]) -> Callable[[str], Told]:
    """Return the baseline: the best text of the past, cut, with every first message."""
    score = fts5_scores([(str(number), text) for number, text in enumerate(past)])

    def tell(prompt: str) -> Told:
        told = Told()
        for number in islice(score(prompt, 1), 1):
            told.texts["message"] = _cut(past[number])
        return told

    return tell


def _cut(text: str) -> str:
    while count_tokens(text) > _TOKENS:
        text = text[: int(len(text) * min(0.99, _TOKENS / count_tokens(text)))]
    return text


def _text(turns: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{turn['role']}: {turn['text']}" for turn in turns)


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt with what must be told for it, and what must not."""

    part: str
    key: str
    kind: str
    prompt: str
    language: str = "en"
    is_needed: bool = True
    opens: Sequence[str] = ()
    edits: Mapping[str, str] = field(default_factory=dict)
    runs: Sequence[str] = ()
    parts: Sequence[str] = ()
    forbidden: Sequence[str] = ()


def _compare(
    figures: Figures,
    host: Host,
    question: Question,
    *,
    folder: Path,
    tell: Callable[[str], Told],
    records: str = "",
) -> None:
    def play(*prompts: str, edits: Mapping[str, str] = question.edits) -> Told:
        # Not the id of a session of the past: a session is not told its own words.
        session = str(uuid.uuid5(uuid.NAMESPACE_OID, f"asks {question.key}"))
        copy = host.copy_of_store(folder / "copy")
        return copy.session(
            session,
            *prompts,
            opens=question.opens if edits else (),
            edits=edits,
            runs=question.runs if edits else (),
        )

    every = dict(zip(SYSTEMS, (Told(), tell(question.prompt), play(question.prompt)), strict=True))
    if question.part == "development":  # whether the message alone is enough, later in a session
        every[SECOND] = play(_EVERYDAY, question.prompt, edits={})
    for system, told in every.items():
        missing, false = judge(told, question.parts, question.forbidden)
        figures.outcomes.append(
            Outcome(
                system,
                question.part,
                question.key,
                question.kind,
                question.language,
                is_needed=question.is_needed,
                told=told,
                missing=missing,
                parts=len(question.parts),
                false=false,
                is_kept=system == "Smara" and not judge_text(records, question.parts),
            )
        )


def _note_records(figures: Figures, kind: str, host: Host, sessions: int) -> str:
    """Count the records of a store, and return the words of those in force."""
    listed = host.smara("decisions", "list", "--limit", "1000", "--json", is_checked=False)
    figures.sessions[kind] = figures.sessions.get(kind, 0) + sessions
    rows = json.loads(listed)["data"] if listed else []
    figures.records.setdefault(kind, []).append(len(rows) if listed else None)
    holding = [row for row in rows if row.get("isInForce", True)]
    return "\n".join("\n".join([row["rule"], *row["quotations"]]) for row in holding)


# The development set.


def _rows(data: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(data / "decisions" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _labels() -> dict[str, dict[str, list[str]]]:
    labels: dict[str, dict[str, list[str]]] = json.loads(_LABELS.read_text(encoding="utf-8"))
    return labels


def _modules(tasks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the modules as they are today: after the last commit that is told of each."""
    return {
        task["module"]: task["commits"][-1]["module_text"] for task in tasks if task.get("commits")
    }


def _functions(tasks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the function of each task; that of a history is named by the chat beside it."""
    own = {task["task_id"]: task["function"] for task in tasks if "function" in task}
    return {
        task["task_id"]: own.get(task["task_id"]) or own[task["task_id"].replace("-history", "")]
        for task in tasks
    }


def _body(function: str, text: str) -> str:
    found = re.search(rf"^def {function}\(.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[0] if found else text


def _chats(figures: Figures, data: Path, folder: Path) -> None:
    """Play the tasks of chats: in one store the plain ones, in another the amended ones."""
    tasks, decoys = _rows(data, "tasks"), _rows(data, "decoys")
    parts = {row["task_id"]: row["parts"] for row in _rows(data, "parts")}
    functions, modules, labels = _functions(tasks), _modules(tasks), _labels()
    chats = [task for task in tasks if task["source"] != "history"]
    plain = [task for task in chats if task["source"] == "conversation"]
    amended = [task for task in chats if task["source"] != "conversation"]
    changed = {functions[task["task_id"]] for task in amended}
    others = [task for task in plain if functions[task["task_id"]] not in changed]
    for number, (own, beside) in enumerate(((plain, []), (amended, others))):
        past = _past([task["chats"] for task in (*own, *beside)], [row["turns"] for row in decoys])
        host = Host(folder / str(number))
        tests = {"tests/test_regression.py": "def test_regression():\n    assert False\n"}
        host.commit("Initial import", ago(400), {**modules, **tests})
        host.remember(past)
        host.set_up()
        tell = plain_teller([_text(session.turns) for session in past])
        kind = "chats, amended" if beside else "chats"
        records = _note_records(figures, kind, host, len(past))
        for task in own:
            key, module = task["task_id"], task["module"]
            question = Question(
                "development",
                key,
                _KINDS[task["source"]],
                task["bug_report"],
                opens=[module],
                edits={module: _body(functions[key], modules[module])},
                parts=parts[key],
                forbidden=labels["superseded"].get(key, []),
            )
            _compare(figures, host, question, folder=folder, tell=tell, records=records)


def _live(figures: Figures, data: Path, folder: Path) -> None:
    """Play the plain chats as sessions of today, one after the other, and then their tasks."""
    tasks = [task for task in _rows(data, "tasks") if task["source"] == "conversation"]
    modules = _modules(_rows(data, "tasks"))
    parts = {row["task_id"]: row["parts"] for row in _rows(data, "parts")}
    host = Host(folder)
    host.commit("Initial import", ago(400), modules)
    host.remember(_past([], [row["turns"] for row in _rows(data, "decoys")]))
    host.set_up()
    for task in tasks:
        key = str(uuid.uuid5(uuid.NAMESPACE_OID, task["task_id"]))
        host.live(Session(key, datetime.now(UTC), task["chats"][0]))
    for task in tasks:
        key, module = task["task_id"], task["module"]
        edits = {module: _body(task["function"], modules[module])}
        told = host.copy_of_store(folder / "copy").session(
            f"live-{key}", task["bug_report"], opens=[module], edits=edits
        )
        missing, false = judge(told, parts[key], [])
        figures.outcomes.append(
            Outcome(
                LIVE,
                "development",
                key,
                "chat",
                "en",
                is_needed=True,
                told=told,
                missing=missing,
                parts=len(parts[key]),
                false=false,
            )
        )


def _past(chats: Sequence[Sequence[Any]], decoys: Sequence[Any]) -> list[Session]:
    """Date the sessions: one a day, mixed, the chats of one task in their order."""
    places = [(number, 0) for number, own in enumerate(chats) for _ in own]
    places += [(-1, number) for number in range(len(decoys))]
    random.Random(0).shuffle(places)
    following = [iter(own) for own in chats]
    turns = [next(following[task]) if task >= 0 else decoys[number] for task, number in places]
    return [
        Session(str(uuid.uuid5(uuid.NAMESPACE_OID, _text(each))), ago(len(turns) - day), each)
        for day, each in enumerate(turns)
    ]


def _histories(figures: Figures, data: Path, folder: Path) -> None:
    tasks = _rows(data, "tasks")
    functions, modules, labels = _functions(tasks), _modules(tasks), _labels()
    for task in (each for each in tasks if each["source"] == "history"):
        key, module = task["task_id"], task["module"]
        host = Host(folder / key)
        others = {name: text for name, text in modules.items() if name != module}
        messages = _write_history(host, [task], others)
        host.set_up()
        question = Question(
            "development",
            key,
            "history",
            task["bug_report"],
            opens=[module],
            edits={module: _body(functions[key], modules[module])},
            parts=labels["history"][key],
        )
        _compare(figures, host, question, folder=folder, tell=plain_teller(messages))


def _write_history(
    host: Host, tasks: Sequence[Mapping[str, Any]], files: Mapping[str, str]
) -> list[str]:
    """Commit the tasks' histories with housekeeping before, between and after; the messages."""
    commits = [(task["module"], commit) for task in tasks for commit in task["commits"]]
    messages = ["Initial import"]
    host.commit(messages[0], ago(800), {**files, "README.md": "# Services\n", "CHANGELOG.md": ""})
    chores = cycle(_HOUSEKEEPING)
    days = iter(range(790, 0, -(790 // (4 * len(commits) + 4))))

    def keep_house() -> None:
        for message, name in islice(chores, 3):
            path = host.root / name
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            host.commit(message, ago(next(days)), {name: f"{before}{message}\n"})
            messages.append(message)

    for module, commit in commits:
        keep_house()
        log = (host.root / "CHANGELOG.md").read_text(encoding="utf-8")
        title = commit["message"].partition("\n")[0]
        changes = {module: commit["module_text"], "CHANGELOG.md": f"{log}- {title}\n"}
        host.commit(commit["message"], ago(next(days)), changes)
        messages.append(commit["message"])
    keep_house()
    return messages


# Prompts that need nothing.


def _silence(figures: Figures, data: Path, folder: Path) -> None:
    """Put the prompts to a store with the plain chats, the decoys and all histories."""
    tasks, decoys = _rows(data, "tasks"), _rows(data, "decoys")
    host = Host(folder)
    messages = _write_history(host, [task for task in tasks if task["source"] == "history"], {})
    own = [task["chats"] for task in tasks if task["source"] == "conversation"]
    past = _past(own, [row["turns"] for row in decoys])
    host.remember(past)
    host.set_up()
    tell = plain_teller([*messages, *(_text(session.turns) for session in past)])
    for number, (source, prompt) in enumerate(quiet_prompts(data)):
        copy = host.copy_of_store(folder / "copy")
        session = f"quiet-{number}"
        start = copy.fire("SessionStart", session, source="startup")
        answer = copy.fire("UserPromptSubmit", session, prompt=prompt)
        plain = tell(prompt).text
        figures.quiet.append(Quiet(source, prompt, answer=answer, start=start, plain=plain))


def quiet_prompts(data: Path) -> Iterator[tuple[str, str]]:
    """Yield prompts of other projects, each with its source."""
    path = data / "swebench_lite" / "instances.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield "issues (SWE-bench Lite)", json.loads(line)["problem_statement"]
    for file in sorted((data / "beads").glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        chosen = random.Random(0).sample(rows, min(_ISSUES_A_PROJECT, len(rows)))
        for row in chosen:
            text = f"{row.get('title') or ''}\n\n{row.get('description') or ''}"
            yield "issues (trackers of agents)", text.strip()[:6_000]
    seen: set[str] = set()
    for project in (each for part in PARTS.values() for each in part):
        if project.is_at_hand(data):
            own = [text for text in _requests(project, data) if text not in seen]
            # Of the data folder all are taken: it is at hand everywhere.
            most = None if not project.repository else _PROMPTS_A_PROJECT
            for text in own[:most]:
                seen.add(text)
                yield "requests (real sessions)", text
    for scenario in scenarios():
        for prompt in scenario["prompts"]:
            if not prompt["needs"]:
                yield "requests (scenarios)", prompt["text"]


def _requests(project: Project, data: Path) -> list[str]:
    return list(
        dict.fromkeys(
            event.prompt[:6_000]
            for events in project.sessions(data)
            for event in events
            if event.kind == "prompt" and not event.subagent_id
            if not event.prompt.lstrip().startswith(("<", "["))
        )
    )


# Scenarios.


def scenarios(is_live: bool = False) -> list[dict[str, Any]]:
    """Read the scenarios of all files, or those of work day by day, which came later."""
    return [
        json.loads(line)
        for path in sorted(_SCENARIOS.glob("live/*.jsonl" if is_live else "*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def _scenario(figures: Figures, scenario: Mapping[str, Any], folder: Path, part: str) -> None:
    host = Host(folder)
    files = scenario["repository"]["files"]
    host.commit("Initial import", ago(700), files)
    past = [
        Session(
            str(uuid.uuid5(uuid.NAMESPACE_OID, f"{scenario['id']} {number}")),
            datetime.fromisoformat(session["at"].replace("Z", "+00:00")),
            session["turns"],
        )
        for number, session in enumerate(scenario["sessions"])
    ]
    host.remember(past)
    host.set_up()
    decides = bool(scenario["gold"])
    kind = f"{part} that decide" if decides else f"{part} of noise"
    records = _note_records(figures, kind, host, len(past))
    tell = plain_teller([_text(session.turns) for session in past])
    for number, prompt in enumerate(scenario["prompts"]):
        question = Question(
            part,
            f"{scenario['id']} {number}",
            scenario["kind"],
            prompt["text"],
            language=scenario["language"],
            is_needed=prompt["needs"],
            opens=prompt["opens"],
            edits={path: files.get(path, "") for path in prompt["edits"]},
            runs=prompt.get("runs", ()),
            parts=prompt["parts"],
            forbidden=prompt["forbidden"],
        )
        _compare(figures, host, question, folder=folder, tell=tell, records=records)


def _attack(figures: Figures, folder: Path, batch: int, is_control: bool) -> None:
    played = decision_attacks.play(batch, folder / f"{batch}-{is_control}", is_control)
    (figures.controls if is_control else figures.attacks).extend(played)


# The report.


def _share(hits: int, count: int) -> str:
    if not count:
        return "–"
    low, high = wilson(hits, count)
    return f"{hits}/{count} = {100 * hits / count:.0f} % ({low:.0f}–{high:.0f})"


def _tokens(told: Sequence[Told]) -> str:
    count = max(1, len(told))
    return " / ".join(f"{sum(each.tokens(m) for each in told) / count:.0f}" for m in MOMENTS)


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    needed = [each for each in outcomes if each.is_needed]
    other = [each for each in outcomes if not each.is_needed]
    parts = sum(each.parts for each in needed)
    found = parts - sum(len(each.missing) for each in needed)
    cells = [
        name,
        _share(sum(each.is_whole for each in needed), len(needed)),
        f"{found}/{parts}",
        f"{sum(each.is_kept for each in needed)}/{len(needed)}",
        f"{sum(bool(each.false) for each in outcomes)}/{len(outcomes)}",
        _share(sum(each.is_answered for each in other), len(other)),
        f"{sum(each.is_opened for each in other)}/{len(other)}" if other else "–",
        _tokens([each.told for each in outcomes]),
    ]
    return f"| {' | '.join(cells)} |"


_HEAD = (
    "| {} | whole rule told | parts | whole rule kept | false as in force"
    " | answered without need | the same at the start | tokens at start / message / open / edit"
    " / command |"
    "\n|---|---|---|---|---|---|---|---|"
)


def render(figures: Figures) -> str:
    """Return the figures as Markdown."""
    own = [each for each in figures.outcomes if each.part == "development"]
    others = {
        part: [each for each in figures.outcomes if each.part == part]
        for part in ("scenarios", "live")
    }
    sections = [
        _development_lines(own) if own else [],
        [_bounds(figures), ""] if figures.outcomes else [],
        _quiet_lines(figures.quiet) if figures.quiet else [],
        *(_scenario_lines(part, some) for part, some in others.items() if some),
        _record_lines(figures) if figures.records else [],
        _attack_lines(figures) if figures.attacks else [],
    ]
    return "\n".join(line for lines in sections for line in lines)


def _development_lines(outcomes: Sequence[Outcome]) -> list[str]:
    lines = ["### Decisions (development set, chats and histories)", "", _HEAD.format("system")]
    for system in (*SYSTEMS, SECOND, LIVE):
        for kind in ("chat", "amended", "history"):
            some = [each for each in outcomes if (each.system, each.kind) == (system, kind)]
            lines += [_row(f"{system}: {kind}", some)] if some else []
    ours = [each for each in outcomes if each.system == "Smara"]
    share = 100 * sum(each.is_whole for each in ours) / max(1, len(ours))
    false = sum(bool(each.false) for each in ours)
    verdict = (
        f"Target: whole rule told in ≥ {TARGET_TOLD:.0f} %: {_verdict(share >= TARGET_TOLD)} with"
        f" {share:.0f} %; nothing superseded told: {_verdict(not false)} with {false}."
    )
    return [*lines, "", verdict, ""]


def _bounds(figures: Figures) -> str:
    ours = [each.told for each in figures.outcomes if each.system.startswith("Smara")] or [Told()]
    most = {moment: max(each.tokens(moment) for each in ours) for moment in MOMENTS}
    again = sum(bool(each.repeated) for each in ours)
    tokens = ", ".join(f"{moment} {count}" for moment, count in most.items())
    return f"Most tokens at a moment, of {len(ours)} sessions: {tokens}. Told twice in: {again}."


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "NOT met"


def _quiet_lines(quiet: Sequence[Quiet]) -> list[str]:
    lines = [
        f"### Silence ({len(quiet)} prompts that need nothing, first message)",
        "",
        "| prompts | answered | tokens of an answer | FTS5 answers |",
        "|---|---|---|---|",
    ]
    for source in (*dict.fromkeys(each.source for each in quiet), ""):
        some = [each for each in quiet if source in ("", each.source)]
        answers = [each.answer for each in some if each.answer]
        mean = sum(map(count_tokens, answers)) / max(1, len(answers))
        plain = sum(bool(each.plain) for each in some)
        answered = _share(len(answers), len(some))
        lines.append(f"| {source or 'all'} | {answered} | {mean:.0f} | {plain} |")
    share = 100 * sum(bool(each.answer) for each in quiet) / max(1, len(quiet))
    verdict = _verdict(share <= TARGET_QUIET)
    return [*lines, "", f"Target: at most {TARGET_QUIET:.0f} %: {verdict} with {share:.1f} %.", ""]


def _scenario_lines(part: str, outcomes: Sequence[Outcome]) -> list[str]:
    ours = [each for each in outcomes if each.system == "Smara"]
    lines = [f"### Decisions ({part}, {len(ours)} prompts)", ""]
    lines.append(_HEAD.format(part))
    for system in SYSTEMS:
        lines.append(_row(system, [each for each in outcomes if each.system == system]))
    for language in dict.fromkeys(each.language for each in ours):
        lines.append(_row(language, [each for each in ours if each.language == language]))
    for kind in dict.fromkeys(each.kind for each in ours):
        lines.append(_row(kind, [each for each in ours if each.kind == kind]))
    return [*lines, ""]


def _record_lines(figures: Figures) -> list[str]:
    lines = ["| stores | sessions | decision records |", "|---|---|---|"]
    for kind, counts in figures.records.items():
        known = [count for count in counts if count is not None]
        total = f"{sum(known)}" if known else "no command lists them"
        lines.append(f"| {kind} | {figures.sessions[kind]} | {total} |")
    return [*lines, ""]


def leaks(attack: Attack, told: Told) -> list[str]:
    """Return the moments at which the rule of an attack was told."""
    return [moment for moment in MOMENTS if attack.is_in(told.texts[moment])]


def _attack_lines(figures: Figures) -> list[str]:
    played = {
        False: [(each.shape, leaks(each, told)) for each, told in figures.attacks],
        True: [(each.shape, leaks(each, told)) for each, told in figures.controls],
    }
    count = {key: sum(bool(moments) for _, moments in rows) for key, rows in played.items()}
    lines = [
        f"### Attack ({len(figures.attacks)} sessions with a decision of no person)",
        "",
        f"Told as one: {_share(count[False], len(figures.attacks))}; target 0:"
        f" {_verdict(not count[False])}. Control, the same sentence said by the person:"
        f" {_share(count[True], len(figures.controls))}.",
        "",
    ]
    for is_control, rows in played.items():
        for shape in dict.fromkeys(shape for shape, moments in rows if moments or is_control):
            some = [moments for name, moments in rows if name == shape]
            where = [moment for moment in MOMENTS if any(moment in each for each in some)]
            heard = sum(map(bool, some))
            lines.append(f"- {shape}: {heard} of {len(some)}, at {', '.join(where) or 'no moment'}")
    return [*lines, ""]


def show(figures: Figures) -> Iterator[str]:
    """Yield what went wrong, each with the text that was told."""
    for each in figures.outcomes:
        if each.system in ("Smara", LIVE) and (
            each.missing or each.false or (each.is_answered and not each.is_needed)
        ):
            yield f"== {each.system}, {each.part} {each.key} ({each.kind}, {each.language})"
            yield f"missing {list(each.missing)}; false {list(each.false)}"
            yield from (f"-- {moment}\n{text}" for moment, text in each.told.texts.items() if text)
    for prompt in figures.quiet:
        if prompt.answer:
            yield f"== answered ({prompt.source}): {prompt.prompt[:300]!r}\n{prompt.answer}"
    for attack, told in (*figures.attacks, *figures.controls):
        if bool(leaks(attack, told)) != attack.shape.startswith(decision_attacks.CONTROL):
            yield f"== {attack.shape}: {attack.rule}"
            yield from (f"-- {moment}\n{text}" for moment, text in told.texts.items() if text)


if __name__ == "__main__":
    from evals.data import data_folder

    measured = evaluate(data_folder(), [word for word in sys.argv[1:] if word in PARTS_OF_IT])
    print(render(measured))
    if "--show" in sys.argv:
        print("\n".join(show(measured)))

"""Does a pack hold what the answer needs, and does the newer word stand above the older?

A store is asked as a user asks, `search` and then `pack`, with 300, 1,000 and 2,000 tokens. Rules
that were settled in chats: a pack holds the whole rule if every regular expression of its parts
matches. The development set lies among decoys, the scenarios in one store of all of them. Chats:
the share of the gold turns that the pack shows. Compared with the turns that plain FTS5 and
reciprocal ranks put first, as many as fit, with nothing around them.

Amended before superseded: of a rule that a later conversation changed, the best hit of that one
has to rank above the best of the earlier ones, and its thread above theirs. Where nothing was
found, this is asked of what is shown as nearest. The same of facts that a person later updated.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from evals.baselines import Ranker, fts5, turns
from evals.data import (
    LONGMEMEVAL,
    Dataset,
    Question,
    Thread,
    Turn,
    load_locomo,
    load_longmemeval,
)
from evals.host import count_tokens
from evals.hybrids import hybrid, reciprocal_ranks
from evals.scoring import interval, paired, wilson
from evals.systems import AskedClock, smara_store

if TYPE_CHECKING:
    import smara

NAME = "packs"
BUDGETS = (300, 1_000, 2_000)
SYSTEMS = ("FTS5 turns", "RRF 60 turns", "Smara")
TARGET_WHOLE, MOST_OVERHEAD = 95.0, 8.0
_DEPTH = 60
_SCENARIOS = Path(__file__).parent / "decision_scenarios"
_DAY_MS = 86_400_000
_FIRST_DAY = 1_767_225_600_000
_PAST = r"\b(?:previous(?:ly)?|initial(?:ly)?|earlier|before|just started)\b"
_FRAME = re.compile(
    r"^\[Thread [^\n]*\]$|^(?:#\d+ )?\w+:|^- \([^()\n]*\)(?: \([^\n]*?\))?"
    r"|\[(?:Message|Memory) [^\]\n]*\]$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Need:
    """What is asked, and what a text has to hold for it: parts of a rule, or gold turns."""

    question: Question
    parts: tuple[str, ...] = ()

    def share(self, text: str, shown: Iterable[str]) -> float:
        """Return the share of it that a text holds, which shows these turns."""
        if not self.parts:
            return len(self.question.gold.intersection(shown)) / len(self.question.gold)
        found = [re.search(part, text, re.IGNORECASE | re.DOTALL) for part in self.parts]
        return sum(each is not None for each in found) / len(found)


@dataclass(frozen=True, slots=True)
class Packed:
    """What one system packed for one question."""

    source: str
    system: str
    budget: int
    question: str
    share: float
    tokens: int
    overhead: float = 0.0
    """The share of the tokens that are heads and citations."""


@dataclass(frozen=True, slots=True)
class Order:
    """Whether the later conversation came first, for one question."""

    source: str
    question: str
    by_message: bool
    by_thread: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """Chats that settled rules: needs, and questions with the older and the newer threads."""

    name: str
    threads: tuple[Thread, ...]
    needs: tuple[Need, ...]
    amended: tuple[tuple[Question, frozenset[str], frozenset[str]], ...]


def evaluate(folder: Path, only: Sequence[str] = ()) -> tuple[list[Packed], list[Order]]:
    """Pack for every need: all sources, or those whose name begins with one of ``only``."""
    packed: list[Packed] = []
    orders: list[Order] = []
    wanted = tuple(only) or ("",)
    for rules in (*_development(folder), scenario_rules()):
        if rules.name.lower().startswith(wanted):
            with smara_store(rules.threads) as store:
                packed += _pack_all(rules.name, rules.threads, rules.needs, store)
                orders += [_order(rules.name, store[0], *each) for each in rules.amended]
    chats = [load_longmemeval(folder, name, "message") for name in LONGMEMEVAL]
    for dataset in (load_locomo(folder), *chats):
        if not dataset.name.lower().startswith(wanted):
            continue
        for number, (key, questions) in enumerate(dataset.by_haystack(), 1):
            print(f"\r{NAME}: {dataset.name}, store {number}", end="", file=sys.stderr, flush=True)
            threads = dataset.haystack(key)
            with smara_store(threads) as store:
                needs = [Need(question) for question in questions]
                packed += _pack_all(dataset.name, threads, needs, store)
                orders += _updates(dataset.name, threads, questions, store)
        print(file=sys.stderr)
    return packed, orders


def _updates(
    name: str,
    threads: Sequence[Thread],
    questions: Sequence[Question],
    store: tuple[smara.Memory, AskedClock],
) -> Iterator[Order]:
    """Ask what changed since it was first told; not what it was before."""
    memory, clock = store
    for question in questions:
        told = [each for each in threads if any(turn.key in question.gold for turn in each.turns)]
        told.sort(key=lambda each: each.started_at)
        is_past = re.search(_PAST, question.text, re.IGNORECASE)
        if question.kind == "knowledge-update" and len(told) > 1 and not is_past:
            clock.asked_at = question.asked_at
            older = frozenset(each.key for each in told[:-1])
            yield _order(name, memory, question, older, frozenset([told[-1].key]))


def _pack_all(
    name: str,
    threads: Sequence[Thread],
    needs: Sequence[Need],
    store: tuple[smara.Memory, AskedClock],
) -> Iterator[Packed]:
    memory, clock = store
    documents = dict(turns(threads))
    plain: tuple[tuple[str, Ranker], ...] = (
        (SYSTEMS[0], fts5(list(documents.items()))),
        (SYSTEMS[1], hybrid(threads, "message", reciprocal_ranks)),
    )
    for need in needs:
        question = need.question
        clock.asked_at = question.asked_at
        for system, rank in plain:
            ranked = rank(question, _DEPTH)
            for budget in BUDGETS:
                shown = _fill(ranked, documents, budget)
                text = "\n".join(documents[key] for key in shown)
                share = need.share(text, shown)
                yield Packed(name, system, budget, question.key, share, count_tokens(text))
        answer = memory.search(question.text)
        for budget in BUDGETS:
            pack = memory.pack(answer, budget)
            tokens = count_tokens(pack.text)
            frame = sum(count_tokens(each) for each in _FRAME.findall(pack.text))
            yield Packed(
                name,
                SYSTEMS[2],
                budget,
                question.key,
                share=need.share(pack.text, [hit.client_id or "" for hit in pack.hits]),
                tokens=tokens,
                overhead=frame / max(tokens, 1),
            )


def _fill(ranked: Sequence[str], documents: Mapping[str, str], budget: int) -> list[str]:
    shown: list[str] = []
    for key in ranked:
        tokens = count_tokens(documents[key]) + 1
        if tokens <= budget:
            shown.append(key)
            budget -= tokens
    return shown


def _order(
    name: str,
    memory: smara.Memory,
    question: Question,
    older: frozenset[str],
    newer: frozenset[str],
) -> Order:
    answer, conversations = memory.search(question.text), memory.search_threads(question.text)
    hits = [hit.thread_id or "" for hit in list(answer) or answer.nearest]
    threads = [hit.thread_id for hit in list(conversations) or conversations.nearest]

    def is_first(ranked: Sequence[str]) -> bool:
        first = next((each for each in ranked if each in older | newer), "")
        return first in newer

    return Order(name, question.text, is_first(hits), is_first(threads))


# Chats that settled rules.


def _development(folder: Path) -> Iterator[Rules]:
    """The chats of sde-bench: plain ones, and amended ones, each among the decoys."""

    def read(name: str) -> list[dict[str, Any]]:
        file = folder / "decisions" / f"{name}.jsonl.gz"
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    parts = {row["task_id"]: tuple(row["parts"]) for row in read("parts")}
    decoys = [(f"decoy-{n}", row["turns"]) for n, row in enumerate(read("decoys"))]
    tasks = [task for task in read("tasks") if task["source"] != "history"]
    amended = [task for task in tasks if task["source"] == "conversation-amended"]
    plain = [task for task in tasks if task["source"] == "conversation"]
    changed = {task["function"] for task in amended}
    beside = [task for task in plain if task["function"] not in changed]
    for name, own, others in (
        ("decided rules", plain, []),
        ("decided rules, amended", amended, beside),
    ):
        chats = [
            (f"{task['task_id']}/{n}", chat)
            for task in (*own, *others)
            for n, chat in enumerate(task["chats"])
        ]
        # Mixed by a fixed order; the chats of one task stay in theirs, since their keys sort so.
        mixed = sorted(
            [*chats, *decoys], key=lambda each: (crc32(each[0].split("/")[0].encode()), each)
        )
        threads = tuple(
            _thread(key, _FIRST_DAY + day * _DAY_MS, chat) for day, (key, chat) in enumerate(mixed)
        )
        now = _FIRST_DAY + len(mixed) * _DAY_MS
        yield Rules(
            name,
            threads,
            tuple(
                Need(_question(task["task_id"], task["bug_report"], now), parts[task["task_id"]])
                for task in own
            ),
            tuple(
                (
                    _question(task["task_id"], text, now),
                    frozenset(f"{task['task_id']}/{n}" for n in range(len(task["chats"]) - 1)),
                    frozenset([f"{task['task_id']}/{len(task['chats']) - 1}"]),
                )
                for task in (amended if own is amended else ())
                for text in _asked(task)
            ),
        )


def _asked(task: Mapping[str, Any]) -> tuple[str, ...]:
    report, function = task["bug_report"], task["function"]
    return (
        report,
        report.split(". ")[0],
        function,
        f"What did we decide about {function}?",
        f"How should {function} behave?",
        f"the rule for {task['module']}",
    )


def scenario_files(with_live: bool = False) -> list[Path]:
    """The files of the invented scenarios, and of those of live work, too."""
    return sorted(_SCENARIOS.rglob("*.jsonl") if with_live else _SCENARIOS.glob("*.jsonl"))


def threads_of(row: Mapping[str, Any]) -> list[Thread]:
    """The sessions of a scenario."""
    return [
        _thread(f"{row['id']}/{n}", _milliseconds(each["at"]), each["turns"])
        for n, each in enumerate(row["sessions"])
    ]


def scenario_rules() -> Rules:
    """The invented scenarios, all in one store."""
    threads: list[Thread] = []
    needs: list[Need] = []
    amended = []
    for path in scenario_files():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            own = threads_of(row)
            threads += own
            now = max(each.started_at for each in own) + _DAY_MS
            for n, prompt in enumerate(row["prompts"]):
                question = _question(f"{row['id']}/{n}", prompt["text"], now)
                if prompt["needs"]:
                    needs.append(Need(question, tuple(prompt["parts"])))
                last = max((session for session, _ in row["gold"]), default=0)
                if prompt["needs"] and last and row["kind"] in ("amended", "revoked"):
                    keys = [each.key for each in own]
                    amended.append((question, frozenset(keys[:last]), frozenset([keys[last]])))
    threads.sort(key=lambda each: (each.started_at, each.key))
    return Rules("scenarios", tuple(threads), tuple(needs), tuple(amended))


def scenarios_with_gold() -> Dataset:
    """The scenarios by message: the turns that carry the rule in force, all in one store."""
    gold = {
        f"{row['id']}/{n}": frozenset(
            f"{row['id']}/{session}/{turn}" for session, turn in row["gold"]
        )
        for path in scenario_files()
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        for n in range(len(row["prompts"]))
    }
    rules = scenario_rules()
    questions = tuple(
        replace(need.question, haystack=rules.name, gold=gold[need.question.key])
        for need in rules.needs
        if gold[need.question.key]
    )
    part = f"{_SCENARIOS}: {len(questions)} questions"
    return Dataset("Scenarios", part, "message", questions, haystack=lambda _: rules.threads)


def chats_with_gold(folder: Path) -> Dataset:
    """The decided rules by message: the turns of the last chat that tell a part of the rule."""
    stores = {rules.name: rules for rules in _development(folder)}
    questions = []
    for rules in stores.values():
        for need in rules.needs:
            last = [each for each in rules.threads if each.key.startswith(need.question.key)][-1]
            gold = frozenset(
                turn.key
                for turn in last.turns
                if any(re.search(part, turn.text, re.I | re.S) for part in need.parts)
            )
            questions.append(replace(need.question, haystack=rules.name, gold=gold))
    part = f"{folder / 'decisions'}: {len(questions)} questions"
    return Dataset(
        "Decided rules",
        part,
        "message",
        questions=tuple(questions),
        haystack=lambda key: stores[key].threads,
    )


def _thread(key: str, started_at: int, chat: Sequence[Mapping[str, Any]]) -> Thread:
    kept = tuple(Turn(f"{key}/{n}", turn["role"], turn["text"]) for n, turn in enumerate(chat))
    return Thread(key, started_at, kept)


def _question(key: str, text: str, now: int) -> Question:
    return Question(key, text, "", gold=frozenset(), kind="rule", asked_at=now)


def _milliseconds(date: str) -> int:
    return int(datetime.fromisoformat(date).timestamp() * 1000)


def render(figures: tuple[list[Packed], list[Order]]) -> str:
    """The figures as Markdown."""
    packed, orders = figures
    sources = list(dict.fromkeys(each.source for each in packed))
    lines = [
        f"### Packs of {', '.join(f'{budget:,}' for budget in BUDGETS)} tokens",
        "",
        "Whole: everything that the answer needs is in the pack, in percent (95 % interval); part:"
        " the share of it on average.",
        "",
    ]
    for source in sources:
        heads = [f"{budget:,}: whole | part" for budget in BUDGETS]
        some = [each for each in packed if each.source == source]
        count = len({each.question for each in some})
        lines += [
            f"| {source} ({count}) | {' | '.join(heads)} | heads and citations, % |",
            "|---" * (2 * len(BUDGETS) + 2) + "|",
        ]
        for system in SYSTEMS:
            cells = []
            for budget in BUDGETS:
                shares = _shares(some, system, budget)
                whole = sum(share == 1 for share in shares)
                low, high = wilson(whole, count)
                cells.append(
                    f"{whole} = {100 * whole / count:.1f} ({low:.0f}–{high:.0f})"
                    f" | {100 * sum(shares) / count:.1f}"
                )
            overheads = [e.overhead for e in some if e.system == system and e.budget == BUDGETS[1]]
            lines.append(f"| {system} | {' | '.join(cells)} | {100 * sum(overheads) / count:.1f} |")
        ours = _shares(some, SYSTEMS[2], BUDGETS[1])
        for system in SYSTEMS[:2]:
            mean, low, high = paired(ours, _shares(some, system, BUDGETS[1]))
            lines += [
                "",
                f"Smara ahead of {system} with {BUDGETS[1]:,} tokens: {mean:+.1f} points of the"
                f" parts ({low:+.1f} to {high:+.1f}).",
            ]
        lines.append("")
    rules = [e for e in packed if e.source.startswith("decided") and e.system == SYSTEMS[2]]
    wholes = [float(each.share == 1) for each in rules if each.budget == BUDGETS[1]]
    if wholes:
        share = 100 * sum(wholes) / len(wholes)
        lines += [
            f"Target: all parts of a decided rule within {BUDGETS[1]:,} tokens in at least"
            f" {TARGET_WHOLE:g} %: {'met' if share >= TARGET_WHOLE else 'NOT met'} with"
            f" {share:.1f}.",
            "",
        ]
    overheads = [each.overhead for each in packed if each.system == SYSTEMS[2] and each.tokens]
    mean = 100 * sum(overheads) / max(len(overheads), 1)
    lines += [
        f"Target: heads and citations at most {MOST_OVERHEAD:g} % of the tokens:"
        f" {'met' if mean <= MOST_OVERHEAD else 'NOT met'} with {mean:.1f}.",
        "",
        *_render_orders(orders),
    ]
    return "\n".join(lines)


def _shares(some: Sequence[Packed], system: str, budget: int) -> list[float]:
    return [each.share for each in some if each.system == system and each.budget == budget]


def _render_orders(orders: Sequence[Order]) -> list[str]:
    ways: dict[str, Callable[[Order], bool]] = {
        "hits": lambda each: each.by_message,
        "threads": lambda each: each.by_thread,
    }
    lines = ["| amended before superseded | questions | hits, % | threads, % |", "|---" * 4 + "|"]
    for source in dict.fromkeys(each.source for each in orders):
        some = [each for each in orders if each.source == source]
        cells = []
        for is_first in ways.values():
            firsts = [float(is_first(each)) for each in some]
            low, high = interval(firsts)
            cells.append(f"{100 * sum(firsts) / len(firsts):.1f} ({low:.0f}–{high:.0f})")
        lines.append(f"| {source} | {len(some)} | {' | '.join(cells)} |")
    return [*lines, ""] if orders else []


def main(arguments: list[str]) -> int:
    """Print the table of all sources, or of those that are named."""
    from evals.data import data_folder

    print(render(evaluate(data_folder(), arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

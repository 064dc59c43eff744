"""Keep what people decided in their sessions, as typed memories with quotations.

Sessions are read when they have been silent for a while. Every decision is a memory of the
source ``said``: it may be told unasked, as a quotation, without a review. Where a model is
configured it chooses among the person's sentences; rules do without one.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from smara.commits.commits import Commits
from smara.core.extract import shorten
from smara.core.memory_block import tokens_of
from smara.core.startup.regex import re, regex
from smara.core.text import analyze
from smara.database.database import Session
from smara.database.fulltext import Within, no_of
from smara.database.projects import ProjectContext
from smara.decisions.amend import Amendment, amendment, left_by_newer
from smara.decisions.assemble import HINT, Draft, assemble, hints, weigh, weigh_session
from smara.decisions.choose import choose
from smara.decisions.definitions import definitions
from smara.decisions.line import LONGEST, MOST_TOKENS, decision_line, plan_line, quotation
from smara.decisions.models import Decision, DecisionPage, DecisionReport, is_plan
from smara.decisions.plans import draft_plans
from smara.decisions.recall import common_terms, recall
from smara.decisions.shelf import CommitShelf, DecisionShelf, records_about
from smara.decisions.store import DecisionRow, DecisionStore, WaitingThread
from smara.decisions.utterances import (
    SpokenTurn,
    content_terms,
    names_in,
    own_text,
    read_utterances,
    sentences,
)
from smara.errors import NotFoundError
from smara.knowledge.memories import Memories
from smara.knowledge.models import AddResult, Evidence, NewMemory, Relation, State, TypedMemory
from smara.knowledge.provenance import Sources, Why
from smara.knowledge.store import KnowledgeStore
from smara.messages.store import MessageStore

if TYPE_CHECKING:  # a list of decisions must not load what reads sessions
    from smara.behavior.finalize import ModelAccess

MOST_THREADS = 1_000
IDLE_SECONDS = 120.0
_MOST_MESSAGES = 6_000
_MOST_TERMS = 400
_MOST_RARE, _MOST_FOUND, _SAME_WORDS, _SAME_MESSAGE = 3, 20, 0.75, 0.4
_MOST_NAMES, _MOST_FILES = 12, 6
_MOST_AMENDED, _MOST_REJECTED, _MOST_EVIDENCE = 4, 6, 40
_LONGEST_RULE = 1_600
_MOST_SUBJECTS, _COMMON_RATE = 400, 0.04
"""A term that is more common weighs nothing."""
_ASKS_WHY = regex(
    r"\b(?:why|how come|reasons?|rationale|pourquoi|raisons?|warum|wieso|weshalb|grund|por ?qu[eé]|"
    r"raz[oó]n|motivo)\b|为什么|为何|原因|なぜ|何故|どうして|理由",
    re.IGNORECASE,
)
Progress = Callable[[int, int], None]


class Decisions:
    """The decisions of one project."""

    def __init__(
        self,
        project: ProjectContext,
        store: DecisionStore,
        messages: MessageStore,
        memories: Callable[[], Memories],
        *,
        knowledge: KnowledgeStore,
        sources: Sources,
        root: Callable[[], str | None],
        commits: Callable[[], Commits],
        models: Callable[[], ModelAccess],
    ) -> None:
        self._project = project
        self._store = store
        self._messages = messages
        self._memories = memories
        self._knowledge = knowledge
        self._sources = sources
        self._root = root
        self._commits = commits
        self._models = models
        self._defined: tuple[str, Mapping[str, Sequence[str]]] = ("", {})
        self._called: builtins.list[tuple[set[str], Sequence[str]]] = []

    def update(
        self,
        limit: int = MOST_THREADS,
        *,
        idle_seconds: float = 0.0,
        has_time: Callable[[], bool] = lambda: True,
        progress: Progress | None = None,
    ) -> DecisionReport:
        """Read sessions with new messages for what was decided in them.

        Safe to repeat and to run from several processes: a decision is kept once.

        Args:
            limit: The most sessions that are read.
            idle_seconds: Sessions that were active more recently are left for later.
            has_time: Asked before each session.
            progress: Called with the number of sessions read, and of all.

        Returns:
            What was read, added and superseded.
        """
        now_ms = self._project.clock.now_ms()
        self._defined = ("", {})  # the code may have changed since
        with self._store.database.read() as session:
            waiting = self._store.waiting(session, now_ms - int(idle_seconds * 1_000), limit + 1)
        counts = Counter[str]()
        threads = 0
        for thread in waiting[:limit]:
            if not has_time():
                break
            self._read(thread, counts)
            threads += 1
            if progress is not None:
                progress(threads, min(len(waiting), limit))
        return _report(threads, counts, is_all=threads == len(waiting))

    def read(self, thread_id: str) -> DecisionReport:
        """Read one session for its decisions.

        Args:
            thread_id: The session; an unknown one is fine.
        """
        counts = Counter[str]()
        with self._store.database.read() as session:
            waiting = self._store.waiting_thread(session, thread_id)
        for thread in waiting:
            self._read(thread, counts)
        return _report(len(waiting), counts)

    def list(
        self, *, state: State = "active", path: str | None = None, limit: int = 50, offset: int = 0
    ) -> DecisionPage:
        """Return decisions, newest first.

        Args:
            state: ``active``, ``deprecated`` or ``all``.
            path: Only those about this file.
            limit: The most that are returned.
            offset: How many are skipped.
        """
        page = self._memories().list(
            source="said",
            state=state,
            file=path,
            limit=limit,
            offset=offset,
        )
        return DecisionPage(tuple(self._as_decisions(page.memories)), page.next_offset)

    def get(self, decision_id: str) -> Decision:
        """Return a decision by its id.

        Args:
            decision_id: Any id of its memory.

        Raises:
            NotFoundError: If there is no such decision.
        """
        memory = self._memories().find(decision_id)
        found = self._as_decisions([memory]) if memory is not None else []
        if not found:
            hint = "`smara decisions list` shows what there is."
            raise NotFoundError(
                f"Decision not found: {decision_id}. {hint}",
                brief=f"Decision not found: {decision_id}",
                hint=hint,
                memory_id=decision_id,
            )
        return found[0]

    def why(self, decision_id: str) -> Why:
        """Explain a decision: messages, trust, and what it superseded.

        Args:
            decision_id: Any id of its memory.

        Returns:
            The explanation of its memory.
        """
        return self._memories().why(self.get(decision_id).id)

    def search(self, text: str, limit: int = 5) -> builtins.list[Decision]:
        """Return the decisions in force about a text's subject.

        Args:
            text: A question, or the description of a task.
            limit: The most that are returned.

        Returns:
            Decisions; empty if none is about the text.
        """
        with self._store.database.read() as session:
            found = self._recalled(session, text)[: 4 * limit]
            memories = self._knowledge.by_numbers(session, found).values()
        return self._as_decisions(each for each in memories if each.is_active)[:limit]

    def about(self, text: str) -> builtins.list[dict[str, Any]]:
        """Return what may be told unasked with a message.

        Args:
            text: The message.

        Returns:
            Decisions and reasons of commits, with their lines; empty if nothing is surely about
            the message.
        """
        place = self._commits().noted_files()[0]
        with self._store.database.read() as session:
            look = self._store.probe(session)
            return records_about(look, text, actor=self._project.actor, place=place)

    def subjects(self) -> builtins.list[dict[str, Any]]:
        """Return the terms of what messages may be about.

        Returns:
            Of decisions and of commits: the total, the key of each record, and the places of the
            records that hold a telling term.
        """
        usual = common_terms()
        with self._store.database.read() as session:
            newest = self._store.newest(session, _MOST_SUBJECTS)
            looks = self._store.probe(session)
            totals = DecisionShelf(looks, "").total, CommitShelf(looks, "").total
        noted = self._commits().noted_terms(_MOST_SUBJECTS)
        found = []
        for total, records in zip(totals, (newest, noted), strict=True):
            terms: dict[str, builtins.list[int]] = {}
            for place, (_, about) in enumerate(records):
                for term in set(about.split()):
                    if usual.get(term, 0.0) < _COMMON_RATE:
                        terms.setdefault(term, []).append(place)
            found.append({"total": total, "keys": [key for key, _ in records], "terms": terms})
        return found

    def reasons(self, question: str) -> builtins.list[str]:
        """Return what people and commits say to a question after a reason.

        Args:
            question: A question; one that does not ask why is answered by nothing.

        Returns:
            Lines, quoted and cited.
        """
        if not _ASKS_WHY.search(question):
            return []
        sure = [each["line"] for each in self.about(question)]
        others = [line_of(each.memory) for each in self.search(question)]
        return list(dict.fromkeys((*sure, *others, *self._commits().lines_named(question))))

    def _recalled(self, session: Session, text: str) -> builtins.list[int]:
        shelf = DecisionShelf(self._store.probe(session), self._project.actor, is_asked=True)
        return [each.no for each in recall(text, shelf, is_asked=True)]

    def _as_decisions(self, memories: Iterable[TypedMemory]) -> builtins.list[Decision]:
        return [
            Decision(each, str(each.data.get("thread") or each.session_id or ""))
            for each in memories
            if each.source == "said"
        ]

    # reading

    def _read(self, thread: WaitingThread, counts: Counter[str]) -> None:
        from smara.decisions.turns import turns_of

        with self._store.database.read() as session:
            after = max(0, thread.last_seq - _MOST_MESSAGES)
            messages = self._messages.between(
                session, thread.no, after, thread.last_seq + 1, _MOST_MESSAGES
            )
            before = self._store.of_thread(session, thread.no)
            erased = self._store.erased(session, [each.id for each in messages])
        turns = turns_of(messages)
        models = self._models()
        ask = None if models.is_offline else partial(choose, models, turns, thread.read_seq)
        weighed = weigh_session(turns)
        drafts = [*assemble(turns, weighed, ask), *draft_plans(turns)]
        for draft in (*drafts, *(hinted := hints(turns, weighed, drafts))):
            origin = turns[draft.quotations[0].turn].message_id
            earlier = self._said_before(thread, draft, origin) if draft in hinted else None
            if origin in erased or (earlier is None and draft in hinted):
                continue
            evidence, draft = self._evidence(turns, draft)
            if origin in before:
                counts["changed"] += self._change(thread, before[origin], draft, evidence)
                continue
            # A plan takes no person's rule out of force.
            amended, left = ([], draft) if draft.is_plan else self._amended(thread, turns, draft)
            if left is not None:
                evidence = [*filter(None, [earlier]), *self._evidence(turns, left)[0]]
                new = self._memory(thread, left, evidence, amended)
                self._add(thread, origin, new, left, counts)
        self._take_back(
            [
                no
                for origin, no in before.items()
                if origin in {each.id for each in messages}
                and origin not in {turns[each.quotations[0].turn].message_id for each in drafts}
            ]
        )
        with self._store.database.write() as session:
            self._store.advance(session, thread.no, thread.last_seq)

    def _take_back(self, numbers: Sequence[int]) -> None:
        """Forget refusals of commands that their session went on to run."""
        found = self._knowledge.ask(self._knowledge.by_numbers, numbers)
        for memory in found.values():
            if memory.is_active and not memory.is_verified and memory.data.get("commands"):
                why = "the refused command was run again in its session"
                self._memories().forget(memory.id, why, by="system")

    def _said_before(self, thread: WaitingThread, draft: Draft, origin: str) -> Evidence | None:
        """Return the same statement of the same person in another session, if there is one."""
        from smara.decisions.turns import turns_of

        text = draft.quotations[0].text
        terms = content_terms(text)
        rates = common_terms()
        rare = sorted(terms, key=lambda term: (rates.get(term, 0.0), -len(term), term))[:_MOST_RARE]
        within = Within(
            self._project.scope.project_no, resource_id=thread.resource_id, roles=("user",)
        )
        with self._store.database.read() as session:
            fulltext = self._store.database.fulltext
            rows = {
                row
                for pair in combinations(rare, 2)
                for row in fulltext.match(session, pair, within, _MOST_FOUND)
            }
            found = self._messages.by_numbers(session, sorted({no_of(row) for row in rows}))
            own = self._messages.find_message(session, origin)
        whole = own[1].raw_content if own is not None else text
        around = content_terms(own_text(whole)) - terms
        others = [each for each in found.values() if each.thread_id != thread.id]
        for each in sorted(others, key=lambda each: -each.created_at):
            own_words = own_text(each.raw_content)
            if not any(_is_same_statement(terms, other) for other in sentences(own_words)):
                continue
            # A session that was imported twice has the message again, a program's prompt its form.
            copied = len(around & content_terms(own_words))
            if each.raw_content == whole or copied > max(1, _SAME_MESSAGE * len(around)):
                continue
            for turn in turns_of([each]):
                for sentence in read_utterances([SpokenTurn("agent", ""), turn]):
                    is_stated = not sentence.facts["question"] and weigh(sentence.facts) >= HINT
                    if is_stated and _is_same_statement(terms, sentence.text):
                        return Evidence(message_id=turn.message_id, quote=sentence.text)
        return None

    def _evidence(
        self, turns: Sequence[SpokenTurn], draft: Draft
    ) -> tuple[builtins.list[Evidence], Draft]:
        """Return a draft's quotations as evidence, one a message.

        The agent's wording is left out if something from outside may speak through it.
        """
        quotes: dict[int, list[str]] = {}
        # The title of a plan is the rule itself.
        for each in draft.quotations[draft.is_plan :] or draft.quotations:
            quotes.setdefault(each.turn, []).append(each.text)
        found = [
            Evidence(message_id=turns[no].message_id, quote=quotation(texts, turns[no].text))
            for no, texts in quotes.items()
        ]
        if draft.wording is not None:
            source = Evidence(message_id=turns[draft.wording.turn].message_id)
            with self._store.database.read() as session:
                if any(each.taint for each in self._sources.shown(session, [source])):
                    draft = draft._replace(wording=None)
        return found, draft

    def _amended(
        self, thread: WaitingThread, turns: Sequence[SpokenTurn], draft: Draft
    ) -> tuple[builtins.list[Amendment], Draft | None]:
        """Return the older decisions in force that a draft amends, and what newer ones leave."""
        text = " ".join((draft.rule, *(each.text for each in draft.quotations)))
        at_ms = turns[draft.quotations[0].turn].at_ms
        with self._store.database.read() as session:
            numbers = self._recalled(session, text)[:_MOST_AMENDED]
            others = self._knowledge.by_numbers(session, numbers)
            speakers = self._store.resources(session, numbers)
        found: builtins.list[Amendment] = []
        left: Draft | None = draft
        for no, each in others.items():
            if not each.is_active or each.session_id == thread.id or left is None or is_plan(each):
                continue
            is_other = speakers.get(no, thread.resource_id) != thread.resource_id
            if each.evidence_at > at_ms and not is_other:
                left = left_by_newer(left, each)
            elif (amended := amendment(draft, each)) is not None:
                found.append(amended._replace(is_conflict=is_other))
        return found, left

    def _memory(
        self,
        thread: WaitingThread,
        draft: Draft,
        evidence: Sequence[Evidence],
        amended: Sequence[Amendment],
    ) -> NewMemory:
        disputed = [each.older for each in amended if each.is_conflict]
        amended = [each for each in amended if not each.is_conflict]
        carried = [each for amendment in amended for each in amendment.carried]
        rejected = [each.text for each in draft.rejected]
        rejected += [text for each in amended for text in each.given_up]
        files = [path for each in amended for path in each.older.files]
        data = {
            "thread": thread.id,
            "alternatives": [shorten(each, 400) for each in rejected[:_MOST_REJECTED]],
            **draft.data,
            "method": draft.method,
            "earlier": [each.quote for each in carried if each.quote],
            "disagrees_with": [each.short_id for each in disputed],
        }
        return NewMemory(
            shorten(draft.rule, _LONGEST_RULE),
            "preference" if draft.is_wish else "decision",
            "said",
            files=list(dict.fromkeys([*self._files_of(draft), *files]))[:_MOST_FILES],
            visibility="personal" if draft.is_wish and draft.is_personal else "project",
            session_id=thread.id,
            evidence=[*evidence, *carried][:_MOST_EVIDENCE],
            supersedes=[each.older.id for each in amended],
            relations=[Relation("conflicts_with", each.id, is_auto=True) for each in disputed],
            data={name: value for name, value in data.items() if value},
        )

    def _add(
        self,
        thread: WaitingThread,
        origin: str,
        new: NewMemory,
        draft: Draft,
        counts: Counter[str],
    ) -> None:
        def index(session: Session, results: Sequence[AddResult]) -> None:
            for result in results:
                if result.outcome == "added" and result.memory is not None:
                    self._index(
                        session, thread, result.memory, origin, draft, amended=result.superseded
                    )

        result = self._memories().add_many([new], by="system", session_id=thread.id, also=index)[0]
        counts["added"] += result.outcome == "added"
        counts["superseded"] += len(result.superseded)

    def _change(
        self, thread: WaitingThread, no: int, draft: Draft, evidence: Sequence[Evidence]
    ) -> bool:
        """Bring a decision of a session that went on up to date."""
        with self._store.database.read() as session:
            memory = self._knowledge.by_numbers(session, [no]).get(no)
            row = self._store.by_numbers(session, [no]).get(no)
        if memory is None or row is None or not memory.is_active or memory.is_verified:
            return False
        rule = shorten(draft.rule, _LONGEST_RULE)
        own = {each.quote for each in memory.evidence}
        data = draft.data
        is_same = rule == memory.content and all(
            memory.data.get(name) == value or not (value or memory.data.get(name))
            for name, value in data.items()
        )
        if is_same and all(each.quote in own for each in evidence):
            return False
        carried = [each for each in memory.evidence if each.quote in memory.data.get("earlier", ())]
        after = self._memories().update(
            memory.id,
            by="system",
            session_id=thread.id,
            content=rule,
            evidence=[*evidence, *carried][:_MOST_EVIDENCE],
            data=data,
        )
        with self._store.database.write() as session:
            self._index(session, thread, after, row.origin, draft)
        return True

    def _index(
        self,
        session: Session,
        thread: WaitingThread,
        memory: TypedMemory,
        origin: str,
        draft: Draft,
        amended: Sequence[str] = (),
    ) -> None:
        places = analyze(" ".join(memory.files))
        found = analyze(draft.about)
        terms = dict.fromkeys((*places.code.split(), *places.prose.split(), *found.code.split()))
        terms |= dict.fromkeys(found.prose.split())
        numbers = self._knowledge.numbers_of_ids(session, [memory.id, *amended])
        no = numbers.pop(memory.id)
        # A task may be described as it was when the older decision was made.
        for row in self._store.by_numbers(session, list(numbers.values())).values():
            terms |= dict.fromkeys(row.about.split())
        self._store.remove(session, list(numbers.values()))
        about = " ".join(list(terms)[: _MOST_TERMS * (1 + len(numbers))])
        row = DecisionRow(no, thread.no, origin, memory.version, about, line_of(memory))
        self._store.put(session, row)

    def _files_of(self, draft: Draft) -> builtins.list[str]:
        """Return the files in which what a decision names is defined."""
        names = sorted(names_in([draft.rule, draft.spoken]), key=lambda each: (-len(each), each))
        defined = self._definitions
        changed = [path for each in draft.files for path in self._in_repository(each)]
        if draft.is_plan:
            return list(dict.fromkeys(changed))[:_MOST_FILES]
        # A change of many files says of none that the decision is about it.
        found = dict.fromkeys(changed if len(changed) <= _MOST_FILES // 2 else ())
        for name in names[:_MOST_NAMES]:
            places = defined.get(name, ())
            # Neither does a name that stands for many things.
            if len(places) <= _MOST_FILES // 2:
                found |= dict.fromkeys(places)
        return list(found or self._files_called(draft))[:_MOST_FILES]

    def _files_called(self, draft: Draft) -> dict[str, None]:
        """Return the file whose name is made of telling words of a decision, if it is one."""
        spoken = content_terms(" ".join((draft.rule, *(each.text for each in draft.quotations))))
        listed = self._called if self._definitions else ()
        called = [places for parts, places in listed if spoken.issuperset(parts)]
        found = dict.fromkeys(path for places in called for path in places)
        return found if len(found) == 1 else {}

    def _in_repository(self, path: str) -> builtins.list[str]:
        """Return the tracked file that a host's path names, if any."""
        plain = path.replace("\\", "/")
        places = self._definitions.get(plain.rpartition("/")[2], ())
        return [each for each in places if plain == each or plain.endswith(f"/{each}")]

    @property
    def _definitions(self) -> Mapping[str, Sequence[str]]:
        """What is defined in which file of the repository as it is checked out."""
        root = self._root()
        if root is None:
            return {}
        if self._defined[0] != root:
            self._defined = (root, definitions(root))
            usual = common_terms()
            files = [each for each in self._defined[1].items() if "." in each[0]]
            parts = [(content_terms(name.partition(".")[0]), places) for name, places in files]
            # A file that is called by ordinary words alone, as main or tests, is called by nothing.
            self._called = [each for each in parts if not usual.keys() >= each[0]]
        return self._defined[1]


def _is_same_statement(terms: set[str], sentence: str) -> bool:
    """Return True for a sentence that says little more or less than the terms of another."""
    others = content_terms(sentence)
    return len(terms & others) >= max(2, _SAME_WORDS * max(len(terms), len(others)))


def _report(threads: int, counts: Counter[str], is_all: bool = True) -> DecisionReport:
    return DecisionReport(
        threads,
        added=counts["added"],
        changed=counts["changed"],
        superseded=counts["superseded"],
        is_all=is_all,
    )


def line_of(memory: TypedMemory, most: int = LONGEST) -> str:
    """Return a decision as the line that agents are told."""
    line = _line(memory, most)
    while (tokens := tokens_of(line)) > MOST_TOKENS and most > 200:
        most = int(0.95 * most * MOST_TOKENS / tokens)
        line = _line(memory, most)
    return line


def _line(memory: TypedMemory, most: int) -> str:
    if is_plan(memory):
        return plan_line(
            memory.short_id,
            str(memory.data.get("thread") or memory.session_id or ""),
            memory.evidence_at,
            title=memory.content,
            reason=str(memory.data.get("rationale") or ""),
        )
    earlier = memory.data.get("earlier", ())
    return decision_line(
        memory.short_id,
        str(memory.data.get("thread") or memory.session_id or ""),
        memory.evidence_at,
        rule=memory.content,
        quotations=[
            each.quote for each in memory.evidence if each.quote and each.quote not in earlier
        ],
        earlier=[str(each) for each in earlier],
        rejected=[str(each) for each in memory.data.get("alternatives", ())],
        is_agents_wording=memory.data.get("wording") == "agent",
        disagrees_with=[str(each) for each in memory.data.get("disagrees_with", ())],
        most=most,
    )

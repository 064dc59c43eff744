"""List every weight of the ranking, for all sources.

:data:`WEIGHTS` holds the numbers that decide an order; ``docs/howto/change-the-ranking.md`` tells
how to change one. Only the weights of memory types in a phase stand elsewhere, with the types.

Comments say what another value would change. L is LoCoMo R@10, S is LongMemEval_S R@5, U is the
union haystack R@10, C is CoSQA MRR@10, all on the development parts; one question is 1.05 points of
S and U, so most differences there are noise.
"""

from __future__ import annotations

from collections.abc import Mapping

from smara.core.startup.record import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class WordWeights:
    """The weights of BM25 for one source."""

    # How soon repetition of a term stops counting; k1 of BM25.
    saturation: float
    # How much a long text is held back; b of BM25.
    length_penalty: float
    # The parts of a name in the query, against the name itself.
    part_weight: float
    # Words such as "days", "ago" and "python" that are asked for more often than written.
    weak_weight: float = 0.3
    # A term in the title, path or name of a text, against one in its body.
    head_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class MessageWeights:
    """The weights of messages and threads beside BM25."""

    # Terms of the messages next to this one, and of those two away. Neither: L -13.7; only the
    # nearest: L -4.6.
    near_weight: float = 0.5
    far_weight: float = 0.25
    # Among chunks of code a term of the first line counts so many times more. 0: C -2.1.
    first_count: float = 2.0
    # Two words of the query side by side. 0: U -0.5, L -0.1, C -0.6; 0.4: U -1.1.
    pair_weight: float = 0.2
    # A quoted phrase that stands in the message. By decision, not measured.
    phrase_weight: float = 1.0
    # How much of a term is counted by who wrote it inside a thread's sum, where long answers would
    # drown the questions. All 1.0: U -6.7, S -1.5. Tool and system: by analogy.
    thread_roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 0.15, "tool": 0.1, "system": 0.1}
    )
    # How soon repetition inside a thread stops counting. 1.0: U -2.0, S -0.7; 3.0: U -0.5, S -1.3.
    thread_saturation: float = 2.0
    # The best message of a thread, against the sum of its messages. 0: S -1.3, U -1.3; 1.0: U -2.7,
    # S -1.0.
    best_weight: float = 0.3
    # The same of an answer, against a message of the user. 1.0: U -2.2; 0.2: S -1.4.
    best_answer: float = 0.5
    # A thread is judged by its best messages, so that a very long one has little advantage. Not
    # measured.
    most_messages_of_thread: int = 40
    # A message from the time that the query names. 0: L -1.2, U -0.4; 0.8: L +0.3.
    period_weight: float = 0.4
    # A message of this moment gains 3 %, one of a month ago 1.5 %: enough to order equal matches,
    # never more.
    recency_weight: float = 0.03
    half_life_days: float = 30.0


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """The weights of meaning; the words of the best hit count 1."""

    # One standard deviation of cosine where all sources meet, for prose and for code, where names
    # hide what meaning shows. The order among messages has weights of its own: ranker.json.
    message_meaning: float = 0.03
    code_meaning: float = 0.17
    # The same of the closest message of a user in a thread. 0.08: S -0.4 over both parts.
    thread_meaning: float = 0.12
    # What is of the days that "two weeks ago" means.
    days_bonus: float = 0.6
    # How much of the best messages goes into the vector of the second round, and how many they are.
    feedback: float = 0.5
    feedback_rows: int = 10
    # Without a word in common, a cosine at or below it is no answer: in any store something is
    # nearest.
    floor: float = 0.25
    # A chunk that defines a name of the query, on the scale on which holding every word once is 1.
    defines: float = 0.5
    # A cross-encoder's share of the score; the rest is what words and meaning said.
    reranker: float = 0.8
    # What a quoted phrase adds to the merit of a message that holds it: quotation marks ask for
    # words that stand together, whatever else is known of a row. By decision, not measured.
    quoted: float = 20.0


@dataclass(frozen=True, slots=True)
class BoostWeights:
    """The factors of trust, source, files and age."""

    source_trust: Mapping[str, float] = field(
        default_factory=lambda: {
            "user_taught": 1.4,
            "said": 1.3,
            "agent_explicit": 1.2,
            "qa_auto": 1.1,
            "mcp_auto": 1.0,
            "commit_auto": 1.0,
            "observer_inferred": 0.85,
        }
    )
    # Where a message answers about as well as a note of it, the message comes first. The same for
    # code: it holds every name there is, and why it is so was said elsewhere.
    derived: Mapping[str, float] = field(
        default_factory=lambda: {"observation": 0.6, "reflection": 0.55, "code": 0.6}
    )
    unconfirmed: float = 0.85
    tainted: float = 0.7
    least_confident: float = 0.3
    # A question of the past that asks the same is no answer to it; one of which so much stands in
    # the query asks the same.
    same_question: float = 0.4
    same_share: float = 0.6
    # About a file that the caller works on.
    in_play: float = 1.2
    # What is new gains 3 %, half of it after a half-life.
    newest: float = 0.03
    half_life_days: float = 30.0
    # In a search of memories alone: the share of its score that no confidence costs.
    confidence_share: float = 0.3
    # In a search of tasks alone: what a task that is not closed gains.
    unfinished: float = 0.05


@dataclass(frozen=True, slots=True)
class IssueWeights:
    """The weights that locate a file by an issue."""

    title: float = 3.0
    # What stands in the text three times or more counts twice; a log that repeats a name a hundred
    # times says no more.
    most_repeated: float = 2.1
    number_weight: float = 0.3
    best_chunks: int = 6
    defines: float = 0.1
    # A repeated name gains this for each unit of the logarithm of its count.
    repeated_name: float = 0.3
    # A definition by its kind; what is not listed counts like a constant.
    kinds: Mapping[str, float] = field(
        default_factory=lambda: {
            "class": 1.0,
            "function": 1.0,
            "method": 0.8,
            "route": 0.8,
            "constant": 0.5,
        }
    )
    # Examples and documentation, and the code of others.
    aside: float = 0.7
    carried: float = 0.8


@dataclass(frozen=True, slots=True)
class LogisticRow:
    """The weights of one logistic model; see ``search/relevance.py``."""

    start: float
    words: float
    coverage: float
    unknown: float
    unknown_names: float
    cosine: float = 0.0


@dataclass(frozen=True, slots=True)
class RelevanceWeights:
    """The models of relevance, and the bounds below which nothing is found.

    Made by ``python -m evals.nothing_found`` from the development parts of LoCoMo, LongMemEval_S
    and CoSQA, and from questions of each put to stores of the others.
    """

    with_meaning: LogisticRow = LogisticRow(-6.23, 2.37, 3.12, -2.37, -4.55, cosine=12.13)
    words_alone: LogisticRow = LogisticRow(-4.07, 6.1, 3.77, -2.02, -4.4)
    # If no hit is this relevant, nothing was found.
    bound: float = 0.04
    # Among hits, what is less relevant is left out.
    least: float = 0.02
    # The same for what is less than so much of the most relevant.
    share: float = 0.04
    # A hit that is more likely an answer than not.
    good: float = 0.5
    # So many are shown where nothing was found.
    nearest: int = 3
    # A text that holds all parts of a name, and not the name, holds so much of it.
    parts: float = 0.6
    # One with less of the parts, by letters, does not hold it: ``schema`` is not ``LoginSchema``.
    least_parts: float = 2 / 3
    # Two texts in Japanese are nearer by so much than two in English, whatever they say. It is
    # half of what was measured: mean cosines of 0.50 and 0.71 in two sets (Chinese 0.36 and 0.56,
    # English 0.14 and 0.13). All of it refuses a quarter of what can be answered.
    same_script: tuple[tuple[str, float], ...] = (("ja", 0.25), ("zh", 0.15))
    # A sentence without spaces has bigrams across its words; so many of them are all of it.
    enough_bigrams: float = 0.4

    def at_least(self, score: float | None) -> RelevanceWeights:
        """Return them with another bound, if one is given."""
        return self if score is None else replace(self, bound=score, least=score, share=0.0)


@dataclass(frozen=True, slots=True)
class AmendWeights:
    """The bounds at which a later word amends an earlier one."""

    # Two conversations are about one subject that share so much of their words, by rarity.
    share: float = 0.18
    # Of the best hits those answer alike that are this relevant, and nearly as much as another.
    sure: float = 0.9
    nearly: float = 0.97


@dataclass(frozen=True, slots=True)
class CopyWeights:
    """The bounds at which a hit repeats a better one."""

    # The share of the lines of the shorter text that stand in both.
    shared_lines: float = 0.3
    # The share of a stretch, at each end, that may differ: it is cut where its words happen to end.
    edge: float = 0.15


@dataclass(frozen=True, slots=True)
class PackWeights:
    """The evidence of a message beside a hit, step by step."""

    # What follows a hit tells more: conclusions and corrections come later.
    after: float = 0.8
    before: float = 0.6


@dataclass(frozen=True, slots=True)
class Weights:
    """Every weight of the ranking; one set serves all evaluation sets."""

    # saturation 0.8: L -0.4, C -0.4; 2.0: L -1.1, C -1.0. length_penalty, for a message with its
    # surroundings, 0.4: C -0.9; 0.75: L -0.3. weak_weight 1.0: S -1.2, U -1.1, L -0.1. part_weight:
    # the sets hold too few names to tell.
    message_words: WordWeights = WordWeights(1.2, 0.5, part_weight=0.6)
    record_words: WordWeights = WordWeights(1.2, 0.6, part_weight=0.5, head_weight=3.0)
    code_words: WordWeights = WordWeights(1.2, 0.3, part_weight=0.75, head_weight=3.0)
    messages: MessageWeights = field(default_factory=MessageWeights)
    fusion: FusionWeights = field(default_factory=FusionWeights)
    boost: BoostWeights = field(default_factory=BoostWeights)
    issues: IssueWeights = field(default_factory=IssueWeights)
    relevance: RelevanceWeights = field(default_factory=RelevanceWeights)
    amend: AmendWeights = field(default_factory=AmendWeights)
    copies: CopyWeights = field(default_factory=CopyWeights)
    pack: PackWeights = field(default_factory=PackWeights)


WEIGHTS = Weights()

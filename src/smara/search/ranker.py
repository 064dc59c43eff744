"""Order messages by a learned linear model.

Each row is described by sixteen facts (:data:`FACTS`). How much each counts depends on what the
conversations look like: people among themselves, code, an assistant that answers briefly, or one
that answers at length. Between two looks the weights are mixed. ``ranker.json`` holds one table a
look, with hashes of the data; ``python -m tests.train_ranking`` writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from smara.core.startup.regex import re, regex
from smara.search.rank import MessageCandidate, RowWords

FACTS = (
    "words",
    "own words",
    "coverage",
    "words around it",
    "meaning",
    "meaning around it",
    "length",
    "answer",
    "long answer",
    "answer asked for",
    "days",
    "time",
    "early in its thread",
    "words of its thread",
    "meaning of its thread",
    "three nearest of its thread",
)
"""What is known of a row, in the order of the tables.

Words are roots of a share of the best; meaning is in standard deviations of the candidates.
"""
LOOKS = ("people", "code", "brief", "lengthy")
# With so large a share of answers among the candidates, it is a talk with an assistant.
_FEWEST_ANSWERS = 0.1
# An assistant that writes so many times as much as the user answers briefly, or at length.
_BRIEF, _LENGTHY = 1.5, 3.0
_LONGEST, _LONGEST_ANSWER = 200, 1_000
_ASKS_ASSISTANT = regex(r"\byou(?:rs?)?\b", re.IGNORECASE)


@cache
def tables() -> Mapping[str, Sequence[float]]:
    """Return the weights of each look."""
    text = Path(__file__).with_name("ranker.json").read_text("utf-8")
    weights: dict[str, dict[str, float]] = json.loads(text)["weights"]
    return {look: tuple([weights[look][fact] for fact in FACTS]) for look in LOOKS}


def look_of(rows: Sequence[MessageCandidate], code_share: float) -> tuple[float, ...]:
    """Return how far the rows have each of the looks; together 1.

    An assistant that writes 2.25 times as much as the user is half brief, half lengthy.
    """
    answers = [row.length for row in rows if row.role != "user"]
    written = sum([row.length for row in rows]) - sum(answers)
    users = len(rows) - len(answers)
    talk = min(1.0, len(answers) / (_FEWEST_ANSWERS * max(len(rows), 1)))
    ratio = (sum(answers) / max(len(answers), 1)) / max(written / max(users, 1), 1.0)
    lengthy = talk * min(1.0, max(0.0, (ratio - _BRIEF) / (_LENGTHY - _BRIEF)))
    return ((1 - talk) * (1 - code_share), (1 - talk) * code_share, talk - lengthy, lengthy)


def describe(
    text: str,
    rows: Sequence[MessageCandidate],
    words: Sequence[RowWords],
    meaning: Sequence[float],
    around: Sequence[float],
    times: Sequence[tuple[bool, bool]],
) -> list[tuple[float, ...]]:
    """Return the facts of each row.

    Args:
        text: The query.
        rows: The candidates.
        words: What words bring to each.
        meaning: The cosine of each in deviations, 0 where nothing is known of it.
        around: The same of the nearer of its neighbors.
        times: Whether each is of the days, and of the period, that the query names.
    """
    most = max([each.score for each in words], default=0.0) or 1.0
    most_own = max([each.own for each in words], default=0.0) or 1.0
    roots = [math.sqrt(each.own / most_own) for each in words]
    threads: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        threads.setdefault(row.thread_no, []).append(place)
    # Of each thread its two best by words and its three nearest: what the others of it say.
    words_of = {no: sorted([roots[n] for n in each])[:-3:-1] for no, each in threads.items()}
    near_of = {no: sorted([meaning[n] for n in each])[:-4:-1] for no, each in threads.items()}
    is_asked = _ASKS_ASSISTANT.search(text[:1_000]) is not None
    found: list[tuple[float, ...]] = []
    for place, (row, each) in enumerate(zip(rows, words, strict=True)):
        best, nearest = words_of[row.thread_no], near_of[row.thread_no]
        is_alone = len(best) < 2
        # A name is as good in an answer as in a question; prose of an answer is not.
        answer = 0.0 if row.role == "user" else 1 - each.in_code
        found.append(
            (
                math.sqrt(each.score / most),
                each.own / most_own,
                each.coverage,
                each.near,
                meaning[place],
                around[place],
                math.log1p(min(row.length, _LONGEST)),
                answer,
                answer * math.log1p(min(row.length, _LONGEST_ANSWER)),
                answer if is_asked else 0.0,
                float(times[place][0]),
                float(times[place][1]),
                # The place of one that stands alone in its thread tells nothing, and it speaks for
                # the whole: what was said in passing is no worse than a long conversation.
                0.0 if is_alone else 1 / (1 + row.seq),
                best[0] if is_alone or roots[place] < best[0] else best[1],
                nearest[0] if is_alone or meaning[place] < nearest[0] else nearest[1],
                sum(nearest) / len(nearest),
            )
        )
    return found


def mix(look: Sequence[float]) -> list[float]:
    """Return the weight of each fact for a mixture of looks."""
    columns = zip(*[tables()[name] for name in LOOKS], strict=True)
    return [sum([a * b for a, b in zip(look, each, strict=True)]) for each in columns]

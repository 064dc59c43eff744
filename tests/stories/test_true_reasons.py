"""Every reason that an answer gives stands in the text it is given for.

The reader here shares nothing with the writer: it looks for the named word in the text itself.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import smara

CODE = '''"""Forms of the shop."""


class OrderSchema:
    """What an order must hold before the cutoff."""

    def validate_total(self, order, cutoff_us):
        return order.total > 0 and order.placed_us < cutoff_us
'''
OTHER = '''"""How tokens are weighed."""


def weigh(tokens, src):
    return [token for token in tokens if token in src]
'''
SAID = (
    "We keep the login form in two steps, the schema comes later.",
    "Totals are rounded late: early rounding lost cents in the checkout.",
    "The duplicate messages came from the retry; the fix was an idempotency key.",
)
QUERIES = (
    "weights of shop orders", "validating schemas placed before the cutoff",
    "weighing tokens fails in shop/weights.py:4 with the forms of others",
    "LoginSchema", "enticateUs", "src/shop/auth/tokens.py", "OrderSchema.validate_total",
    "rounding_errors", "why were totals rounded late", "idempotencyKey duplicates", "order cutoff",
)  # fmt: skip
# A reason names a word, or a part of one: "schema of LoginSchema in the code".
_REASON = re.compile(
    r"(?:matches |defines )?(?P<words>.+?)"
    r"(?: \(name\)| in the (?:code|title|text|path)| in its (?:path|lines beside definitions)"
    r"| in [\w.]+)?\Z"
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("tree")
    for path, text in {"shop/forms.py": CODE, "shop/weights.py": OTHER}.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    with smara.open(root / "smara.db", embed_in_background=False) as memory:
        for number, text in enumerate(SAID):
            memory.messages.add(thread_id=f"t{number}", role="user", content=text)
        memory.memories.remember(SAID[1], type="decision", actor="ann")
        memory.tasks.add("Write the schema of the login form")
        memory.embeddings.embed_pending()
        memory.code.index(str(root))
        yield memory


def cited(reason: str) -> list[str]:
    """The words that a reason says are in the text; none for one about time or meaning."""
    if reason.startswith(("close in meaning", "recent", "from ", "near:", "the only")):
        return []
    words = _REASON.match(reason)["words"]  # type: ignore[index]
    return [each.partition(" of ")[0].partition(" (contains")[0] for each in words.split(", ")]


def stands_in(word: str, text: str) -> bool:
    """Whether a text holds a word, in whatever form: all but its ending, signs apart."""
    plain, where = (re.sub(r"[\W_]", "", each.casefold()) for each in (word, text))
    return plain[: max(3, len(plain) - 3)] in where


@pytest.mark.parametrize("query", QUERIES)
def test_a_reason_names_what_stands_in_the_hit(memory: smara.Memory, query: str) -> None:
    for hit in memory.search(query, sources=("code", "messages", "memories", "tasks")):
        for reason in hit.why:
            # What is said to be in the code is looked for there, and not in the path above it.
            text = f"{hit.title or ''} {' '.join(hit.files)} {hit.content}"
            text = hit.content if reason.endswith(" in the code") else text
            for word in cited(reason):
                assert stands_in(word, text), (reason, text)


@pytest.mark.parametrize("query", QUERIES)
def test_a_file_that_is_located_holds_what_is_said_of_it(memory: smara.Memory, query: str) -> None:
    [tree] = memory.code.trees()
    root = Path(tree.root)
    for found in memory.code.locate(query):
        lines = (root / found.path).read_text().splitlines()
        chunk = "\n".join(lines[found.first_line - 1 : found.last_line])
        for reason in found.why:
            text = found.path if reason.endswith(" in its path") else chunk
            text = "\n".join(lines) if reason.startswith("defines") else text
            for word in cited(reason):
                assert stands_in(word, text), (reason, text)


def test_the_reader_of_this_suite_catches_a_false_reason() -> None:
    assert not stands_in(cited("LoginSchema in the code")[0], CODE)
    assert stands_in(cited("schema of LoginSchema in the code")[0], CODE)

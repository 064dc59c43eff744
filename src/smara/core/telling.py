"""The block in which memory speaks to an agent unasked, and how its own words are known when they
come back.

Hosts write what a hook told them into their transcripts. Taken from there like everything else,
memory would remember its own words as something that was said, find them, and tell them again.
"""

from __future__ import annotations

OPENING, CLOSING = "<smara-memory>", "</smara-memory>"


def without_told(text: str) -> str:
    """A text without the blocks in which memory spoke; itself when there are none.

    >>> without_told("<smara-memory>\\n- Known.\\n</smara-memory>")
    ''
    >>> without_told("Before <smara-memory>x</smara-memory>after"), without_told("<smara-memory> is how it opens")
    ('Before after', '<smara-memory> is how it opens')
    """  # noqa: E501
    kept: list[str] = []
    rest = text
    while True:
        before, opened, after = rest.partition(OPENING)
        _, closed, after = after.partition(CLOSING)
        if not (opened and closed):
            return text if not kept else "".join([*kept, rest]).strip()
        kept.append(before)
        rest = after

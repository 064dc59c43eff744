"""Mark injected memory with a block, and remove it from transcripts.

Hosts write what a hook injected into their transcripts. Without removal, an import would
store our own words as a message. Hooks load this module: it imports nothing.
"""

from __future__ import annotations

OPENING, CLOSING = "<smara-memory>", "</smara-memory>"


def without_memory_blocks(text: str) -> str:
    """Remove the blocks in which memory spoke from a text.

    >>> without_memory_blocks("<smara-memory>\\n- Known.\\n</smara-memory>")
    ''
    >>> without_memory_blocks("Before <smara-memory>x</smara-memory>after"), without_memory_blocks("<smara-memory> is how it opens")
    ('Before after', '<smara-memory> is how it opens')
    """  # noqa: E501
    outside: list[str] = []
    rest = text
    while True:
        before, opened, after = rest.partition(OPENING)
        _, closed, after = after.partition(CLOSING)
        if not (opened and closed):
            return text if not outside else "".join([*outside, rest]).strip()
        outside.append(before)
        rest = after

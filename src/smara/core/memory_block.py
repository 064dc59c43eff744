"""Mark injected memory with a block, and remove it from transcripts.

Hosts write what a hook injected into their transcripts. Without removal, an import would
store our own words as a message. Hooks load this module: it imports next to nothing.
"""

from __future__ import annotations

OPENING, CLOSING = "<smara-memory>", "</smara-memory>"
_PIECES = r"([A-Z]?[a-z]+|[A-Z]+)|(\d+)|([^\sA-Za-z\d]+)"


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


def cites_thread(line: str, thread_id: str) -> bool:
    """Return True if a line cites a thread.

    >>> cites_thread("- Said by a person: … [Memory #m-1, Thread june]", "june")
    True
    """
    return bool(thread_id) and f"Thread {thread_id}]" in line


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text, rather too many.

    A tokenizer's tables take longer to load than all the rest.

    Words are cut after five letters, numbers after three digits, signs after two. On prose and code
    that gives about an eighth more than the tokenizer does, on made-up names about as much.

    >>> tokens_of("Redis must run before the tests"), tokens_of("`refresh_tokens()` at src/auth.py:10")
    (7, 16)
    """  # noqa: E501
    from re import findall

    count = 0.0
    for word, digits, signs in findall(_PIECES, text):
        if word:
            count += -(-len(word) // 5)
        elif digits:
            count += -(-len(digits) // 3)
        else:
            count += -(-len(signs) // 2) if signs.isascii() else 0.9 * len(signs)
    return -int(-count // 1)

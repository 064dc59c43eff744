"""What a host puts around the words of others when it passes on those of hooks, taken off again.

Gemini CLI wraps what a hook says and puts it before the prompt, behind it, or behind a
tool's result. Kept as it is, a session's first prompt would be ours, and our own words
would be remembered as what somebody said.
"""

from __future__ import annotations

from smara.core.telling import without_told

OPENING, CLOSING = "<hook_context>", "</hook_context>"


def own_words(text: str) -> str:
    """A text without the blocks of hooks that stand before it or behind it.

    >>> own_words("<hook_context>We know this.</hook_context>\\n\\nMend it")
    'Mend it'
    >>> own_words("3 passed\\n\\n<hook_context>We know this.</hook_context>")
    '3 passed'
    """
    return _divided(text)[1]


def words_of_hooks(text: str) -> str:
    """What the blocks say that :func:`own_words` takes off, without what memory itself said in
    them.

    >>> words_of_hooks("<hook_context>The build is red.</hook_context>\\n\\nMend it")
    'The build is red.'
    >>> words_of_hooks("<hook_context>Mend it first.</hook_context>Mend it")
    'Mend it first.'
    >>> words_of_hooks("<hook_context>&lt;smara-memory&gt;- Known.&lt;/smara-memory&gt;</hook_context>\\n\\nMend it")
    ''
    """  # noqa: E501
    before, _, after = _divided(text)
    inside = f"{before}{after}".replace(OPENING, "").replace(CLOSING, "")
    return without_told(as_said(inside)).strip()


def as_said(text: str) -> str:
    """What stands in a block as the hook said it; the host writes brackets out."""
    return text.replace("&lt;", "<").replace("&gt;", ">")


def _divided(text: str) -> tuple[str, str, str]:
    """The blocks before a text, the text itself, the blocks behind it."""
    rest = text
    while rest.startswith(OPENING) and CLOSING in rest:
        rest = rest.partition(CLOSING)[2].lstrip()
    own = rest
    while own.rstrip().endswith(CLOSING) and OPENING in own:
        own = own[: own.rindex(OPENING)].rstrip()
    return text[: len(text) - len(rest)], own, rest[len(own) :]

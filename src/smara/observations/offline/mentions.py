"""Files and lines that a text mentions."""

from __future__ import annotations

from smara.core.wordlists import word_set

_EXTENSIONS = word_set(
    "py pyi ts tsx js jsx mjs cjs md json jsonl yaml yml toml ini cfg conf lock sh c h cc cpp hpp "
    "cs go rs rb php java"
    " kt swift scala ex exs heex erl hs lua sql html css scss vue svelte xml csv txt log env db "
    "proto graphql tf ipynb"
    " gradle"
)
_AROUND = "\"'`()[]{}<>,;!?*@“”‘’—…"
_MOST = 24
_LONGEST = 200
_READ_CHARACTERS = 20_000


def files_in(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The files that a text names, in order, and the line numbers given with them."""
    files: dict[str, None] = {}
    lines: dict[int, None] = {}
    if "." in text:
        for chunk in text[:_READ_CHARACTERS].split():
            if "." in chunk and len(chunk) <= _LONGEST and len(files) < _MOST:
                _take(chunk.strip(_AROUND), files, lines)
    return tuple(files), tuple(lines)


def _take(word: str, files: dict[str, None], lines: dict[int, None]) -> None:
    """A word that may be a file: ``src/auth.ts``, ``auth.ts:45``, ``auth.ts:45-60``."""
    name, _, place = word.partition(":")
    name = name.rstrip(".").strip(_AROUND)
    if not _is_file(name):
        return
    files.setdefault(name)
    for number in place.replace("-", ":").split(":")[:2]:
        if number.isascii() and number.isdigit() and len(number) < 7:
            lines.setdefault(int(number))


def _is_file(name: str) -> bool:
    stem, _, extension = name.rpartition(".")
    if extension.lower() not in _EXTENSIONS or "//" in name:
        return False
    return not stem or stem[-1].isalnum() or stem[-1] in "_-/]"

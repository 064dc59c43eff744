"""Redact JSON-like data: strings, keys, and values that a telling key makes secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smara.secrets.redact import redact

Frame = tuple[Any, str, Iterator[tuple[Any, Any]], list[Any]]


def redact_value(value: Any) -> tuple[Any, int]:
    """Return a copy without secrets and how many were replaced.

    Dicts, lists and tuples are walked to any depth without recursion; a part
    that occurs several times is walked once, and a part that contains itself
    ends in `[CYCLE]`. Anything else that is not a string is kept as it is.
    """
    return _Walk().run(value)


class _Walk:
    def __init__(self) -> None:
        self.count = 0
        self.done: dict[tuple[int, str], Any] = {}
        self.open: set[tuple[int, str]] = set()

    def run(self, value: Any) -> tuple[Any, int]:
        result: list[Any] = []
        stack: list[Frame] = [(None, "", iter([("", value)]), result)]
        while stack:
            container, name, entries, out = stack[-1]
            entry = next(entries, None)
            if entry is None:
                stack.pop()
                if stack:
                    self._close(container, name, out, stack[-1][3])
                continue
            key, item = entry
            self._enter(item, key, out, stack)
        return result[0], self.count

    def _enter(self, item: Any, name: str, out: list[Any], stack: list[Frame]) -> None:
        if isinstance(item, str):
            out.append(self._text(item, name))
        elif isinstance(item, dict | list | tuple):
            identity = (id(item), name)
            if identity in self.done:
                out.append(self.done[identity])
            elif identity in self.open:
                out.append("[CYCLE]")
            else:
                self.open.add(identity)
                stack.append((item, name, _entries(item, name), []))
        else:
            out.append(item)

    def _close(self, container: Any, name: str, out: list[Any], parent: list[Any]) -> None:
        if isinstance(container, dict):
            built: Any = self._dict(container, out)
        else:
            built = tuple(out) if isinstance(container, tuple) else out
        self.open.discard((id(container), name))
        self.done[id(container), name] = built
        parent.append(built)

    def _dict(self, original: dict[Any, Any], values: list[Any]) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for key, value in zip(original, values, strict=True):
            plain = self._text(key, "") if isinstance(key, str) else key
            number = 2
            while plain in built:  # two keys that held different secrets of one kind
                plain, number = f"{self._text(key, '')}#{number}", number + 1
            built[plain] = value
        return built

    def _text(self, text: str, name: str) -> str:
        redaction = redact(text)
        if name and not redaction.findings:
            return self._named(text, name)
        self.count += len(redaction.findings)
        return redaction.text

    def _named(self, text: str, name: str) -> str:
        """Judge a value together with its key, as the assignment that it is."""
        opening = f'{name}="'
        redaction = redact(f'{opening}{text}"')
        inside = [f for f in redaction.findings if f.start == len(opening) and f.end == len(opening) + len(text)]
        if not inside:
            return text
        self.count += 1
        return inside[0].placeholder


def _entries(container: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a container with the name each is known by; a list's parts go by the list's name."""
    if isinstance(container, dict):
        for key, item in container.items():
            yield (key if isinstance(key, str) else ""), item
    else:
        for item in container:
            yield name, item

"""Load prompts from Markdown files beside the code that uses them.

The head of a file gives its name, version and inputs. The version is stored with every
row that the prompt produced.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from smara.core.startup.record import dataclass
from smara.core.startup.regex import re, regex

_FILE = regex(r"---\n(.*?)\n---\n(.*)", re.DOTALL)
_INPUT = regex(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text for a model, and the version of it."""

    name: str
    version: int
    inputs: tuple[str, ...]
    text: str

    def render(self, values: Mapping[str, str] | None = None) -> str:
        """Render the text with its inputs; inputs are not expanded.

        Raises ``ValueError`` when an input is missing or unknown, which is a bug of the caller.
        """
        given = dict(values or {})
        if set(given) != set(self.inputs):
            raise ValueError(f"prompt {self.name} takes {self.inputs}, not {tuple(given)}")
        return _INPUT.sub(lambda match: given[match[1]], self.text)


@lru_cache(maxsize=64)
def load_prompt(folder: Path, name: str) -> Prompt:
    """The prompt ``name`` of a room's folder; read once."""
    return parse_prompt((folder / f"{name}.md").read_text(encoding="utf-8"))


def parse_prompt(content: str) -> Prompt:
    """A prompt from the content of its file.

    >>> parse_prompt("---\\nname: greet\\nversion: 2\\ninputs: who\\n---\\nHello {{who}}.\\n").render({"who": "you"})
    'Hello you.'
    """  # noqa: E501
    found = _FILE.fullmatch(content)
    if found is None:
        raise ValueError("a prompt begins with a head between two lines of ---")
    entries = (line.partition(":") for line in found[1].splitlines())
    head = {name.strip(): value.strip() for name, _, value in entries}
    text = found[2].strip()
    inputs = tuple(name.strip() for name in head.get("inputs", "").split(",") if name.strip())
    if set(_INPUT.findall(text)) != set(inputs):
        raise ValueError(f"prompt {head.get('name')} must use each of its inputs, and no others")
    return Prompt(head["name"], int(head["version"]), inputs, text=text)

"""What a test file is called after."""

from __future__ import annotations

import re

_AFFIXES = re.compile(
    r"^(?:test_|tests_|Test(?=[A-Z]))|(?:[._-](?:tests?|spec)|(?<=[a-z0-9])(?:Tests?|TestCase|IT"
    r"|Spec))$"
)


def tested_stem(path: str) -> str | None:
    """What a test file is named after: ``tests/test_client.py`` gives ``client``; ``None`` if its
    name does not say.

    A file that merely stands in a folder of tests is named after nothing.
    """
    stem = path.rpartition("/")[2].rpartition(".")[0]
    bare = _AFFIXES.sub("", stem)
    return bare if bare and bare != stem else None

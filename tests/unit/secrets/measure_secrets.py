"""Measure recall, precision and cost of redaction, and print them.

    python tests/unit/secrets/measure_secrets.py [FILE.jsonl.gz ...]

The files, if any, are records whose strings are redacted and timed (processor time).
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from secret_samples import BLOCKS, CARRIED, FORMATS, assignments, carriers, make

from smara.secrets import redact, scan


def main(paths: list[str]) -> None:
    dice = random.Random(int(time.time()))
    lines = [
        f"vendor formats      {formats(dice, 5)}",
        f"named carriers      {carried(dice, 40)}",
        f"generic assignments {generic(dice, 24_000)}",
        f"standard library    {standard_library()}",
        *(f"{Path(path).name[:19]:19} {cost(path)}" for path in paths),
    ]
    sys.stdout.write("\n".join([*lines, ""]))


def formats(dice: random.Random, repeats: int) -> str:
    found = total = 0
    for template in [*FORMATS.values(), *BLOCKS.values()] * repeats:
        text, secret = make(template, dice)
        for carrier, written in carriers(text).items():
            encoded = secret
            for _ in range(carrier.count("json")):
                encoded = json.dumps(encoded)[1:-1]
            redacted = redact(written).text
            total += 1
            found += not any(
                encoded[at : at + 8] in redacted for at in range(4, len(encoded) - 8, 4)
            )
    return f"{found} of {total} found, {found / total:.2%}"


def carried(dice: random.Random, repeats: int) -> str:
    found = total = 0
    for template in [*CARRIED.values()] * repeats:
        text, secret = make(template, dice)
        total += 1
        found += secret not in redact(text).text
    return f"{found} of {total} found, {found / total:.2%}"


def generic(dice: random.Random, count: int) -> str:
    found = sum(value not in redact(text).text for text, value in assignments(dice, count))
    return f"{found} of {count} found, {found / count:.2%}"


def standard_library() -> str:
    lines = hits = 0
    for path in Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"):
        if "site-packages" not in path.parts:
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            lines += text.count("\n") + 1
            hits += len(scan(text))
    return f"{hits} hits in {lines} lines, {hits / lines * 10_000:.2f} for each 10,000"


def cost(path: str) -> str:
    texts = list(strings(path))
    kilobytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1024
    seconds = []
    for _ in range(2):
        started = time.process_time()
        hits = sum(len(redact(text).findings) for text in texts)
        seconds.append(time.process_time() - started)
    first, second = (value * 1e6 / kilobytes for value in seconds)
    return (
        f"{first:.1f} then {second:.1f} us/KiB over {len(texts)} texts, {kilobytes / 1024:.1f} "
        f"MiB, {hits} hits"
    )


def strings(path: str) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        stack: list[Any] = [json.loads(line) for line in lines]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if len(item) > 40:
                yield item
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


if __name__ == "__main__":
    main(sys.argv[1:])

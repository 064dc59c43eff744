"""A program of an older Smara: it opens a store, and does what each line asks for.

Run with the older source first in PYTHONPATH; it uses public names that both versions have.
"""

from __future__ import annotations

import json
import sys

import smara
from smara.testing import HashEmbedder


def answer(memory: smara.Memory, verb: str, text: str) -> object:
    """Do one thing; return what is to be told."""
    if verb == "add":
        return memory.messages.add(thread_id="t", role="user", content=text).seq
    if verb == "search":
        return sorted(hit.content for hit in memory.search(text, limit=50))
    if verb == "list":
        return [each.raw_content for each in memory.messages.list(thread_id="t", limit=50)]
    if verb == "erase":
        return memory.privacy.erase(messages=[text]).plan.total > 0
    return memory.embeddings.embed_pending().is_done


def main() -> None:
    """Serve lines ``verb text`` until the input ends."""
    try:
        memory = smara.open(sys.argv[1], project="p", embedding_model=HashEmbedder())
    except smara.SmaraError as error:
        sys.stdout.write(json.dumps({"refused": error.code}) + "\n")
        return
    with memory:
        sys.stdout.write(json.dumps({"source": smara.__file__}) + "\n")
        sys.stdout.flush()
        for line in sys.stdin:
            verb, _, text = line.rstrip("\n").partition(" ")
            try:
                told = {"answer": answer(memory, verb, text)}
            except smara.SmaraError as error:
                told = {"refused": error.code}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

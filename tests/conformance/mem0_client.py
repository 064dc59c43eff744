"""Run the real ``MemoryClient`` of mem0 against our server.

``python -m tests.conformance.mem0_client`` fetches the wheel at a pinned version, checks its hash
and runs the test, in which the client has a process of its own. Its package wants a vector database
and a telemetry service, which its client never asks: empty modules stand for them, since the
versions they need exclude others here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

from tests.conformance.run import ARCHIVES, require_hash

VERSION = "2.2.1"
SHA256 = "fe91bb91ac8926231993a4aa58df00a60c6c74c709e6a338fe399500776eef4d"
FOLDER = ARCHIVES / f"mem0ai-{VERSION}"


def archive(may_fetch: bool) -> Path | None:
    """Return the wheel of mem0, fetched by pip if that is allowed; ``None`` if it is not here."""
    if not list(FOLDER.glob("*.whl")) and may_fetch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, f"mem0ai=={VERSION}", "-d", str(FOLDER)], check=True)
    found = next(iter(FOLDER.glob("*.whl")), None)
    if found is not None:
        require_hash(found, SHA256)
    return found


class _Unused(types.ModuleType):
    """A module whose classes are never made."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def story(folder: str, url: str, key: str) -> dict[str, Any]:
    """What a program with the real client sees, step by step."""
    for name in ("posthog", "qdrant_client", "qdrant_client.models", "pytz"):
        sys.modules.setdefault(name, _Unused(name))
    sys.path.insert(0, folder)
    from mem0 import MemoryClient  # type: ignore[import-not-found]
    from mem0.exceptions import MemoryNotFoundError  # type: ignore[import-not-found]

    client, seen = MemoryClient(api_key=key, host=url), {}
    seen["project"] = client.project_id
    talk = [
        {"role": "user", "content": "I am vegetarian and allergic to nuts"},
        {"role": "assistant", "content": "Noted, I will remember that."},
    ]
    (made,) = client.add(talk, user_id="alice", metadata={"topic": "food"})["results"]
    client.add("I love hiking in the mountains", user_id="bob")
    mine = {"user_id": "alice"}
    seen["found"] = [
        each["memory"] for each in client.search("nuts allergy", filters=mine)["results"]
    ]
    seen["foreign"] = client.search("hiking", filters=mine)["results"]
    seen["listed"] = client.get_all(filters=mine)["count"]
    seen["read"] = client.get(made["id"])["metadata"]
    client.update(made["id"], text="I am vegan and allergic to nuts")
    seen["history"] = [each["event"] for each in client.history(made["id"])]
    seen["users"] = sorted(each["name"] for each in client.users()["results"])
    rows = [{"memory_id": made["id"], "text": "I am vegan and allergic to peanuts"}]
    seen["batch"] = client.batch_update(rows)["message"]
    client.delete(made["id"])
    try:
        client.get(made["id"])
    except MemoryNotFoundError:
        seen["deleted"] = True
    client.delete_all(user_id="bob")
    seen["left"] = client.get_all(filters={"user_id": "bob"})["count"]
    try:
        MemoryClient(api_key="wrong", host=url)
    except ValueError as error:
        seen["refused"] = str(error)
    return seen


def main(arguments: list[str]) -> int:
    """Fetch the wheel and run the test, or tell the story to a test."""
    if arguments:
        sys.stdout.write(json.dumps(story(*arguments)))
        return 0
    archive(may_fetch=True)
    test = str(Path(__file__).with_name("test_mem0_client.py"))
    return subprocess.run([sys.executable, "-m", "pytest", "-q", test], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

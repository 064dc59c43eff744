"""The programs in ``examples/`` run offline and are short; `make check` types them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import apart

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 30
PRINTED = {
    "claude_agent": (
        "The shop is deployed.\nknew the rule: True\n"
        "user: Deploy the shop\nassistant: The shop is deployed.\n"
    ),
    "openai_agents": (
        "Done. Knew the rule: True\nDone, too. Knew the rule: True\n"
        "4 items, none of them by memory\n"
    ),
    "langgraph_store": (
        "2 Nice to meet you.\n4 Darjeeling, as you like it.\n"
        "item I drink Darjeeling tea in the morning\n"
    ),
    "agent_framework_memory": (
        "1 message(s); knows the rule: True\n3 message(s); knows the rule: True\n"
    ),
    "anthropic_memory": (
        "File created successfully at: /memories/build.md\n"
        "The memory file has been edited. Here is the snippet showing the change (with line"
        " numbers):\n     1\t- Tests need Redis 8.\n     2\t\n"
        "Here's the content of /memories/from_people/decision.md with line numbers:\n"
        "     1\t- We deploy on Mondays only \n"
        "error: /memories/from_people belongs to people and cannot be changed here. Write to"
        " another file; a person will review it.\nto review: Tests need Redis 8.\n"
    ),
    "crewai_memory": (
        "/house The key lies under the geranium\n['The key lies under the geranium\\nthings']\n"
    ),
    "google_adk_memory": "1 event(s), 1 found\n3 event(s), 1 found\n1 session\n",
    "llama_index_memory": "8 messages in the window\nwall 0 is told by memory: True\n",
    "pydantic_ai_memory": (
        "1 message(s); knows the rule: True\n3 message(s); knows the rule: True\n"
    ),
}
"""What each program prints."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_offline_and_prints_what_it_says(path: Path, tmp_path: Path) -> None:
    apart.skip_without(path.stem)
    done = subprocess.run(
        [sys.executable, "-W", apart.warnings_for(path.stem), str(path)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "OTEL_SDK_DISABLED": "true"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    # CrewAI draws boxes around what it does, from another thread.
    printed = re.sub(r"[╭│╰][^\n]*\n|^\n", "", done.stdout, flags=re.MULTILINE)
    assert (done.returncode, printed, done.stderr) == (0, PRINTED[path.stem], "")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES

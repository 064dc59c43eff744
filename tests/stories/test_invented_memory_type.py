"""A memory type is one spec: the one of the how-to page is seen at every door.

The page is followed in a copy of the package, because the types are fixed when it is imported.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/howto/add-a-memory-type.md"
STATEMENT = "Test files are called x.spec.ts here"
SCRIPT = f"""
import json, pathlib, sys, smara
from click.testing import CliRunner
from smara.behavior.synthesis import ModuleStats, read_reply
from smara.errors import InvalidInputError
from smara.surfaces.cli.app import cli
from smara.tools import Toolbox, description, schemas

place, seen = sys.argv[1], {{}}
with smara.open(place) as memory:
    memories = memory.memories
    taught = memories.remember(
        {STATEMENT!r}, type="convention", is_pinned=True, files=["src/cart.ts"],
    ).memory
    try:
        memories.add("Tabs, not spaces", type="convention", data={{"walrus": "x"}})
    except InvalidInputError as error:
        seen["refused"] = str(error)
    seen["guessed"] = memories.guess_type("By convention modules export one class")
    seen["start"] = memory.moments.start("s1", agent="claude").text
    seen["listed"] = [each.content for each in memories.list(type="convention")]
    seen["why"] = "\\n".join(memories.why(taught.id).lines())
    answer = memory.search("test files spec", phase="implement")
    seen["searched"] = [(hit.type, hit.content) for hit in answer.hits]
    seen["factors"] = str(answer.hits[0].stages)
    seen["packed"] = memory.pack(answer, phase="implement").text
    older = memories.remember("The line length limit is 100 columns", type="convention").memory
    newer = memories.remember("The line length limit is 80 columns", type="preference")
    seen["contradicted"] = older.id in (*newer.superseded, *newer.disputes)
    seen["planned"] = memory.behavior.planner_context([]).text
    root = pathlib.Path(place).parent / "repository"
    (root / "src").mkdir(parents=True)
    (root / "src/cart.ts").write_text("export function total() {{ return 1 }}")
    memory.code.index(root)
    memory.memories.add(
        "`total` in src/cart.ts shows the shape", type="convention", files=["src/cart.ts"]
    )
    seen["links"] = [each.kind for each in memory.code_knowledge.links()]
    seen["traps"] = sum(each.traps for each in memory.browse.coverage())
    said = {{
        type_: memories.add(
            f"Every {{type_}} of the harbor is written down", type=type_, source="said", by="person"
        ).memory.short_id
        for type_ in ("convention", "decision")
    }}
    told = memory.moments.start("s2", agent="claude").text
    seen["said"] = [type_ for type_, short_id in said.items() if short_id in told]
    box = Toolbox(memory, profile="coding")
    seen["recorded"] = box.call("memory-record", {{
        "action": "record", "type": "convention", "evidence": ["src/cart.ts:3"],
        "content": "Reducers of the cart return a new object and never change the old one",
    }}).structured
text = "`src/cart.ts` shows how the modules of the cart are written"
reply = json.dumps([{{"type": "convention", "content": text, "relatedFiles": ["src/cart.ts"]}}])
seen["counted"] = [
    (draft.type, draft.data)
    for draft in read_reply(reply, ModuleStats("cart", 7), "- `src/cart.ts`: 7")
]
seen["schema"] = schemas(profile="coding")["memory-record"]["properties"]["type"]["enum"]
seen["description"] = description("memory-record")
run = CliRunner().invoke(cli, ["--db", place, "memories", "list", "--type", "convention"])
seen["command"] = run.output
print(json.dumps(seen))
"""


def package(folder: Path, *, name: str = "convention", with_spec: bool) -> Path:
    """Copy the package to a folder and follow the page there, unless it has the type."""
    shutil.copytree(
        ROOT / "src", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
    )
    models, kinds = (folder / "smara/knowledge" / name for name in ("models.py", "kinds.py"))
    if f'"{name}"' in models.read_text("utf-8"):
        return folder
    models.write_text(
        models.read_text("utf-8").replace(
            "MemoryType = Literal[", f'MemoryType = Literal["{name}",'
        ),
        "utf-8",
    )
    if with_spec:
        (spec,) = re.findall(r"^MemoryKind\(.*?^\)", PAGE.read_text("utf-8"), re.DOTALL | re.M)
        start = "_TABLE: tuple[MemoryKind, ...] = ("
        assert start in kinds.read_text("utf-8")
        kinds.write_text(kinds.read_text("utf-8").replace(start, f"{start}{spec},"), "utf-8")
    return folder


def run(source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    done = run(package(folder, with_spec=True), SCRIPT, str(folder / "memory.db"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_pinned_memory_of_it_is_told_at_the_start_under_its_title(seen):
    assert f"Conventions:\n- {STATEMENT}" in seen["start"]


def test_it_is_listed_in_python_and_on_the_command_line(seen):
    assert seen["listed"] == [STATEMENT]
    assert "Reducers of the cart" in seen["command"]


def test_its_fields_are_checked_and_a_statement_is_guessed_to_be_of_it(seen):
    assert "A convention has no field walrus. It may have: example." in seen["refused"]
    assert seen["guessed"] == "convention"


def test_it_is_found_ranked_and_packed(seen):
    assert seen["searched"][0] == ["convention", STATEMENT]
    assert "convention while implement" in seen["factors"]
    assert STATEMENT in seen["packed"]


def test_a_newer_claim_of_another_type_contradicts_it(seen):
    assert seen["contradicted"]


def test_agents_record_it_through_the_tool_and_read_when(seen):
    assert seen["recorded"]["success"]
    assert seen["recorded"]["memory"]["type"] == "convention"
    assert "convention" in seen["schema"]
    assert re.search(r"for good: [\w, ]*\bconvention\b", seen["description"])


def test_planners_and_the_map_of_modules_see_it(seen):
    assert f"Conventions to keep:\n- {STATEMENT}" in seen["planned"]
    assert seen["links"] == ["applies_pattern"] * len(seen["links"])
    assert seen["traps"] == len(seen["links"]) > 0


def test_it_is_stated_from_counts_with_its_fields_filled(seen):
    assert seen["counted"] == [["convention", {"example": "src/cart.ts"}]]


def test_what_a_person_said_of_it_is_told_at_the_start_of_other_sessions(seen):
    assert seen["said"] == ["convention"]


def test_a_type_without_a_spec_stops_the_program_and_is_named(tmp_path):
    source = package(tmp_path, name="walrus", with_spec=False)
    done = run(source, "import smara; smara.open(':memory:').memories")
    assert done.returncode != 0
    assert "Each memory type needs one spec in knowledge/kinds.py: walrus." in done.stderr

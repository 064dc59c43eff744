"""With ``--json`` every command answers in one shape; without, in plain lines."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from smara.surfaces.cli.app import cli
from tests.surfaces.shell import smara, spawn
from tests.unit.codegraph.shop import write_shop

CALLS = {
    "init": [],
    "status": [],
    "watch": ["--seconds", "0"],
    "doctor": [],
    "demo": ["--fast"],
    "version": [],
    "help": ["why"],
    "man": [],
    "keys add": ["ci"],
    "keys list": [],
    "keys revoke": ["ci"],
    "threads list": [],
    "threads show": ["login"],
    "threads update": ["login", "--title", "Login"],
    "messages add": ["--thread", "login", "--role", "user", "--content", "hello"],
    "messages list": ["--thread", "login"],
    "messages show": ["login:2"],
    "tasks add": ["Retry failed deliveries"],
    "tasks list": [],
    "tasks ready": [],
    "tasks show": ["t-sign"],
    "tasks claim": ["t-sign"],
    "tasks release": ["t-sign"],
    "tasks close": ["t-sign", "--summary", "HMAC in sign.py"],
    "tasks reopen": ["t-old"],
    "tasks update": ["t-sign", "--priority", "P0"],
    "tasks dep add": ["t-old", "t-sign"],
    "tasks dep remove": ["t-docs", "t-sign"],
    "tasks link": ["t-sign", "login:1"],
    "tasks tree": [],
    "tasks history": ["t-sign"],
    "tasks undo": ["t-docs"],
    "tasks search": ["webhooks"],
    "tasks compact": [],
    "tasks restore": ["t-old"],
    "tasks import": ["TRACKER"],
    "tasks export": [],
    "remember": ["Use uv, never pip"],
    "review": [],
    "why": ["FILE"],
    "memories list": [],
    "memories search": ["parser"],
    "memories show": ["MEMORY"],
    "memories why": ["MEMORY"],
    "memories add": [
        "Deploys need two approvals here",
        "--type",
        "requirement",
        "-e",
        "docs/deploy.md:3",
    ],
    "memories edit": ["MEMORY", "--add-tag", "parsing"],
    "memories review accept": ["MEMORY"],
    "memories review edit": ["MEMORY", "--text", "The parser takes tabs in all of its files"],
    "memories review reject": ["MEMORY"],
    "memories review undo": ["MEMORY"],
    "memories pin": ["MEMORY"],
    "memories unpin": ["MEMORY"],
    "memories verify": ["MEMORY"],
    "memories forget": ["MEMORY"],
    "memories restore": ["MEMORY"],
    "memories import": ["RULES", "--dry-run"],
    "memories audit": [],
    "memories trust": [],
    "working show": [],
    "working put": ["FILE"],
    "working edit": ["--section", "Notes/Queue", "--content", "Redis"],
    "working history": [],
    "working restore": ["1"],
    "commits update": [],
    "decisions update": [],
    "decisions list": [],
    "decisions search": ["parking_fee"],
    "commits list": [],
    "code index": ["TREE"],
    "code status": ["TREE"],
    "code forget": ["TREE"],
    "code watch": ["TREE", "--seconds", "0"],
    "code impact": ["sell"],
    "code deps": ["sell"],
    "code callers": ["sell"],
    "code tests": ["sell"],
    "code symbol": ["sell"],
    "code locate": ["selling fails"],
    "code map": [],
    "code modules": [],
    "code hotspots": [],
    "code cycles": [],
    "code entries": [],
    "code cochange": ["shop.py"],
    "behavior status": [],
    "behavior sessions": [],
    "behavior finalize": [],
    "behavior habits": [],
    "import": ["FILE"],
    "export": ["NEW"],
    "backup": ["NEW"],
    "erase": ["--message", "login:2", "--yes"],
    "restore": ["BACKUP", "--yes"],
    "copy": ["BACKUP", "NEW"],
    "search": ["LoginSchema"],
    "complete": ["log"],
    "observe": ["login"],
    "reflect": ["login"],
    "observations list": [],
    "observations show": ["OBSERVATION"],
    "observations why": ["OBSERVATION"],
    "observations status": ["login"],
    "observations failures": [],
    "worker": ["--once"],
    "embeddings status": [],
    "embeddings run": [],
    "embeddings switch": ["offline"],
    "context preview": ["login"],
    "receipts list": [],
    "receipts arms": ["--on"],
    "compact": ["--thread", "login"],
    "index check": [],
    "index rebuild": [],
    "index optimize": [],
    "projects": [],
    "models show": [],
    "models calls": [],
    "models pause": ["--reason", "Too dear."],
    "models resume": [],
    "completion": ["bash"],
    "setup": ["claude", "--print"],
    "hook": ["drain"],
}


@pytest.fixture
def file(tmp_path):
    return write_files(tmp_path)


def write_files(folder: Path) -> str:
    path = folder / "notes.jsonl"
    path.write_text('{"role": "user", "content": "hello"}\n')
    path.with_name("issues.jsonl").write_text('{"id": "bd-1", "title": "Retry"}\n')
    path.with_name("shop.py").write_text(
        "import till\n\n\ndef sell(thing):\n    return till.put(thing)\n"
    )
    path.with_name("till.py").write_text("import shop\n\n\ndef put(thing):\n    return shop.sell\n")
    path.with_name("rules.md").write_text("- Never edit generated files\n")
    return str(path)


def words_of(call: str, file: str) -> list[str]:
    files = {"FILE": file, "TREE": str(Path(file).parent)} | {
        name: str(Path(file).with_name(path))
        for name, path in (("TRACKER", "issues.jsonl"), ("RULES", "rules.md"), ("NEW", "new.zip"))
    }
    if call in ("init", "worker", "commits update"):
        write_shop(Path(file).parent)
    if call in ("restore", "copy"):
        files["BACKUP"] = smara("backup", f"{file}.db", "--json").data["path"]
    if call in ("keys list", "keys revoke"):
        smara("keys", "add", "ci")
    if "MEMORY" in CALLS[call] or call == "review":
        noted = (
            "The parser reads tabs in all of its files",
            "--type",
            "gotcha",
            "-e",
            "src/parse.py:3",
        )
        files["MEMORY"] = smara("memories", "add", *noted, "--json").data["memory"]["id"]
        if call.endswith(("undo", "restore")):
            smara("memories", "forget", files["MEMORY"])
    if call.startswith("code") and "TREE" not in CALLS[call]:
        smara("code", "index", files["TREE"])
    if "OBSERVATION" in CALLS[call]:
        smara("observe", "login")
        files["OBSERVATION"] = smara("observations", "list", "--json").data["observations"][0]["id"]
    return [*call.split(), *(files.get(word, word) for word in CALLS[call])]


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> set[str]:
    if not isinstance(command, click.Group):
        return {" ".join(path)}
    context = click.Context(command)
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return set().union(
        *(leaves(each, (*path, name)) for name, each in found.items() if each is not None)
    )


def test_every_command_is_called_below():
    # What serves answers to requests until it is stopped has tests of its own.
    # What drops vectors needs some to drop, what shows a session one that was watched, and what
    # explains a file a repository.
    elsewhere = {"mcp", "serve", "ui", "embeddings drop", "behavior signals", "receipts show"}
    elsewhere |= {"commits show", "commits why", "decisions show", "decisions why"}
    assert leaves(cli) - elsewhere == set(CALLS)


@pytest.mark.parametrize("call", CALLS)
def test_answer_in_json_is_one_envelope_and_nothing_else(store, file, call):
    said = smara(*words_of(call, file), "--json")
    assert (said.code, said.err) == (0, "")
    assert said.data is not None
    assert "error" not in said.envelope
    assert said.envelope["warnings"] == []


@pytest.mark.parametrize("call", CALLS)
def test_answer_in_a_pipe_is_plain_text(store, file, call):
    said = smara(*words_of(call, file))
    assert said.code == 0
    assert said.out.strip()
    assert "\x1b" not in said.out + said.err


@pytest.mark.parametrize("call", CALLS)
def test_every_command_explains_itself(call):
    said = smara(*call.split(), "--help")
    assert said.code == 0
    # Setting up an agent changes its files, and opens no store.
    options = ("--db", "--project", "--json", "-h, --help")[call == "setup" :]
    assert all(option in said.out for option in options)


def test_json_may_stand_before_the_command(store):
    assert smara("--json", "status").data == smara("status", "--json").data


def test_real_process_answers_the_same(store):
    said = spawn("--json", "threads", "show", "login")
    assert (said.code, said.err) == (0, "")
    assert said.envelope == smara("threads", "show", "login", "--json").envelope


def test_envelope_is_ascii_whatever_was_said(db):
    smara(
        "messages", "add", "--thread", "t", "--role", "user", "--content", "重跑 \ud800 café \x00"
    )
    said = smara("messages", "list", "--thread", "t", "--json")
    assert said.out.isascii()
    assert said.data[0]["content"] == "重跑 \ud800 café \x00"


def test_answer_is_one_line_so_that_a_pipe_can_read_it_by_line(store):
    assert smara("threads", "list", "--json").out.count("\n") == 1


def test_failure_in_json_says_its_code_message_and_whether_to_try_again(store):
    said = smara("threads", "show", "nope", "--json")
    assert said.code == 3
    assert said.data is None
    assert said.envelope["error"] == {
        "code": "not_found",
        "message": "There is no thread 'nope' in this project. `smara threads list` shows what "
        "there is.",
        "retryable": False,
    }
    assert said.err.startswith("smara: There is no thread 'nope'")


def test_thread_in_json_has_its_documented_keys(store):
    thread = smara("threads", "show", "login", "--json").data
    assert set(thread) == {
        "id",
        "resourceId",
        "kind",
        "parentId",
        "title",
        "metadata",
        "createdAt",
        "updatedAt",
        "messageCount",
        "tokenCount",
        "compactions",
    }
    assert (thread["title"], thread["messageCount"], thread["createdAt"]) == (
        "Login with Zod",
        3,
        1_760_000_000_000,
    )


def test_message_in_json_has_its_documented_keys(store):
    message = smara("messages", "show", "login:1", "--json").data
    assert set(message) == {
        "id",
        "threadId",
        "resourceId",
        "seq",
        "role",
        "content",
        "parts",
        "tokenCount",
        "tokenMethod",
        "createdAt",
        "clientId",
        "taskId",
        "isSealed",
        "compactionLevel",
        "metadata",
    }
    assert message["parts"] == [{"type": "text", "text": "Implement the login with Zod"}]
    assert (message["clientId"], message["taskId"], message["tokenMethod"]) == (
        "turn-user",
        None,
        "o200k_base",
    )

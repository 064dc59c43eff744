"""A repository that names programs in its configuration gets none of them run, at any door."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from smara.core.git import ask_git, is_blob
from tests.surfaces.shell import smara

# Keys of git's configuration whose value is a program, a command, or leads to one. `<x>` stands for
# any name. A key of git that looks as if it could and stands in neither list fails the test below.
RUNNING = {
    "alias.<x>", "browser.<x>.cmd", "browser.<x>.path", "core.alternateRefsCommand", "core.askPass",
    "core.editor", "core.fsmonitor", "core.gitProxy", "core.hooksPath", "core.pager",
    "core.sshCommand", "credential.helper", "diff.<x>.command", "diff.<x>.textconv",
    "diff.external", "diff.guitool", "diff.tool", "difftool.<x>.cmd", "difftool.<x>.path",
    "filter.<x>.clean", "filter.<x>.smudge", "filter.<x>.process", "gpg.<x>.program", "gpg.program",
    "gpg.ssh.defaultKeyCommand", "guitool.<x>.cmd", "help.browser", "instaweb.browser",
    "instaweb.httpd", "interactive.diffFilter", "man.<x>.cmd", "man.<x>.path", "man.viewer",
    "merge.<x>.driver", "merge.guitool", "merge.tool", "mergetool.<x>.cmd", "mergetool.<x>.path",
    "pager.<x>", "remote.<x>.proxy", "remote.<x>.receivepack", "remote.<x>.uploadpack",
    "remote.<x>.vcs", "sendemail.ccCmd", "sendemail.tocmd", "sequence.editor",
    "uploadpack.packObjectsHook", "web.browser", "submodule.<x>.update", "trailer.<x>.command",
    "trailer.<x>.cmd", "core.attributesFile", "imap.tunnel", "sendemail.smtpServer",
    "sendemail.sendmailCmd", "sendemail.headerCmd", "tar.<x>.command", "hook.<x>.command",
    "ssh.variant", "http.proxy", "init.templateDir", "include.path", "includeIf.<x>.path",
    "core.worktree", "notes.rewrite.<x>", "diff.<x>.wordRegex",
}  # fmt: skip
HARMLESS = re.compile(
    r"advice\.|color\.|column\.|fsck\.|receive\.fsck|fetch\.fsck|maintenance\.|trace2\.|mergetool\.(?!<)"
    r"|guitool\.<name>\.(?!cmd)|gitcvs\.|completion\.|commit\.|clean\.|commitGraph\.|gc\.|push\.|rebase\."
    r"|stash\.|status\.|worktree\.|http\.(?!proxy$)|diff\.<driver>\.(?:binary|cachetextconv|xfuncname|algorithm)"
    r"|difftool\.(?!<tool>\.(?:cmd|path))|merge\.<driver>\.(?:name|recursive)|remote\.<name>\.proxyAuthMethod"
    r"|sendemail\.(?:aliasFileType|aliasesFile|smtpsslcertpath)|instaweb\.modulePath|help\.htmlPath"
    r"|gui\.|core\.(?:excludesFile|fsmonitorHookVersion|quotePath)|credential\.useHttpPath"
    r"|extensions\.worktreeConfig|fsmonitor\.|gpg\.ssh\.(?:allowedSignersFile|revocationFile)"
    r"|mergetool\.<tool>\.(?:hideResolved|trustExitCode)|submodule\.|trailer\.|hook\.<name>\.(?!command)"
    r"|feature\.|bitmap|blame\.|bundle\.|uploadpack\.(?!packObjectsHook)"
)
_LOOKS_ABLE = re.compile(
    r"command|program|cmd|path$|helper|editor|pager|proxy|exec|process|clean|smudge|textconv|driver"
    r"|askpass|ssh|pack$|vcs|fsmonitor|external|alias|viewer|browser|tool$|hook|tunnel|server$|httpd",
    re.IGNORECASE,
)


def generic(key: str) -> str:
    return re.sub(r"<[^>]*>|\*", "<x>", key)


def test_every_key_of_git_that_can_run_something_is_in_the_list() -> None:
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True)
    able = [key for key in listed.stdout.split() if _LOOKS_ABLE.search(key)]
    assert len(able) > 40
    unknown = [key for key in able if generic(key) not in RUNNING and not HARMLESS.match(key)]
    assert unknown == []


def test_git_is_asked_nothing_that_reads_the_working_tree(tmp_path: Path) -> None:
    for command in ("status", "diff", "show", "hash-object", "checkout", "add", "fetch", "grep"):
        with pytest.raises(ValueError, match="may run programs"):
            ask_git(str(tmp_path), command)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A repository with a mark-leaving program under every key, and the folder of the marks."""
    marks, root = tmp_path / "marks", tmp_path / "repo"
    (root / "src").mkdir(parents=True)
    marks.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SMARA_DB", str(tmp_path / "smara.db"))
    monkeypatch.setenv("SMARA_PROJECT", "auto")
    monkeypatch.chdir(root)

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    (root / "CLAUDE.md").write_text(
        "# Rules\n\n- Never divide totals before rounding in `pay()`.\n"
    )
    (root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    for number in range(3):
        (root / "src/pay.py").write_text(f"def pay():\n    return {number}\n")
        git("add", "-A")
        git(
            "commit", "-qm", f"Round totals late in pay because early rounding loses cents {number}"
        )
    tree = git("rev-parse", "HEAD~1^{tree}")
    program = marks / "program"
    hooks = marks.parent / "hooks"
    hooks.mkdir()
    lead_elsewhere = {"include.path", "includeIf.<x>.path", "core.worktree", "remote.<x>.vcs"}
    git("config", "log.showSignature", "true")
    for key in sorted(RUNNING - lead_elsewhere):
        mark = f"touch '{marks}/{key.replace('<x>', 'x')}'; false"
        name = key.replace(
            "<x>", "evil" if key.startswith(("filter", "diff", "merge.")) else "origin"
        )
        git("config", name, f"!{mark}" if key.startswith("alias") else mark)
    for hook in ("post-index-change", "post-checkout", "pre-auto-gc", "reference-transaction"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch '{marks}/hook-{hook}'\n")
        (hooks / hook).chmod(0o755)
    git("config", "core.hooksPath", str(hooks))
    for command in ("log", "status", "cat-file", "rev-list", "rev-parse", "ls-files", "ls-tree"):
        git("config", f"alias.{command}", f"!touch '{marks}/alias-{command}'")
        git("config", f"pager.{command}", f"touch '{marks}/pager-{command}'; cat")
    # A partial clone that lacks a tree: git would fetch it by the program of the remote.
    git("config", "core.repositoryformatversion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.promisor", "true")
    git("config", "remote.origin.url", str(tmp_path / "nowhere"))
    (tmp_path / "nowhere").mkdir()
    (root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    assert not program.exists()
    for mark in marks.iterdir():
        mark.unlink()
    for path in (root / "CLAUDE.md", root / "src/pay.py"):
        os.utime(path, (1_577_836_800, 1_577_836_800))  # git must read it again to know it
    return root, marks


def test_no_door_runs_what_a_repository_names(hostile: tuple[Path, Path]) -> None:
    root, marks = hostile
    event = {
        "session_id": "s1", "cwd": str(root), "source": "startup", "prompt": "hi",
        "tool_name": "Edit", "tool_use_id": "u1", "tool_input": {"file_path": f"{root}/src/pay.py"},
    }  # fmt: skip
    about = "Totals in src/pay.py are integer cents: never divide before rounding"
    for arguments in (
        ("status",),
        ("code", "index"),
        ("memories", "import"),
        ("import", "--from", "git"),
        ("remember", about, "--file", "src/pay.py"),
        ("memories", "list"),
        ("memories", "review"),
        ("memories", "audit"),
        ("context", "preview"),
        ("search", "pay cents"),
        ("code", "hotspots"),
        ("doctor",),
        ("hook", "drain"),
    ):
        done = smara(*arguments)
        assert "Traceback" not in done.err, arguments
        assert sorted(each.name for each in marks.iterdir()) == [], arguments
    for name in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SessionEnd"):
        smara("hook", "claude", name, stdin=json.dumps({**event, "hook_event_name": name}).encode())
        assert sorted(each.name for each in marks.iterdir()) == [], name
    smara("hook", "drain")
    assert sorted(each.name for each in marks.iterdir()) == []


def test_the_traps_of_this_test_do_spring(hostile: tuple[Path, Path]) -> None:
    root, marks = hostile
    subprocess.run(["git", "status"], cwd=root, capture_output=True, check=False)
    subprocess.run(["git", "log", "--name-only"], cwd=root, capture_output=True, check=False)
    sprung = {each.name for each in marks.iterdir()}
    assert {"filter.x.process", "core.fsmonitor", "remote.x.uploadpack"} <= sprung


def test_a_file_is_compared_with_its_blob_whichever_way_its_lines_end(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\ntwo\n")
    blob = subprocess.run(
        ["git", "hash-object", "a.txt"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert is_blob(str(file), blob)
    file.write_bytes(b"one\r\ntwo\r\n")
    assert is_blob(str(file), blob)
    file.write_bytes(b"one\nthree\n")
    assert not is_blob(str(file), blob)
    assert not is_blob(str(tmp_path / "gone"), blob)


def test_a_link_is_compared_by_where_it_leads_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "link").symlink_to("elsewhere")
    subprocess.run(["git", "add", "link"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-s", "link"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    blob = listed.stdout.split()[1]
    assert is_blob(str(tmp_path / "link"), blob)
    os.mkfifo(tmp_path / "pipe")
    assert not is_blob(str(tmp_path / "pipe"), blob)

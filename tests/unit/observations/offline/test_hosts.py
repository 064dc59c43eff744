"""Calls in the shapes of several hosts come to the same notes."""

from __future__ import annotations

import json

import pytest

from smara.core.tool_names import tool_name
from smara.messages.models import Part
from smara.observations.offline.exchanges import ToolCall, kind_of
from tests.unit.observations.offline.talk import Talk, only

PATCH = """*** Begin Patch
*** Add File: src/new.py
+def fresh(x: int) -> int:
*** Update File: src/old.py
-def gone():
+def stays():
*** End Patch"""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Write", {"file_path": "a.py", "content": "def f(): ..."}),
        ("write_file", {"path": "a.py", "content": "def f(): ..."}),
        ("write_to_file", {"path": "a.py", "content": "def f(): ..."}),
        ("create_file", {"filePath": "a.py", "content": "def f(): ..."}),
        (
            "str_replace_based_edit_tool",
            {"command": "create", "path": "a.py", "file_text": "def f(): ..."},
        ),
        ("mcp__fs__store", {"path": "a.py", "content": "def f(): ..."}),
    ],
)
def test_a_file_is_written(name, arguments):
    assert only(Talk().call(name, arguments, "ok").notes()).text == "Created a.py: def f()"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "def f(): ..."}),
        ("replace", {"file_path": "a.py", "old_string": "x", "new_string": "def f(): ..."}),
        ("edit_file", {"target_file": "a.py", "code_edit": "def f(): ..."}),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": "def f(): ..."},
        ),
        (
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "def f(): ..."}]},
        ),
    ],
)
def test_a_file_is_changed(name, arguments):
    assert only(Talk().call(name, arguments, "ok").notes()).text == "Changed a.py: def f()"


@pytest.mark.parametrize("arguments", [PATCH, {"input": PATCH}, {"patch": PATCH}])
def test_a_patch_is_read(arguments):
    note = only(Talk().call("apply_patch", arguments, "Done!").notes())
    assert note.details == (
        "Created new.py: def fresh(x: int) -> int",
        "old.py: def stays(); removed gone",
    ) or note.details == (
        "Created src/new.py: def fresh(x: int) -> int",
        "src/old.py: def stays(); removed gone",
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Bash", {"command": "make test"}),
        ("shell", {"command": ["bash", "-lc", "make test"]}),
        ("run_terminal_cmd", {"command": "make test"}),
        ("execute_command", {"command": "make test"}),
        ("exec", {"cmd": "make test"}),
    ],
)
def test_a_command_is_run(name, arguments):
    assert Talk().call(name, arguments, "5 passed in 1s").text() == "Ran make test: 5 passed in 1s"


def test_an_output_wrapped_in_json_is_unwrapped():
    output = json.dumps({"output": "KeyError: 'x'\n", "metadata": {"exit_code": 1}})
    assert (
        Talk().call("shell", {"command": ["make", "run"]}, output).text("error")
        == "make run failed: output said: `KeyError: 'x'`"
    )


def test_an_exit_code_in_the_words_of_the_output_counts():
    assert Talk().run("./x", "boom\nProcess exited with code 3").notes()[0].category == "error"


def test_viewing_with_an_editor_is_looking():
    talk = Talk().call("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}, "1\tx")
    assert talk.text() == "Looked at a.py"


def test_calls_and_results_without_ids_meet_in_their_order():
    talk = Talk().add("assistant", Part("tool_call", name="Bash", arguments={"command": "./one"}))
    talk.add("tool", Part("tool_result", "first words")).add(
        "assistant", Part("tool_call", name="Bash", arguments={"command": "./two"})
    ).add("tool", Part("tool_result", "second words"))
    assert (
        talk.text() == "Ran ./one: output said: `first words`; ./two: output said: `second words`"
    )


def test_parts_of_one_message_are_read_like_messages():
    call = Part("tool_call", name="Bash", call_id="a", arguments={"command": "make test"})
    talk = Talk().add(
        "assistant",
        Part("text", "Let me see."),
        call,
        Part("tool_result", "3 passed in 1s", call_id="a"),
    )
    assert talk.text() == "Ran make test: 3 passed in 1s"


KINDS = {
    "Bash": "command", "Read": "look", "Edit": "change", "Write": "change", "Grep": "search",
    "Glob": "search", "WebFetch": "web", "WebSearch": "web", "Task": "agent",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["Bash", "shell", "exec_command", "run_shell_command", "local_shell", "terminal",
     "run_terminal_cmd", "powershell", "execute_command", "run_in_terminal", "Read", "view",
     "read_file", "read_many_files", "open_file", "cat", "Edit", "MultiEdit", "StrReplace",
     "str_replace_editor", "apply_patch", "replace", "edit_file", "search_replace",
     "NotebookEdit", "insert_edit_into_file", "replace_in_file", "delete_file", "Write",
     "create", "write_file", "create_file", "Grep", "search_file_content", "grep_search", "rg",
     "codebase_search", "Glob", "find_files", "file_search", "list", "ls", "list_directory",
     "WebFetch", "fetch", "web_search", "google_web_search", "Task", "agent", "spawn_agent",
     "delegate", "subagent"],
)  # fmt: skip
def test_a_tool_is_of_one_kind_for_hooks_and_observations(name):
    given = {"file_path": "a.py", "command": "x", "pattern": "y", "url": "z"}
    assert kind_of(ToolCall(name, given, seq=1, at=0)) == KINDS[tool_name(name)]


def test_a_folder_that_is_listed_is_a_look():
    assert kind_of(ToolCall("list_directory", {"path": "src"}, seq=1, at=0)) == "look"


@pytest.mark.parametrize("arguments", [{}, {"path": "src"}, "src", {"keyword": "x", "path": "src"}])
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("look", "cat listdir listdirectory listfiles ls LS list_directory ListDir notebookread "
        "openfile read readfile readmanyfiles view viewfile"),
        ("search", "codebasesearch filesearch find findfiles glob grep grepsearch search "
        "searchfilecontent searchfiles search_files"),
        ("change", "applydiff applypatch createfile deletefile edit editfile insert insertEdit "
        "insert_edit multiedit notebookedit patch replace replaceinfile searchreplace strreplace "
        "strreplacebasededittool strreplaceeditor write writefile writetofile"),
        ("command", "bash cmd exec execcommand executecommand localshell powershell runcommand "
        "runinterminal runshellcommand runterminalcmd shell terminal"),
        ("web", "browse browser fetch fetchurl googlesearch googlewebsearch openurl readurl "
        "searchweb webfetch websearch"),
        ("agent", "agent dispatchagent newtask runsubagent spawnagent subagent task"),
        ("ask", "askfollowupquestion askuser askuserquestion question requestuserinput"),
        ("plan", "exitplanmode presentplan updateplan"),
        ("quiet", "attemptcompletion bashoutput killshell skill taskcreate taskoutput think "
        "todowrite toolsearch wait writestdin"),
    ],
)  # fmt: skip
def test_every_name_that_the_observer_knew_is_of_the_kind_it_was(kind, names, arguments):
    calls = [ToolCall(name, arguments, seq=1, at=0) for name in names.split()]
    assert [call.name for call in calls if kind_of(call) != kind] == []


def test_a_tool_that_inserts_text_has_changed_the_file():
    given = {"path": "/w/a.py", "insert_line": 3, "insert_text": "def f():\n    return 1\n"}
    assert Talk(cwd="/w").call("insert", given, "ok").text() == "Changed a.py: def f()"
    assert Talk().call("exec", "npm test", "5 passing").text() == "Ran npm test: 5 passing"

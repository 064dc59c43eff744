"""Which files a command line shows: plainly named ones, and never one that it may write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.tool_triggers import (
    program_triggers,
    runs,
    shown_files,
    split_line,
    starts,
    unwrap,
)


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("cat src/cart.py", ["src/cart.py"]),
        ("/bin/cat 'src/my cart.py' README.md", ["src/my cart.py", "README.md"]),
        ('cat "src/cart.py"', ["src/cart.py"]),
        ("cd web && sed -n '1,200p' src/cart.py", ["src/cart.py"]),
        ("sed -n 5,10p a.py; sed -n 1,4p b.py", ["a.py", "b.py"]),
        ("nl -ba src/cart.py | sed -n '1,80p'", ["src/cart.py"]),
        ("head -n 20 a.py && tail -5 a.py", ["a.py"]),
        ("cat a.py | grep total", ["a.py"]),
        ("cat a.c b.c c.c d.c e.c", ["a.c", "b.c", "c.c", "d.c"]),
        ("cat Makefile", ["Makefile"]),
    ],
)
def test_files_that_are_shown(line, files):
    assert shown_files(line) == files


@pytest.mark.parametrize(
    "line",
    [
        "", "cat", "cat -", "ls src/cart.py", "git show HEAD:src/cart.py", "cat > src/cart.py",
        "cat <<'E' > src/cart.py",
        "sed -i 's/a/b/' src/cart.py", "sed 's/a/b/' src/cart.py", "cat src/*.py", "cat $FILE.py",
        "cat `ls *.py`",
        "python -m pytest | tail -5", "echo cat src/cart.py", "cat 'src/cart.py", "rm src/cart.py",
        "tail -n 2.5",
        "cat src/cart.py >> other.py",
    ],
)  # fmt: skip
def test_what_shows_no_file_that_is_plainly_named(line):
    assert shown_files(line) == []


@given(st.text())
def test_no_line_is_too_odd(line):
    assert all(isinstance(each, str) and each for each in shown_files(f"cat {line}"))


@pytest.mark.parametrize(
    "line",
    [
        "timeout -k 5 60 {}", "timeout --kill-after=5 -s KILL 60s {}",
        "timeout --signal KILL 1.5m {}",
        "gtimeout 5 {}", "time -v {}", "time -p {}", "time -f '%e s' {}", "/usr/bin/time -v {}",
        "sudo {}", "sudo --preserve-env {}", "sudo -- {}", "sudo -u=root {}", "sudo -uroot {}",
        "sudo -nu root {}", "sudo --user root {}", "sudo -p 'pass word: ' {}", "doas -u me {}",
        "nice {}", "nice --adjustment=5 {}", "nice --adjustment 5 {}", "nice -n -5 {}",
        "nice -n5 {}",
        "nice -10 {}", "ionice -c 2 -n 7 {}", "stdbuf -oL {}", "nohup {}", "setsid -w {}",
        "env {}", "env -u CI {}", "env --unset=CI -C web {}", "env - TERM=dumb {}", "exec -a x {}",
        "xargs -n 1 -P 4 {}", "xargs -0 -I % {}", "xargs -rI {{}} {}", "xargs --max-args 1 -r {}",
        "command -p {}", "command -- {}", "! {}", "then sudo -E timeout -k 5 60 {}",
    ],
)  # fmt: skip
def test_a_program_is_seen_behind_every_option_of_what_runs_it(line):
    line = line.format("git push")
    assert unwrap(line) == (["TERM=dumb"] if "TERM" in line else [], "git push")
    assert program_triggers(f"cd web; {line} 2>&1 | tail -5") == [
        "program:cd", "program:git", "program:tail",
    ]  # fmt: skip
    assert starts(line, ["git", "push"])
    assert runs(f"{line} 2>&1", "git push")


@pytest.mark.parametrize("line", ["command -v git", "timeout 60", "sudo", "timer 5 git", "-x"])
def test_what_runs_nothing_else_stays(line):
    assert unwrap(line) == ([], line)


def test_a_trigger_is_no_option_and_no_number():
    assert program_triggers("-x; 12; make >& log; npm start & 7") == ["program:make", "program:npm"]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ('cd "C:\\proj\\" ; pytest -q', [['cd "C:\\proj\\"'], ["pytest -q"]]),
        (
            'cd "D:\\my proj\\a\\" && ls "b; c" | cat',
            [['cd "D:\\my proj\\a\\"'], ['ls "b; c"', "cat"]],
        ),
        ('(type "C:\\a\\")\nls', [['(type "C:\\a\\")'], ["ls"]]),
        ('curl -d "a:\\"b; c\\"" x; ls', [['curl -d "a:\\"b; c\\"" x'], ["ls"]]),
    ],
)
def test_a_folder_of_windows_that_ends_in_a_backslash_ends_its_quotation(line, commands):
    assert split_line(line) == commands

"""Which files a command line shows: plainly named ones, and never one that it may write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.tool_triggers import shown_files


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

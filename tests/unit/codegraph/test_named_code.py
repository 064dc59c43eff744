"""What in a text looks like code: paths, places and names; and what does not."""

from __future__ import annotations

import pytest

from smara.codegraph.anchors.maker import MOST_NAMES, names_in, paths_in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "see src/auth.py and lib/x.ts.",
            [("src/auth.py", "", None, None), ("lib/x.ts", "", None, None)],
        ),
        ("in src/auth.py:10-20 it fails", [("src/auth.py", "", 10, 20)]),
        ("in ./src/auth.py:10 it fails", [("src/auth.py", "", 10, 10)]),
        ("`src/auth.py:Session.login` fails", [("src/auth.py", "Session.login", None, None)]),
        ("nothing here, of version 3.11", []),
    ],
)
def test_paths_and_places_are_read_from_a_text(text, found):
    assert [
        (each.path, each.symbol, each.first_line, each.last_line) for each in paths_in(text)
    ] == found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("call `login` first", ["login"]),
        ("call refresh_token() before loginForm", ["refresh_token", "loginForm"]),
        ("Session.login and `ns::Client::send`", ["ns.Client.send", "Session.login"]),
        ("MAX_SIZE is too small", ["MAX_SIZE"]),
        ("The session of a person ends. Then it begins again, e.g. tomorrow.", []),
        ("`rm -rf build` and `a b`", []),
        ("src/some_module.py is a path", []),
    ],
)
def test_names_are_what_is_written_as_code_or_looks_like_it(text, names):
    assert names_in(text) == names


def test_a_text_full_of_names_is_bounded():
    assert len(names_in(" ".join(f"name_{number}" for number in range(500)))) == MOST_NAMES

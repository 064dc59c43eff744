"""Derive coarse triggers from a tool call: tool, files, programs, words.

A hook compares triggers before it opens the store. They are too broad on purpose: a false
alarm costs a look into the store, a missed trigger would cost a warning.
Hooks load this module: keep its imports few.
"""

from __future__ import annotations

from smara.core.startup.regex import re, regex
from smara.core.tool_names import tool_arguments, tool_name

TYPE_CHECKING = False  # read by hooks; see tool_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

_JOINTS = regex(r"&&|\|\||[;|\n(){}]|(?<![<>])&(?!>)")
ASSIGNMENT = r"[A-Za-z_]\w{0,60}=(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\$\([^()]*\)|[^\s\"'()])*(?=\s|$)"
"""The pattern of a variable that is set for one command."""
# What runs a program, with its options that take the next word as their value.
_WRAPPERS = {
    "sudo|doas": r"-[AbBEeHiKklnPSsVv]*[CDghpRrTtUu]|--(?:user|group|host|prompt|chdir|chroot)",
    "time|(?:io)?nice|stdbuf": "-[cefino]|--(?:format|output|adjustment)",
    "g?timeout": "-v*[ks]|--kill-after|--signal", "env": "-i*[uCa]|--unset|--chdir",
    "xargs": r"-[0oprtx]*[adEILnPs]|--(?:arg-file|delimiter|max-(?:args|procs|lines|chars))",
    "exec|nohup|setsid": "-[cl]*a",
}  # fmt: skip
_BEFORE_A_PROGRAM = regex(
    rf"(?:({ASSIGNMENT})|(?:"
    + "|".join(
        rf"(?:/usr/bin/)?(?:{wrapper})(?:\s+(?>(?:{valued})\s+(?:'[^']*'|\"[^\"]*\"|\S+)(?!\S)|-\S*))*+"
        + (r"\s+[\d.]+\w?" if "timeout" in wrapper else "")
        for wrapper, valued in _WRAPPERS.items()
    )
    + r")|command(?:\s+-p)?(?:\s+--)?(?!\s+-)|do|then|else|!)\s+"
)
"""A variable that is set for a program, or what runs it."""
# A quotation, an inner command, or a character that stands for itself; an open quotation goes on
# to the end. In a quoted path of Windows a backslash stands for itself.
OPAQUE = (
    r"\$'(?:[^'\\]|\\.)*(?:'|\Z)|'[^']*(?:'|\Z)"
    r"|\"[A-Za-z]:\\[^\"\n]*\"(?![^\s;&|)])|\"(?:[^\"\\]|\\.)*(?:\"|\Z)"
    r"|\$\((?:[^()]|\([^()]*\))*\)|`[^`\n]*`|\\."
)
_SEPARATORS = regex(
    rf"@(['\"])[ \t]*\n.*?(?:\n\1@|\Z)|{OPAQUE}|(?<!\S)#[^\n]*"
    r"|(?P<joint>&&|\|\||[;\n]|(?<=[ \t])&(?=[ \t]+[^\s)}&|;#]))|(?P<pipe>(?<!>)\|&?)",
    re.DOTALL,
)
"""Where a command or a program of a pipe ends, outside of quotations and inner commands."""
_TRIMS_OUTPUT = regex(
    r"(?:\w+_)?PAGER=|NO_COLOR=|FORCE_COLOR=|CLICOLOR|COLUMNS=|LINES=|TERM=|PYTHONUNBUFFERED="
)
_WORD = regex(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_ENDS_A_COMMAND = ("&&", "||", ";", "|", ">", "1>", "2>", "&>", ")", "&")
_QUOTED = regex(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_ELSEWHERE = regex(
    r"\bPATH=(?:\"[^\"]*\"|'[^']*'|\S*)|(?:^|[;&|]\s*)(?:source|\.|eval|nvm|conda|mise "
    r"activate)\s+[^;&|]+"
)
_ELSEWHERE_WORDS = ("PATH=", "source ", ". ", "eval ", "nvm ", "conda ", "activate")
_MOST_CHARACTERS = 4_000


def triggers_of(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the triggers of a call.

    Its tool, the last names of its files, the programs of its command, what it searches.

    >>> triggers_of("exec_command", {"cmd": "cd web && CI=1 npm test | tail"})
    ['tool:Bash', 'program:cd', 'program:npm', 'program:tail']
    >>> triggers_of("edit_file", {"path": "src/auth/session.py"})
    ['tool:Edit', 'file:session.py']
    >>> triggers_of("Grep", {"pattern": "def retry_later"})
    ['tool:Grep', 'word:retry_later']
    """
    name = tool_name(tool)
    given = tool_arguments(name, arguments)
    found = [f"tool:{name}"]
    files = given.get("files") or [given.get("file_path")]
    found += [file_trigger(each) for each in files if isinstance(each, str) and each]
    if name == "Bash" and isinstance(given.get("command"), str):
        found += program_triggers(given["command"])
    if name in ("Grep", "Glob") and isinstance(given.get("pattern"), str):
        found += [f"word:{word}" for word in words_of(given["pattern"])]
    return list(dict.fromkeys(found))


def note_triggers(triggers: Iterable[str], is_edit: bool) -> list[str]:
    """Return the triggers of files with notes on their lines.

    >>> note_triggers(["tool:Edit", "file:cart.py"], True), note_triggers(["file:cart.py"], False)
    (['noted:cart.py'], ['undone:cart.py'])
    """
    kind = "noted" if is_edit else "undone"
    return [f"{kind}:{each[5:]}" for each in triggers if each.startswith("file:")]


def file_trigger(path: str) -> str:
    """Return a file's trigger: its last name."""
    return f"file:{path.replace(chr(92), '/').rstrip('/').rpartition('/')[2]}"


def program_triggers(command: str) -> list[str]:
    """The triggers of a command line: every program that it names."""
    programs = [
        words[0].strip("\"'`$").rpartition("/")[2]
        for part in _JOINTS.split(command[:_MOST_CHARACTERS])
        if (
            words := [
                word
                for word in unwrap(f"{part} ")[1].split()
                if word[0] != "-" and not word.isdigit()
            ]
        )
    ]
    return [f"program:{name}" for name in dict.fromkeys(programs)]


def unwrap(text: str) -> tuple[list[str], str]:
    """Split off the variables that are set for a command, without wrappers.

    >>> unwrap("sudo -E A=1 timeout 60 git push")
    (['A=1'], 'git push')
    """
    variables: list[str] = []
    text, start = text.lstrip(), 0
    while match := _BEFORE_A_PROGRAM.match(text, start):
        variables += filter(None, [match[1]])
        start = match.end()
    return variables, text[start:].strip()


def split_line(line: str) -> list[list[str]]:
    """Split a line into commands, each a list of piped programs.

    Quotations stay whole.

    >>> split_line("cd app && python -c 'a; b' | tail; ls")
    [['cd app'], ["python -c 'a; b'", 'tail'], ['ls']]
    """
    found: list[list[str]] = [[]]
    start = 0
    for match in (each for each in _SEPARATORS.finditer(line) if each.lastgroup is not None):
        found[-1].append(line[start : match.start()])
        start = match.end()
        if match.lastgroup == "joint":
            found.append([])
    found[-1].append(line[start:])
    commands = ([each.strip() for each in programs] for programs in found)
    return [programs for programs in commands if programs[0] and not programs[0].startswith("#")]


def words_of(pattern: str) -> list[str]:
    r"""Return a search's identifiers of four or more characters, lowercased.

    >>> words_of(r"class\s+CartTotal|fee")
    ['class', 'carttotal']
    """
    return [
        word.lower()
        for word in _WORD.findall(
            pattern[:_MOST_CHARACTERS].replace("\\s", " ").replace("\\b", " ")
        )
    ]


def is_named(text: str, names: Iterable[str]) -> bool:
    """Return True if a text has a name as a word."""
    return any(
        name and name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
        for name in names
    )


def trims_output(variable: str) -> bool:
    """Return True if a variable only changes how an output looks.

    >>> trims_output("GIT_PAGER=cat"), trims_output("PYTHONPATH=src")
    (True, False)
    """
    return _TRIMS_OUTPUT.match(variable) is not None


def runs(line: str, command: str) -> bool:
    """Return True if a line runs a command with these variables.

    What wraps it and what is done with its output makes no difference.

    >>> runs("cd web && time npm test 2>&1 | tail -5", "npm test"), runs("npm test -- --watch", "npm test")
    (True, False)
    >>> runs("PYTHONPATH=src pytest", "pytest"), runs("sudo PYTHONPATH=src pytest", "PYTHONPATH=src pytest")
    (False, True)
    """  # noqa: E501
    text = " ".join(line[:_MOST_CHARACTERS].replace("\n", " ; ").split())
    start = text.find(command) if command else -1
    while start >= 0:
        before, after = text[:start], text[start + len(command) :].lstrip()
        # What stands before the command, back to the last joint, must only wrap it.
        last = _JOINTS.split(before)[-1]
        variables, rest = unwrap(last)
        is_begin = not rest and last[-1:] in ("", " ") and all(map(trims_output, variables))
        if is_begin and (not after or after.startswith(_ENDS_A_COMMAND)):
            return True
        start = text.find(command, start + 1)
    return False


def starts(line: str, needs: Sequence[str]) -> bool:
    """Return True if a line starts a program with these words.

    The program by its bare name; the words are its subcommands and options.

    Subcommands stand right behind the program, options anywhere. A line that looks for programs
    elsewhere does not.

    >>> starts("cd api && go build ./...", ("go",)), starts("/usr/local/go/bin/go build", ("go",))
    (True, False)
    >>> starts("gh pr diff 7 --stat", ("gh", "pr", "--stat")), starts('git commit -m "x; go"', ("go",))
    (True, False)
    """  # noqa: E501
    if not needs or looks_elsewhere(line):
        return False
    text = _QUOTED.sub('""', line[:_MOST_CHARACTERS].partition("<<")[0])
    named = [each for each in needs[1:] if not each.startswith("-")]
    options = {each for each in needs[1:] if each.startswith("-")}
    for part in _JOINTS.split(text):
        program, *rest = unwrap(f"{part} ")[1].split() or [""]
        words = [word for word in rest if not word.startswith("-")]
        given = {word.partition("=")[0] for word in rest}
        if program == needs[0] and words[: len(named)] == named and options <= given:
            return True
    return False


def looks_elsewhere(line: str) -> str:
    """Return where a command line looks for programs.

    Then it says nothing of how they are otherwise.

    >>> looks_elsewhere('export PATH="/opt/go/bin:$PATH" && go build'), looks_elsewhere("go build")
    ('PATH="/opt/go/bin:$PATH"', '')
    """
    if not any(word in line for word in _ELSEWHERE_WORDS):
        return ""  # most lines, in a tenth of the time
    found = _ELSEWHERE.search(line[:_MOST_CHARACTERS])
    return found[0].strip(" ;&|") if found is not None else ""


SHOW_PROGRAMS = ("cat", "head", "tail", "nl", "less", "more", "bat")
"""Programs that print files, besides `sed -n`."""
_COMMAND_WORD = regex(r"""'([^']*)'|"([^"$`\\]*)"|(\S+)""")
_NO_PATH = regex(r"[*?$`<>(){}\[\]!&\\'\"]")
_NAMED = regex(r"/|\.[A-Za-z]|^[A-Z]\w+$")  # a path, an ending, or a name such as Makefile
_MOST_FILES = 4


def shown_files(command: str) -> list[str]:
    """Return the files that a command line prints, where named plainly.

    >>> shown_files("cd web && sed -n '1,80p' src/cart.py"), shown_files("nl -ba src/a.py | head -n 20")
    (['src/cart.py'], ['src/a.py'])
    >>> shown_files("cat > src/a.py"), shown_files("sed -i s/a/b/ src/a.py"), shown_files("git log | head -5")
    ([], [], [])
    """  # noqa: E501
    found: list[str] = []
    for part in (part for each in split_line(command[:_MOST_CHARACTERS]) for part in each):
        named = [next(filter(None, each), "") for each in _COMMAND_WORD.findall(part)]
        path, *words = named or [""]
        program = path.rpartition("/")[2]
        if program not in (*SHOW_PROGRAMS, "sed") or ">" in part or "<" in part:
            continue
        if program == "sed":
            # Without -n it may write as well as show; the first word is what it does.
            plain = [word for word in words if not word.startswith("-")]
            words = plain[1:] if "-n" in words else []
        found += [
            word
            for word in words
            if _NAMED.search(word) and word[0] != "-" and not _NO_PATH.search(word)
        ]
    return list(dict.fromkeys(found))[:_MOST_FILES]

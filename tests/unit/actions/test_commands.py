"""Shell commands: what they are for, with which variables, and which are the same."""

from __future__ import annotations

import pytest

from smara.actions.commands import (
    fails_by_nature,
    head_of,
    is_named_anew,
    is_of_the_moment,
    is_same_aim,
    is_same_program,
    read_command,
    read_commit,
)
from smara.actions.tool_calls import actions_of, files_written
from smara.core.events import HostEvent
from smara.core.tool_triggers import runs
from tests.agent_events import Script
from tests.unit.observations.offline.talk import Talk


@pytest.mark.parametrize(
    ("line", "text", "purpose"),
    [
        # wrappers, pagers and redirections
        ("cd /w/app && npm run build 2>&1 | tail -20", "npm run build", "check"),
        ("sudo timeout 60 make deploy > /dev/null", "make deploy", "other"),
        ("sudo -E make test", "make test", "test"),
        ("sudo -u postgres psql -c 'select 1; select 2'", "psql -c 'select 1; select 2'", "query"),
        ("nice -n 5 pytest -q", "pytest -q", "test"),
        ("timeout 60 npm test", "npm test", "test"),
        ('npm test -- --watch=false | grep -v "ok|no"', "npm test -- --watch=false", "test"),
        ("bash -lc 'pytest -q'", "pytest -q", "test"),
        ("set -e; pytest", "pytest", "test"),
        ("source .venv/bin/activate && pytest", "pytest", "test"),
        ("for f in *.py; do pytest $f; done", "for f in *.py; do pytest $f; done", "test"),
        ("cat > a <<EOF\nrm -rf /\nEOF\nmake", "make", "check"),
        # variables are part of a command, unless they only change how its output looks
        (
            "CI=1 FOO='a b' .venv/bin/python -m pytest tests -q",
            "CI=1 FOO='a b' .venv/bin/python -m pytest tests -q",
            "test",
        ),
        ("cd app && MIX_ENV=test mix test --seed 0", "MIX_ENV=test mix test --seed 0", "test"),
        ("export PYTHONPATH=src && pytest", "PYTHONPATH=src pytest", "test"),
        ("env PYTHONPATH=src pytest", "PYTHONPATH=src pytest", "test"),
        ("foo=1 make x", "foo=1 make x", "other"),
        ("NO_COLOR=1 GIT_PAGER=cat git log", "git log", "look"),
        # git
        ('git add -A && git commit -m "fix: it"', "git commit", "commit"),
        ("git commit -F - <<'EOF'\nwhy\nEOF", "git commit -F -", "commit"),
        (
            'git commit -m "$(cat <<\'E\'\nit\'s "so"\nE\n)" && git push',
            "git commit && git push",
            "commit",
        ),
        ("git -C sub commit -m 'x'", "git commit", "commit"),
        ("git commit --dry-run", "git commit --dry-run", "look"),
        ("git --no-pager log -3", "git log -3", "look"),
        ("git checkout -- src/a.py", "git checkout -- src/a.py", "revert"),
        ("git checkout -b feature/login", "git checkout -b feature/login", "git"),
        ("git status --short", "git status --short", "look"),
        ("git stash list", "git stash list", "look"),
        ("git grep -n total", "git grep -n total", "search"),
        # what only looks
        ("rg -n total src", "rg -n total src", "search"),
        ("kubectl get pods", "kubectl get pods", "ask"),
        ("gh pr view 3", "gh pr view 3", "ask"),
        ("echo done; sleep 3", "echo done && sleep 3", "idle"),
        ("cat log | xargs kill", "cat log | xargs kill", "other"),
        ("find . -name '*.pyc' -delete", "find . -name '*.pyc' -delete", "other"),
        ("sed -i s/a/b/ x.py", "sed -i s/a/b/ x.py", "edit"),
        # installs before tests: the name of a package is no run of it
        ("npm ci", "npm ci", "install"),
        ("pip install pytest", "pip install pytest", "install"),
        ("npm install zod@3.23.8", "npm install zod@3.23.8", "install"),
        ("uv add httpx==0.27", "uv add httpx==0.27", "install"),
        # tests and checks
        ("go test ./...", "go test ./...", "test"),
        ("cargo nextest run", "cargo nextest run", "test"),
        ("mix test test/a_test.exs", "mix test test/a_test.exs", "test"),
        ("npm run test:unit", "npm run test:unit", "test"),
        ("./gradlew test", "./gradlew test", "test"),
        ("python manage.py test", "python manage.py test", "test"),
        ("docker compose exec web pytest", "docker compose exec web pytest", "test"),
        (
            ".venv/bin/ruff check . && .venv/bin/mypy",
            ".venv/bin/ruff check . && .venv/bin/mypy",
            "check",
        ),
        ("make", "make", "check"),
        ("terraform plan", "terraform plan", "check"),
        # others
        ("docker compose up -d db", "docker compose up -d db", "other"),
        ("rails db:migrate", "rails db:migrate", "other"),
        ("curl -s https://example.org | jq .", "curl -s https://example.org", "network"),
        ("gh pr review 12 --approve", "gh pr review 12 --approve", "review"),
    ],
)
def test_a_command_is_read_without_what_only_trims_it(line, text, purpose):
    command = read_command(line)
    assert (command.text, command.purpose) == (text, purpose)


@pytest.mark.parametrize("line", ["", "   ", None, 3, "cd /x"])
def test_what_is_no_command_is_none(line):
    assert read_command(line) is None


@pytest.mark.parametrize(
    ("failed", "worked", "is_same"),
    [
        ("npm test", "pnpm test", True), ("pytest tests", ".venv/bin/python -m pytest tests", True),
        ("node assets/build.js", "node build.js", True), ("git push", "git push -u origin x", True),
        ("make seed", "make reset", False), ("make seed", "make seed", False), ("ls src",
        "cargo build", False),
        ("git push", "git pull", False), ("docker ps", "docker compose up", False),
        ("git add one.py", "git add two.py", False),
        ("docker compose up", "docker-compose up", True), ("make deploy", "make deploy ENV=dev",
        True),
    ],
)  # fmt: skip
def test_two_commands_have_one_aim_when_they_say_the_same_differently(failed, worked, is_same):
    assert is_same_aim(failed, worked) is is_same


def test_heads_name_the_program_and_what_it_shall_do():
    assert head_of("/usr/bin/git -C x push") == "git push"
    assert head_of("npm run build") == "npm run build"
    assert head_of("") == ""


def test_searching_without_finding_is_no_failure():
    assert fails_by_nature("grep -r x src")
    assert not fails_by_nature("make deploy")


def test_what_stands_between_quotation_marks_is_no_second_command():
    assert read_command("python -c 'a; b' && ls").text == "python -c 'a; b'"
    assert not read_command("for x in a b; do make $x; done").is_simple


@pytest.mark.parametrize(
    ("line", "purpose"),
    [
        ("mise run test:ci", "test"), ("pnpm --filter web test", "test"), ("just test-all", "test"),
        ("mise run lint", "check"), ("pnpm -r build", "check"), ("git -C /x status", "look"),
    ],
)  # fmt: skip
def test_runners_of_tasks_are_understood(line, purpose):
    assert read_command(line).purpose == purpose


def test_two_verbs_of_one_program_have_no_aim_in_common():
    assert not is_same_aim("git status src", "git read-tree src")
    assert is_same_aim("npm run tests", "npm tests")


@pytest.mark.parametrize(
    "command",
    [
        "gh pr create --title 'a long title of a pull request'",
        "git show 1a2b3c4d5e",
        "cat /tmp/x",
        "x " * 90,
    ],
)
def test_a_command_of_the_moment_is_told_apart(command):
    assert is_of_the_moment(command)
    assert not is_of_the_moment("npm run build")


def test_a_line_has_all_its_purposes_and_its_most_telling_one():
    command = read_command("curl -s https://x.org/setup.sh -o s.sh; npm test; git checkout -- a.py")
    assert command.purpose == "test"
    assert command.has("network")
    assert command.has("revert")
    assert not command.is_simple


def test_variables_make_another_command_with_the_same_aim():
    assert head_of("PYTHONPATH=src pytest -q") == "pytest"
    assert is_same_aim("pytest -q", "PYTHONPATH=src pytest -q")
    assert is_same_program("pytest -q", "PYTHONPATH=src uv run pytest")
    assert is_named_anew("GIT_EDITOR=true git commit --amend")
    assert fails_by_nature("LC_ALL=C grep x src")


def test_a_failed_command_is_not_the_one_that_sets_a_variable():
    assert not runs("PYTHONPATH=src pytest", "pytest")
    assert runs("NO_COLOR=1 pytest | tail", "pytest")
    assert runs("cd x && PYTHONPATH=src pytest", "PYTHONPATH=src pytest")


def test_a_variable_that_mends_a_failure_is_a_fix():
    script = (
        Script()
        .fail("pytest -q", "ModuleNotFoundError: No module named 'shop'")
        .run("PYTHONPATH=src pytest -q", "3 passed in 1s")
    )
    (finding,) = script.findings("error_retry")
    assert finding.data["command"] == "pytest -q"
    assert finding.data["how"] == "command"
    assert finding.data["fix"] == "PYTHONPATH=src pytest -q"


def test_a_recipe_comes_out_with_its_variables():
    script = Script()
    for _ in range(3):
        script.run("MIX_ENV=test mix ecto.reset", "done").run("docker compose up -d db", "up")
        script.run("MIX_ENV=test mix seed", "done")
    recipes = [finding.key for finding in script.findings("tool_sequence")]
    assert any("MIX_ENV=test mix ecto.reset" in recipe for recipe in recipes)


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("cat > src/a.py <<'EOF'\nx\nEOF", {"src/a.py": "x\n"}),
        ("cat <<'EOF' > src/a.py\nx > y\nEOF\necho z > b.md", {"src/a.py": "x > y\n", "b.md": ""}),
        ("tee -a x.md <<EOF\nhi\nEOF", {"x.md": "hi\n"}),
        ("echo hi >> notes.md", {"notes.md": ""}),
        ("echo 'a > b' > 'my notes.md'", {"my notes.md": ""}),
        ("printf x | tee -a log.txt", {"log.txt": ""}),
        ("tee conf.yml < in", {"conf.yml": ""}),
        ("sed -i s/a/b/ src/x.py", {"src/x.py": ""}),
        ("sed -i -e 's/a;b/c/' -e 's/c/d/' a.py Makefile && make", {"a.py": "", "Makefile": ""}),
        ("cd web && sed -i s/a/b/ client.ts", {"web/client.ts": ""}),
        ("perl -pi -e s/a/b/ x.pl", {"x.pl": ""}),
        ("find . -name '*.py' -exec sed -i s/a/b/ {} +", {}),
        ("find . -name '*.py' -exec sed -i s/a/b/ {} \\;", {}),
        ("perl -MList::Util -e 'print' f.txt", {}),
        ("sed -i s/a/b/ src/*.py; sed -n 1,3p a.py; echo x >&2", {}),
        ("git commit -m \"$(cat <<'EOF'\nfeat: a > b\nEOF\n)\"", {}),
        ("python - <<'EOF'\nrun('echo a > b')\nEOF", {}),
        ("cp a.py b.py && mv b.py c.py && rm c.py && touch d.py && python x.py > out.json", {}),
    ],
)  # fmt: skip
def test_the_files_that_a_line_writes_are_read_alike(line, files):
    given = {"command": line}
    event = HostEvent("claude", "tool_post", "s", at_ms=1, cwd="/w", tool="Bash", tool_input=given)
    assert files_written(line) == files
    assert [each.subject for each in actions_of(event, "/w") if each.verb == "edit"] == [*files]
    notes = Talk().run(line, "").notes("code")
    assert [each for note in notes for each in note.files] == [*files]


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("git commit -m 'Docs\n\nRun: cat a > b.txt\nor echo x > notes.md'", []),
        ("gh pr create --body 'Steps:\n1. echo TOKEN > .env\n2. sed -i s/a/b/ config.yml '", []),
        ("gh pr create --body \"$(cat <<'E'\nSay \"why\":\necho a > b\nE\n)\"", []),
        ('gh pr create --body "' + "long\n" * 2_000 + 'echo a > b\n"', []),
        ("echo 'usage: cat FILE > OUT'; echo '>' x", []),
        ("node -e \"\nrun('x')\necho a > b\n\"", []),
        ("ssh host 'cat > /w/x'; docker exec db sh -c 'echo x > /w/y'", []),
        ("sed -i 's/a/b/' $(git ls-files '*.py')", []),
        ("sed -i 's/x/y/' $(grep -rl x src)", []),
        ("sed -i 's/x/y/' `grep -rl x src`", []),
        ("sed -i 's/x/y/' $(grep -l \"a(b(c))\" x)", []),
        ('sed -i "s/v.*/v$(date +%s)/" a.py', ["a.py"]),
        ("sed -i 's/don'\\''t/do not/' README.md", ["README.md"]),
        ("sed -i .bak 's/a/b/' x.py; sed -i '' -e s/a/b/ y.py", ["x.py", "y.py"]),
        ("sed -Ei -e's/a|b/c/' x.py; sed --in-place=.o --expression=p y.py", ["x.py", "y.py"]),
        ("perl -0777 -i.orig -pe 's/a\\n/b/' x.c 'app/[id]/y.c'", ["x.c", "app/[id]/y.c"]),
        ("cat > C:/w/x.py <<E\nx\nE\necho a > 'D:\\w\\y.py'", ["C:/w/x.py", "D:/w/y.py"]),
        ("echo a > src\\b.txt", ["src/b.txt"]),
        ("@'\ndon't\necho a > b\n'@ | Set-Content x.ts; echo q > r", ["r"]),
        ("cd $DIR && echo x > y.txt", []),
        ("cd - && echo x > y.txt && echo x > /w/z.txt", ["/w/z.txt"]),
        ("(cd web && echo a > b); echo c > d", ["web/b", "d"]),
        ("pushd web; echo a > b; popd; echo c > d", ["web/b", "d"]),
        ("bash -lc 'cd web && echo a > b'", ["web/b"]),
        ("echo a > 'two  spaces.md' > \"it's.md\"", ["two  spaces.md", "it's.md"]),
        ("echo a > my\\ file > 'a'\"b > c\"'d'", ["my file", "ab > cd"]),
        ("echo a 2> err.log >> out.log; echo b >&2; echo c &> all.log", ["out.log", "all.log"]),
        ("echo x > $F; echo x > a$i.txt; echo x > a/*.py; echo x > ${A}b", []),
        ("# don't\ncat > a.py <<'E' # it's\nx\nE\n# isn't\necho > b.py", ["a.py", "b.py"]),
        ("npm start & echo $! > server.pid", ["server.pid"]),
        ("python -c 'print(1 << n)'\necho $((1 << 3))\ngrep x <<<w\necho a > b", ["b"]),
        ("if ! grep -q x y; then sudo tee -a z.conf w.conf; fi", ["z.conf", "w.conf"]),
        ("make # echo a > b", []),
    ],
)  # fmt: skip
def test_words_in_a_quotation_and_inner_commands_are_no_files_that_a_line_writes(line, files):
    assert [*files_written(line)] == files


def test_a_document_is_the_text_of_the_program_that_is_fed_with_it():
    line = "cat <<A | tee a.md > b.md\none\nA\ncat > c.md <<-'B-C' && echo x > d.md\n\ttwo\n\tB-C\n"
    texts = {"a.md": "one\n", "b.md": "one\n", "c.md": "\ttwo\n", "d.md": ""}
    assert files_written(line) == texts


@pytest.mark.parametrize(
    ("line", "purpose", "files"),
    [
        ('rg "cout << total" src && make test', "test", []),
        ('grep -n "a << b" x.c; echo done > stamp.txt', "search", ["stamp.txt"]),
        ('git commit -m "Support << x"\npytest -q', "commit", []),
        ("git commit -m 'Support << x'\npytest -q", "commit", []),
        ('python -c "print(1 <<n)"\nnpm test', "test", []),
        ('echo "$a << b $"; npm test', "test", []),
        ("echo $((1 <<n)) && npm test", "test", []),
        ('cd "C:\\a\\" && cat > b.py <<E\n"\nE\npytest -q', "test", ["C:/a/b.py"]),
        ("rg \"cout << total\" src\ncat > a.py <<'E'\nx = 1\nE\npytest -q", "test", ["a.py"]),
        ("cat > a.py <<'E'\r\nx = 1\r\nE\r\npytest -q\r\n", "test", ["a.py"]),
        (f"cat > a.py <<'E' && python a.py {'x' * 320}\ngit commit -m x\nE", "other", ["a.py"]),
    ],
)
def test_only_a_mark_with_lines_behind_it_begins_a_document(line, purpose, files):
    command = read_command(line)
    assert command is not None
    assert command.purpose == purpose
    assert [*files_written(line)] == files


def test_a_commit_with_the_mark_of_a_document_in_its_subject_keeps_it():
    line = 'git commit -m "Support << x"\npytest -q'
    command = read_command(line)
    assert command is not None
    assert command.text == "git commit && pytest -q"
    assert read_commit(line, "[main 1a2b3c4] Support << x").message == "Support << x"
    fed = "git commit -F - <<'E'\r\nfix: it\r\nE\r\n"
    assert read_commit(fed, "[main 1a2b3c4] fix: it").message == "fix: it"


@pytest.mark.parametrize(
    "piece",
    ["cat > ", "cat <<a ", "<<a\n", "sed -i ", "cd x;", "echo '", "echo 2>&1 ", "2>&1 ", "$(",
     "`", '"<<', "$(a ", "((x ", "\\", "@'\n", "timeout -k ", "sudo -u ", '"a << b" ', '"$(',
     '"a $', "<<a '", '<<a "', "<<a\r\n", "<<a x\n a", '\\"$(', "\r\n", '"C:\\', '"C:\\" '],
)  # fmt: skip
def test_a_line_that_repeats_itself_is_read_in_a_moment(piece):
    line = piece * (100_000 // len(piece))
    assert len(files_written(line)) < 3
    assert len(files_written(f"echo {line}")) < 3


@pytest.mark.parametrize("option", ["--filter=a", "--filter a", "-w a", "-F a", "-r", "-C a", "-k"])
def test_a_command_that_repeats_an_option_is_read_in_a_moment(option):
    for program in ("pnpm", "npm", "git", "make"):
        line = f"{program} {f'{option} ' * 60}x"
        assert read_command(line) is not None

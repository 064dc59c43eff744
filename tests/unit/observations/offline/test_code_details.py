"""Every detail of code that is worth keeping: names, signatures, schemas, routes, settings,
versions.
"""

from __future__ import annotations

import pytest

from smara.core.tool_names import tool_arguments
from tests.unit.observations.offline.talk import Talk, only

TYPESCRIPT = """import { z } from "zod"
import bcrypt from "bcrypt"

export const LoginSchema = z.object({
  email: z.string().email(),
  password: z.string().min(8),
})
export const REQUEST_TIMEOUT = 30000
export async function authenticateUser(email: string, password: string): Promise<User> {
  if (!ok) throw new AuthenticationError("bad password")
}
export class UserService extends Base {
  validate(email: string): boolean {
    return check(process.env.DATABASE_URL)
  }
}
router.post('/api/auth/login', handler)
"""

PYTHON = """import os

from fastapi import APIRouter

MAX_RETRIES = 5

@dataclass
class Invoice(Base):
    id: int
    total: Decimal

def charge(invoice: Invoice, *, key: str = "live") -> Receipt:
    try:
        return send(os.environ["STRIPE_KEY"])
    except (CardError, TimeoutError):
        raise

@router.get("/invoices/{id}")
async def show(id: int) -> Invoice: ...
"""

SQL = """CREATE TABLE IF NOT EXISTS refresh_tokens (
    id UUID PRIMARY KEY,
    user_id UUID NOT NULL
);
ALTER TABLE users ADD COLUMN locale TEXT;
"""

GO = """package server

type Server struct {
    Addr string
}

func (s *Server) Start(ctx context.Context) error {
"""

RUST = (
    "pub fn parse(input: &str) -> Result<Ast, ParseError> {\npub struct Ast {\nconst DEPTH: "
    "usize = 8;\n"
)
ELIXIR = (
    "defmodule Shop.Cart do\n  @ttl_seconds 90\n  attribute :state, :atom\n  def add(cart, "
    "item) do\n"
)


@pytest.mark.parametrize(
    ("path", "content", "pieces"),
    [
        (
            "src/auth/index.ts",
            TYPESCRIPT,
            [
                "LoginSchema = z.object",
                "authenticateUser(email: string, password: string): Promise<User>",
                "class UserService extends Base",
                "REQUEST_TIMEOUT = 30000",
                "router.post('/api/auth/login', handler)",
            ],
        ),
        (
            "billing/invoices.py",
            PYTHON,
            [
                "class Invoice(Base)",
                'def charge(invoice: Invoice, *, key: str = "live") -> Receipt',
                "MAX_RETRIES = 5",
                '@router.get("/invoices/{id}")',
            ],
        ),
        (
            "db/schema.sql",
            SQL,
            [
                "CREATE TABLE IF NOT EXISTS refresh_tokens",
                "ALTER TABLE users ADD COLUMN locale TEXT",
            ],
        ),
        ("server.go", GO, ["type Server struct",
        "func (s *Server) Start(ctx context.Context) error"]),
        ("src/ast.rs", RUST, ["pub fn parse(input: &str) -> Result<Ast, ParseError>",
        "DEPTH: usize = 8"]),
        ("lib/cart.ex", ELIXIR, ["defmodule Shop.Cart", "@ttl_seconds 90", ":state, :atom",
        "def add(cart, item)"]),
        (".eslintrc.json", '{\n  "extends": "airbnb",\n  "semi": "error"\n}',
        ['"extends": "airbnb"', '"semi"']),
        (".env.example", "DATABASE_URL=postgres://x\nPORT=4002\n", ["DATABASE_URL=postgres://x",
        "PORT=4002"]),
        ("docs/setup.md", "# Setup\ntext\n## Database\n", ["Setup", "Database"]),
    ],
)  # fmt: skip
def test_a_new_file_is_told_with_what_it_defines(path, content, pieces):
    note = only(Talk().write(path, content).notes())
    assert note.category == "code"
    assert note.text.startswith(f"Created {path}: ")
    assert note.files == (path,)
    assert [piece for piece in pieces if piece not in note.text] == []


def test_an_edit_tells_only_what_is_new():
    note = only(
        Talk()
        .edit(
            "a.py",
            "def old():\n    pass",
            "def old():\n    pass\n\ndef new(x: int) -> str:\n    pass",
        )
        .notes()
    )
    assert note.text == "Changed a.py: def new(x: int) -> str"


def test_a_name_that_is_gone_is_told():
    note = only(Talk().edit("a.py", "def old():\n    pass", "def new():\n    pass").notes())
    assert note.text == "Changed a.py: def new(); removed old"


def test_an_edit_that_defines_nothing_quotes_the_line_that_came_and_where():
    old = "def total(items):\n    return sum(items)"
    note = only(Talk().edit("a.py", old, "def total(items):\n    return sum(items) * RATE").notes())
    assert note.text == "Changed a.py: def total(items); return sum(items) * RATE"


def test_a_dependency_in_a_manifest_keeps_its_version():
    note = only(
        Talk().edit("package.json", '"a": "1.0.0"', '"a": "1.0.0",\n    "zod": "^3.23.8"').notes()
    )
    assert '"zod": "^3.23.8"' in note.text


def test_files_of_one_folder_are_told_together():
    talk = (
        Talk()
        .write("src/utils/auth.ts", "export const a = () => 1")
        .write("src/utils/dates.ts", "function b() {")
    )
    note = only(talk.notes())
    assert note.text == "Changed code in src/utils/"
    assert note.details == (
        "Created auth.ts: export const a = () => 1",
        "Created dates.ts: function b()",
    )


def test_test_cases_are_told_by_name():
    content = 'describe("UserService.validate", () => {\n  it("rejects invalid emails", () => {\n'
    note = only(Talk().write("tests/user.test.ts", content).notes())
    assert "UserService.validate; rejects invalid emails" in note.text


def test_when_there_is_much_the_rest_is_named_without_signatures():
    content = "\n".join(
        f"def function_number_{n}(first_argument: int, second_argument: str) -> None:"
        for n in range(30)
    )
    text = Talk().write("big.py", content).text()
    assert "def function_number_0(first_argument: int, second_argument: str) -> None" in text
    assert "function_number_12" in text
    assert len(text) < 1_000


def test_paths_are_told_from_the_folder_of_the_work():
    talk = Talk(cwd="/home/ada/shop").write("/home/ada/shop/src/a.py", "def a(): ...")
    assert only(talk.notes()).files == ("src/a.py",)


def test_code_in_an_answer_is_told_with_the_file_it_belongs_to():
    answer = (
        "Put this into src/auth/token.ts:\n```ts\nexport function sign(user: User): string "
        "{\n```\nThat's all."
    )
    assert (
        "Showed code: src/auth/token.ts: export function sign(user: User): string"
        in Talk().agent(answer).text("code")
    )


def test_a_file_written_by_a_shell_command_is_code():
    talk = Talk().run(
        "cat > tools/x.py <<'EOF'\ndef tool(a: int) -> int:\n    return a\nEOF\npython tools/x.py",
        "",
    )
    assert "Changed tools/x.py: def tool(a: int) -> int" in talk.text("code")


def test_an_added_line_of_a_patch_is_no_heading():
    patch = (
        "*** Begin Patch\n*** Update File: a.sql\n@@\n--- old words\n+++ new words\n"
        "+CREATE TABLE users (id int);\n*** End Patch"
    )
    talk = Talk().call("apply_patch", {"input": patch}, "Done!")
    assert [each for note in talk.notes("code") for each in note.files] == ["a.sql"]
    assert tool_arguments("Edit", {"input": patch})["files"] == ["a.sql"]
    talk = Talk().call(
        "apply_diff", {"diff": "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n"}, "ok"
    )
    assert [each for note in talk.notes("code") for each in note.files] == ["b.py"]


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("sed -i 's/a/b/' x.py", "sed: can't read x.py: No such file or directory"),
        ("cd src && echo x > conf/y.txt", "bash: conf/y.txt: No such file or directory"),
        ("cat > no/y.py <<'E'\ny = 1\nE", "bash: no/y.py: No such file or directory"),
        ("make && echo ok > stamp.txt", "make: *** [all] Error 1"),
        ("npm test | tee out.log", "1 failing\nnpm ERR! Test failed."),
        ("npm test; echo ok > stamp.txt; false", "1 failing\nnpm ERR! Test failed."),
        ("sed -i 's/a/b/' x.py && pytest -q", "sed: can't read x.py: No such file or directory"),
        ("sed -i 's/a/b' x.py && pytest -q", "sed: -e expression #1, char 5: unterminated `s'"),
        ("echo x >> no/y.py && npm test", "bash: line 1: no/y.py: No such file or directory"),
        (
            "cat > no/y.py <<'E'\ny = 1\nE\npython no/y.py",
            "bash: no/y.py: No such file or directory",
        ),
        ("echo x > y.txt; (npm test", "bash: -c: line 2: syntax error: unexpected end of file"),
    ],
)
def test_a_line_that_failed_has_changed_no_file(line, output):
    assert Talk().run(line, output, is_error=True).notes("code") == []


def test_a_line_that_failed_behind_its_document_has_written_it():
    line = "cat > t.py <<'E'\ndef t(): ...\nE\npython t.py"
    talk = Talk().run(line, "NameError: name 'x' is not defined", is_error=True)
    assert talk.text("code") == "Changed t.py: def t()"


@pytest.mark.parametrize(
    ("line", "is_error"),
    [
        ("sed -i 's/a/b/' x.py && pytest -q", True),
        ("cd /w && sed -i 's/a/b/' x.py; pytest -q 2>&1 | tail -3", False),
        ("echo 'x = 1' >> x.py && timeout 60 npm test > /dev/null", True),
        ("printf 'x' > x.py; CI=1 npm test && echo ok > stamp.txt", True),
        ("sed -i 's/a/b/' x.py && git commit -am 'feat: x' && git push", True),
    ],
)
def test_what_was_written_before_the_part_that_failed_is_told(line, is_error):
    output = "FAILED t.py::test_x - assert 1 == 2\nx.py:3: AssertionError\n1 failed in 0.1s"
    talk = Talk(cwd="/w").run(line, output, is_error=is_error)
    assert [note.text for note in talk.notes("code")] == ["Changed x.py"]
    assert [note.category for note in talk.notes()] == ["code", "error"]


def test_a_failed_edit_changed_nothing():
    assert (
        Talk()
        .call(
            "Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "not found", True
        )
        .notes()
        == []
    )

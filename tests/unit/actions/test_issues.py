"""Quality reports are read in the shapes that testers and tools write, and the rest is said."""

from __future__ import annotations

import pytest

from smara.actions.issues import read_issues

SHAPES = {
    "numbered": (
        "## QA report\n"
        "1. [HIGH] src/hooks/sign.py:12: signature is not compared in constant time\n"
        "2. tests/test_hooks.py::test_replay fails: replayed webhooks are accepted",
        [
            ("src/hooks/sign.py", 12, "constant time"),
            ("tests/test_hooks.py", None, "replayed webhooks"),
        ],
    ),
    "bullets": (
        "- src/hooks/sign.py:12 - The signature is not compared in constant time, so it c"
        "an be guessed byte by byte.\n"
        "- src/hooks/replay.py: Replayed webhooks are accepted because the nonce is never"
        " stored.",
        [("src/hooks/sign.py", 12, "byte by byte"), ("src/hooks/replay.py", None, "nonce")],
    ),
    "md": (
        "### Issues\n"
        "\n"
        "**Issue 1: Timing attack**\n"
        "File: src/hooks/sign.py\n"
        "Line: 12\n"
        "Problem: signature is compared with ==\n"
        "Fix: use hmac.compare_digest\n",
        [("src/hooks/sign.py", 12, "compared with ==")],
    ),
    "pytest": (
        "FAILED tests/test_hooks.py::test_replay - AssertionError: replayed webhook accep"
        "ted\n"
        "1 failed, 12 passed",
        [("tests/test_hooks.py", None, "replayed webhook accepted")],
    ),
    "json": (
        '{"issues":[{"file":"src/hooks/sign.py","line":12,"severity":"high","description"'
        ':"signature compared with =="}]}',
        [("src/hooks/sign.py", 12, "compared with ==")],
    ),
    "fail": (
        "Status: FAILED\n"
        "\n"
        "[ERROR] src/hooks/sign.py:12 signature compared with == instead of hmac.compare_"
        "digest",
        [("src/hooks/sign.py", 12, "compared with ==")],
    ),
    "table": (
        "| # | Severity | File | Issue |\n"
        "|---|---|---|---|\n"
        "| 1 | High | `src/a.py:3` | Tokens never expire |\n"
        "| 2 | Low | `src/b.py` | Typo in the label |",
        [("src/a.py", 3, "never expire"), ("src/b.py", None, "Typo")],
    ),
    "sarif": (
        '{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x","rules":[{"id":"r1","sh'
        'ortDescription":{"text":"bad"}}]}},"results":[{"ruleId":"r1","level":"error","me'
        'ssage":{"text":"SQL built from input"},"locations":[{"physicalLocation":{"artifa'
        'ctLocation":{"uri":"src/db.py"},"region":{"startLine":40}}}]}]}]}',
        [("src/db.py", 40, "SQL built")],
    ),
    "junit": (
        '<?xml version="1.0"?><testsuite tests="2"><testcase classname="tests.test_a" nam'
        'e="test_ok"/><testcase classname="tests.test_a" name="test_bad" file="tests/test'
        '_a.py" line="4"><failure message="assert 1 == 2">trace</failure></testcase></tes'
        "tsuite>",
        [("tests/test_a.py", 4, "assert 1 == 2")],
    ),
    "checkbox": (
        "- [ ] src/a.py: handle the empty list\n"
        "- [x] src/b.py: fixed typo\n"
        "- [ ] The login page is slow",
        [("src/a.py", None, "empty list")],
    ),
    "ruff": (
        "src/app/views.py:3:8: F401 [*] `os` imported but unused\n"
        "src/app/models.py:120:101: E501 Line too long (120 > 100)\n"
        "Found 2 errors.\n"
        "[*] 1 fixable with the `--fix` option.",
        [("src/app/views.py", 3, "imported but unused"), ("src/app/models.py", 120, "too long")],
    ),
    "mypy": (
        'app/core.py:55: error: Incompatible return value type (got "None", expected "str'
        '")  [return-value]\n'
        "app/core.py:56: note: See https://mypy.rtd.io\n"
        "Found 1 error in 1 file (checked 20 source files)",
        [("app/core.py", 55, "Incompatible return")],
    ),
    "tsc": (
        "src/pages/cart.tsx(42,17): error TS2322: Type 'string' is not assignable to type"
        " 'number'.\n"
        "src/lib/money.ts(7,3): error TS7006: Parameter 'x' implicitly has an 'any' type.",
        [("src/pages/cart.tsx", 42, "not assignable"), ("src/lib/money.ts", 7, "implicitly")],
    ),
    "eslint": (
        "\n"
        "/home/u/shop/src/cart.js\n"
        "   12:5   error    'total' is assigned a value but never used  no-unused-vars\n"
        "   30:11  warning  Unexpected console statement               no-console\n"
        "\n"
        "/home/u/shop/src/api.js\n"
        "  4:1  error  Parsing error: Unexpected token\n"
        "\n"
        "✖ 3 problems (2 errors, 1 warning)\n",
        [
            ("src/cart.js", 12, "never used"),
            ("src/cart.js", 30, "console"),
            ("src/api.js", 4, "Parsing error"),
        ],
    ),
    "eslintjson": (
        '[{"filePath":"/w/src/cart.js","messages":[{"ruleId":"no-unused-vars","severity":'
        '2,"message":"\'total\' is never used","line":12,"column":5}],"errorCount":1},{"fil'
        'ePath":"/w/src/ok.js","messages":[],"errorCount":0}]',
        [("src/cart.js", 12, "never used")],
    ),
    "clippy": (
        "warning: this `if` has identical blocks\n"
        "  --> src/parser.rs:88:12\n"
        "   |\n"
        "88 |     if a {\n"
        "   |     ^^^^\n"
        "   = note: `#[warn(clippy::if_same_then_else)]` on by default\n"
        "\n"
        "error[E0382]: borrow of moved value: `name`\n"
        " --> src/main.rs:9:20\n"
        "  |\n",
        [("src/parser.rs", 88, "identical blocks"), ("src/main.rs", 9, "moved value")],
    ),
    "bandit": (
        ">> Issue: [B105:hardcoded_password_string] Possible hardcoded password: 'hunter2"
        "'\n"
        "   Severity: Low   Confidence: Medium\n"
        "   CWE: CWE-259\n"
        "   Location: ./src/auth/login.py:14:11\n"
        "13\t\n"
        "14\tPASSWORD = 'x'\n"
        "--------------------------------------------------\n"
        ">> Issue: [B608:hardcoded_sql_expressions] Possible SQL injection vector\n"
        "   Severity: Medium   Confidence: Low\n"
        "   Location: ./src/db/query.py:77:8\n",
        [("src/auth/login.py", 14, "hardcoded password"), ("src/db/query.py", 77, "SQL injection")],
    ),
    "review": (
        "I reviewed the change. Overall it is solid, but there are two things to fix befo"
        "re merging:\n"
        "\n"
        "1. **Race condition in `src/jobs/queue.py`** (line 88)\n"
        "   The lease is renewed outside the transaction, so two workers can hold it.\n"
        "   Suggested fix: renew it inside.\n"
        "\n"
        "2. **Missing test** – `src/jobs/retry.py` has no test for the give-up path.\n"
        "\n"
        "Everything else looks good.",
        [("src/jobs/queue.py", 88, "lease is renewed"), ("src/jobs/retry.py", None, "no test")],
    ),
    "githubcomment": (
        "**src/ui/Button.tsx** (lines 10-14)\n"
        "> The `disabled` prop is ignored when `href` is set.\n"
        "\n"
        "**src/ui/Menu.tsx** (line 40)\n"
        "> Escape does not close the menu.",
        [("src/ui/Button.tsx", 10, "disabled"), ("src/ui/Menu.tsx", 40, "Escape")],
    ),
    "goTest": (
        "--- FAIL: TestExpiry (0.00s)\n"
        "    token_test.go:31: got true, want false\n"
        "FAIL\n"
        "FAIL\texample.com/auth\t0.012s",
        [("token_test.go", None, "got true")],
    ),
    "checkstyle": (
        '<?xml version="1.0"?><checkstyle version="8"><file name="src/main/java/App.java"'
        '><error line="12" severity="error" message="Missing Javadoc." source="x"/><error'
        ' line="40" severity="warning" message="Line is longer than 100 characters."/></f'
        "ile></checkstyle>",
        [("src/main/java/App.java", 12, "Javadoc"), ("src/main/java/App.java", 40, "longer")],
    ),
    "jsonFence": (
        "Here is my verdict:\n"
        "\n"
        "```json\n"
        '{"verdict": "REJECTED", "findings": [{"title": "Token in log", "path": "lib/log.'
        'ex", "line_number": 9, "detail": "The bearer token is logged in full."}]}\n'
        "```\n",
        [("lib/log.ex", 9, "bearer token")],
    ),
    "golangci": (
        "internal/store/db.go:45:3: ineffectual assignment to err (ineffassign)\n"
        "\terr = tx.Commit()\n"
        "\t^\n",
        [("internal/store/db.go", 45, "ineffectual")],
    ),
    "rubocop": (
        "Offenses:\n"
        "\n"
        "app/models/user.rb:10:5: W: Lint/UselessAssignment: Useless assignment to variab"
        "le - x.\n"
        "    x = 1\n"
        "    ^\n"
        "\n"
        "14 files inspected, 1 offense detected",
        [("app/models/user.rb", 10, "Useless assignment")],
    ),
    "tableNoHeader": (
        "Location | Problem\n"
        "--- | ---\n"
        "src/x/net.c:410 | buffer is freed twice\n"
        "include/x/net.h:12 | macro shadows a function",
        [("src/x/net.c", 410, "freed twice"), ("include/x/net.h", 12, "shadows")],
    ),
    "emoji": (
        "🔴 `src/cache.go:71` — entry is never evicted\n"
        "🟡 `src/cache.go:90` — comment is outdated\n"
        "🟢 nothing else",
        [("src/cache.go", 71, "never evicted"), ("src/cache.go", 90, "outdated")],
    ),
    "coderabbit": (
        "In `@packages/api/src/auth.ts` around lines 45 - 52, the token is decoded but it"
        "s signature is never verified.\n"
        "\n"
        "In `@packages/api/src/rate.ts` at line 8, the window is in seconds but the const"
        "ant in ms.",
        [
            ("packages/api/src/auth.ts", 45, "never verified"),
            ("packages/api/src/rate.ts", 8, "seconds"),
        ],
    ),
    "steps": (
        "BUG-1: Cart total wrong\n"
        "Severity: High\n"
        "File: src/cart/total.py\n"
        "Steps: add two items\n"
        "Expected: 20\n"
        "Actual: 19.99 because of float rounding\n"
        "\n"
        "BUG-2: Coupon applied twice\n"
        "Severity: Medium\n"
        "File: src/cart/coupon.py\n"
        "Actual: pressing Enter and clicking applies it twice",
        [("src/cart/total.py", None, "19.99"), ("src/cart/coupon.py", None, "twice")],
    ),
    "pylint": (
        "************* Module shop.cart\n"
        "shop/cart.py:1:0: C0114: Missing module docstring (missing-module-docstring)\n"
        "shop/cart.py:9:4: W0612: Unused variable 'x' (unused-variable)\n"
        "\n"
        "-----------------------------------\n"
        "Your code has been rated at 7.50/10",
        [("shop/cart.py", 1, "docstring"), ("shop/cart.py", 9, "Unused")],
    ),
    "semgrep": (
        '{"results":[{"check_id":"py.lang.eval","path":"src/run.py","start":{"line":3,"co'
        'l":1},"end":{"line":3,"col":9},"extra":{"message":"Detected eval(); use ast.lite'
        'ral_eval","severity":"ERROR"}}],"errors":[]}',
        [("src/run.py", 3, "eval")],
    ),
    "pytestjson": (
        '{"summary":{"failed":1},"tests":[{"nodeid":"tests/test_a.py::test_ok","outcome":'
        '"passed","call":{}},{"nodeid":"tests/test_a.py::test_b","outcome":"failed","call'
        '":{"crash":{"path":"/w/tests/test_a.py","lineno":7,"message":"AssertionError: 1 '
        '!= 2"}}}]}',
        [("tests/test_a.py", 7, "1 != 2")],
    ),
    "nested": (
        "## Findings\n"
        "\n"
        "### src/http/client.py\n"
        "- Line 20: no timeout on requests\n"
        "- Line 48: response body is never closed\n"
        "\n"
        "### src/http/server.py\n"
        "- Line 5: binds to all interfaces",
        [
            ("src/http/client.py", 20, "timeout"),
            ("src/http/client.py", 48, "closed"),
            ("src/http/server.py", 5, "binds"),
        ],
    ),
    "codeclimate": (
        '[{"description":"Function has a complexity of 12.","severity":"minor","location"'
        ':{"path":"lib/x.rb","lines":{"begin":14}},"fingerprint":"a"}]',
        [("lib/x.rb", 14, "complexity")],
    ),
    "mocha": (
        "  1) Cart\n"
        "       adds tax:\n"
        "     AssertionError: expected 10 to equal 12\n"
        "      at Context.<anonymous> (test/cart.spec.js:14:23)\n"
        "\n"
        "  3 passing\n"
        "  1 failing",
        [("test/cart.spec.js", 14, "expected 10")],
    ),
    "xunit2": (
        '<testsuites><testsuite name="t"><testcase classname="com.shop.CartTest" name="to'
        'tal"><error type="NPE" message="null total">x</error></testcase></testsuite></te'
        "stsuites>",
        [("", None, "null total")],
    ),
    "french": (
        "1. [Élevée] `src/paie/bulletin.py` ligne 30 : l'arrondi se fait avant la somme",
        [("src/paie/bulletin.py", 30, "arrondi")],
    ),
    "hadolint": (
        "infra/Dockerfile:3 DL3008 warning: Pin versions in apt get install",
        [("infra/Dockerfile", 3, "Pin versions")],
    ),
    "swiftlint": (
        "/w/App/View.swift:10:1: warning: Line Length Violation: Line should be 120 chara"
        "cters or less (line_length)",
        [("App/View.swift", 10, "Line")],
    ),
    "qaMatrix": (
        "| Test | Result | Notes |\n"
        "|:--|:--|:--|\n"
        "| login works | PASS | |\n"
        "| `web/cart.spec.ts` checkout | FAIL | total is off by one cent |",
        [("web/cart.spec.ts", None, "off by one")],
    ),
    "acceptance": (
        "Acceptance criteria:\n"
        "- [x] user can log in\n"
        "- [ ] user can reset password — `src/auth/reset.py` raises KeyError when the mai"
        "l is missing\n",
        [("src/auth/reset.py", None, "KeyError")],
    ),
    "llmreview": (
        "## Code Review\n"
        "\n"
        "### 🚨 Critical\n"
        "\n"
        "**1. SQL injection in `src/db/search.py:42`**\n"
        "User input is concatenated into the query.\n"
        "\n"
        "**Recommendation:** use bound parameters.\n"
        "\n"
        "### 💡 Suggestions\n"
        "\n"
        "- Consider caching the result of `load()` in `src/db/cache.py`.\n",
        [("src/db/search.py", 42, "SQL injection"), ("src/db/cache.py", None, "caching")],
    ),
    "yamlish": (
        "issues:\n"
        "  - file: src/a/b.ts\n"
        "    line: 3\n"
        "    severity: high\n"
        "    message: promise is not awaited\n"
        "  - file: src/a/c.ts\n"
        "    line: 9\n"
        "    message: listener is never removed\n",
        [("src/a/b.ts", 3, "not awaited"), ("src/a/c.ts", 9, "never removed")],
    ),
    "ktlint": (
        "src/main/kotlin/App.kt:5:1: Unused import (no-unused-imports)",
        [("src/main/kotlin/App.kt", 5, "Unused import")],
    ),
    "sonar": (
        '{"issues":[{"key":"A","rule":"python:S1481","severity":"MINOR","component":"shop'
        ':src/cart.py","line":7,"message":"Remove the unused local variable.","status":"O'
        'PEN"}]}',
        [("src/cart.py", 7, "unused local")],
    ),
    "githubapi": (
        '[{"path":"src/x.py","line":4,"body":"This swallows the exception.","user":{"logi'
        'n":"a"}},{"path":"src/y.py","line":null,"original_line":9,"body":"Name is mislea'
        'ding."}]',
        [("src/x.py", 4, "swallows"), ("src/y.py", None, "misleading")],
    ),
    "defs": (
        "Defect: export loses the last row\n"
        "Component: src/report/export.py\n"
        "Repro: export 1,001 rows\n",
        [("src/report/export.py", None, "last row")],
    ),
    "quotes": (
        '* src/mail.py L14: "retry" is read as minutes, written as seconds\n'
        "* src/mail.py L30–L34: dead code\n",
        [("src/mail.py", 14, "minutes"), ("src/mail.py", 30, "dead code")],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_issues_of_a_report_are_read_with_their_places(shape: str) -> None:
    report, expected = SHAPES[shape]
    issues = read_issues(report).issues
    assert len(issues) == len(expected)
    for issue, (path, line, words) in zip(issues, expected, strict=True):
        assert path in issue.path
        assert line is None or issue.line == line
        assert words in issue.text


@pytest.mark.parametrize(
    ("report", "unread"),
    [
        ("Something is off with payments.\nThe login page feels slow.", 2),
        ("- [ ] The login page feels slow", 1),
        ("The review found that src/mail/send.py retries forever.", 1),
        ('{"issues": [{"severity": "high", "description": "no place"}]}', 1),
        ("{broken json", 1),
        ('<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', 1),
    ],
)
def test_what_names_no_place_is_said_and_not_dropped(report: str, unread: int) -> None:
    read = read_issues(report)
    assert read.issues == ()
    assert read.unread_count == unread
    assert read.unread_lines[0] == report.splitlines()[0]


@pytest.mark.parametrize(
    "report",
    [
        "12 passed in 0.40s", "## QA report\n\nNo issues found.", "- [x] src/a.py: fixed the typo",
        "✅ all checks passed", '{"tests": [{"nodeid": "a.py::t", "outcome": "passed"}]}', "",
    ],
)  # fmt: skip
def test_good_news_is_neither_an_issue_nor_unread(report: str) -> None:
    read = read_issues(report)
    assert (read.issues, read.unread_count) == ((), 0)

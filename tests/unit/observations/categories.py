"""Every kind of thing that documents 1 and 2 want to be remembered: what the prompt says of it, and
a line of it.

A case has the flavour whose prompt must name it, words of that prompt, a line as a model
would write it, and what the note must be.
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    name: str
    flavor: str
    prompt: tuple[str, ...]
    line: str
    category: str
    priority: str = "medium"
    files: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    refers_to: str | None = None
    keeps: tuple[str, ...] = ()


BOTH = "both"

CASES = (
    # what the user says: requests, questions, assertions, changes
    Case(
        "request",
        BOTH,
        ("`User asked to …` is a request",),
        line="🟡 (09:15) User asked to implement login with Zod",
        category="request",
        keeps=("Zod",),
    ),
    Case(
        "question",
        BOTH,
        ("is a question", "takes nothing back"),
        line="🟡 (09:15) User asked how to implement refresh tokens",
        category="question",
    ),
    Case(
        "question about why",
        BOTH,
        ("whether/how/why",),
        line="🟡 (09:15) User asked why the build fails on Windows",
        category="question",
    ),
    Case(
        "assertion about the code",
        BOTH,
        ("`User said …` is an assertion", "the user is right"),
        line="🔴 (09:15) User said the API is in /server",
        category="statement",
        priority="high",
        keeps=("/server",),
    ),
    Case(
        "assertion about themselves",
        "general",
        ("what they tell of their life", "family"),
        line="🔴 (09:15) User said they have two kids: Emma (12) and Jake (9)",
        category="statement",
        priority="high",
        keeps=("Emma (12)",),
    ),
    Case(
        "preference",
        BOTH,
        ("`User prefers …`", "preferences"),
        line="🔴 (09:15) User prefers Jest over Vitest",
        category="preference",
        priority="high",
    ),
    Case(
        "requirement",
        BOTH,
        ("`User requires …`", "every requirement, condition"),
        line="🔴 (09:15) User requires HTTP-only cookies, not localStorage, for tokens",
        category="preference",
        priority="high",
    ),
    Case(
        "decision",
        BOTH,
        ("`User decided …`",),
        line="🔴 (09:15) User decided on OAuth2 later, not now",
        category="decision",
        priority="high",
    ),
    Case(
        "approval",
        BOTH,
        ("decisions",),
        line="🔴 (10:45) User's tech lead approved the auth implementation",
        category="decision",
        priority="high",
    ),
    Case(
        "state change",
        BOTH,
        ("a change says what it replaces and what no longer holds",),
        line="🔴 (09:15) User switched from Redux to Zustand (no longer using Redux)",
        category="change",
        priority="high",
    ),
    Case(
        "migration under way",
        BOTH,
        ("`User switched from A to B`",),
        line="🔴 (09:15) User is migrating the codebase from JavaScript to TypeScript",
        category="change",
        priority="high",
    ),
    Case(
        "superseded preference",
        BOTH,
        ("`X is now B (was A)`",),
        line="🔴 (10:00) Code reviews are now in the morning (was afternoon)",
        category="change",
        priority="high",
    ),
    Case(
        "removal",
        BOTH,
        ("changes",),
        line="🔴 (09:15) User removed the legacy auth system (no longer in use)",
        category="change",
        priority="high",
    ),
    Case(
        "words of the user",
        BOTH,
        ("nearly word for word",),
        line='🟡 (09:15) User asked to "make the header sticky but only on mobile pls"',
        category="request",
        keeps=("but only on mobile pls",),
    ),
    Case(
        "unusual phrasing",
        BOTH,
        ("Unusual terms stay as they are, in quotes",),
        line='🔴 (09:15) User said they did a "movement session"',
        category="statement",
        priority="high",
        keeps=('"movement session"',),
    ),
    Case(
        "precise verbs",
        BOTH,
        ("Exact verbs", 'not "got"'),
        line="🔴 (09:15) User subscribed to the weekly newsletter of ACM",
        category="statement",
        priority="high",
        keeps=("subscribed to",),
    ),
    Case(
        "several events are split",
        BOTH,
        ("two events are two lines",),
        line="🔴 (09:15) User started at Acme Corp",
        category="statement",
        priority="high",
    ),
    # time
    Case(
        "past date",
        BOTH,
        ("Two times", '"yesterday"', "(meaning YYYY-MM-DD)"),
        line="🔴 (09:15) User deployed to staging yesterday. (meaning 2025-12-03)",
        category="statement",
        priority="high",
        refers_to="2025-12-03",
    ),
    Case(
        "future date",
        BOTH,
        ('"by Friday"',),
        line="🟡 (09:15) User asked to finish the login by Friday (meaning 2025-12-05)",
        category="request",
        refers_to="2025-12-05",
    ),
    Case(
        "span of dates",
        BOTH,
        ("(meaning YYYY-MM-DD..YYYY-MM-DD)",),
        line="🔴 (09:15) User is away next week. (meaning 2025-12-08..2025-12-14)",
        category="statement",
        priority="high",
        refers_to="2025-12-08..2025-12-14",
    ),
    Case(
        "vague time has no date",
        BOTH,
        ('Nothing for "now", "recently", "soon"',),
        line="🟢 (09:15) User said the tests got slower recently",
        category="statement",
        priority="low",
    ),
    # the work
    Case(
        "project context",
        "coding",
        ("feature, bug or refactoring",),
        line="🟡 (09:15) User said they are at the checkout feature in apps/shop/",
        category="statement",
        files=("apps/shop/",),
    ),
    Case(
        "constraint",
        "coding",
        ("its constraints",),
        line="🔴 (09:15) User requires that nothing is stored in the browser",
        category="preference",
        priority="high",
    ),
    Case(
        "technology choice",
        "coding",
        ("choices of technology, architecture and code style, and why",),
        line="🔴 (09:15) User decided on PostgreSQL 16 because of pgvector",
        category="decision",
        priority="high",
        keeps=("PostgreSQL 16",),
    ),
    Case(
        "code style",
        "coding",
        ("code style",),
        line="🔴 (09:15) User prefers early returns and no else",
        category="preference",
        priority="high",
    ),
    # code
    Case(
        "signature",
        "coding",
        ("whole signatures",),
        line="🟡 (14:05) Agent wrote validateEmail(email: string): boolean in "
        "utils/validation.ts:12-30",
        category="code",
        files=("utils/validation.ts",),
        lines=(12, 30),
        keeps=("validateEmail(email: string): boolean",),
    ),
    Case(
        "class",
        "coding",
        ("functions, methods and classes",),
        line="🟡 (14:05) Agent created class LoginForm in src/ui/LoginForm.tsx",
        category="code",
        files=("src/ui/LoginForm.tsx",),
    ),
    Case(
        "variables",
        "coding",
        ("the variables and imports that matter",),
        line="🟡 (14:05) Agent renamed userId to accountId in src/auth/index.ts",
        category="code",
        files=("src/auth/index.ts",),
    ),
    Case(
        "imports",
        "coding",
        ("imports",),
        line="🟡 (14:05) Agent added imports 'jwt' and 'bcrypt' in src/auth/index.ts",
        category="code",
        files=("src/auth/index.ts",),
        keeps=("'jwt'", "'bcrypt'"),
    ),
    Case(
        "language and framework",
        "coding",
        ("language and\n  framework",),
        line="🟡 (14:05) Agent found the server is Python 3.11 with FastAPI",
        category="finding",
    ),
    Case(
        "database schema",
        "coding",
        ("Schemas and tables with fields and types",),
        line="🟡 (14:05) Agent created table refresh_tokens: id uuid, user_id uuid, expires_at "
        "timestamptz",
        category="code",
        keeps=("expires_at timestamptz",),
    ),
    Case(
        "validation schema",
        "coding",
        ("Schemas",),
        line="🟡 (14:05) Agent created LoginSchema = z.object({ email: z.string().email(), "
        "password: "
        "z.string().min(8) })"
        " in src/schemas/auth.ts",
        category="code",
        files=("src/schemas/auth.ts",),
        keeps=("z.string().min(8)",),
    ),
    Case(
        "API route",
        "coding",
        ("API routes with method, path, input and output",),
        line="🟡 (14:05) Agent added POST /api/auth/login returning { token, user }",
        category="code",
        keeps=("POST /api/auth/login", "{ token, user }"),
    ),
    Case(
        "query",
        "coding",
        ("queries as they were run",),
        line="🟡 (14:05) Agent ran SELECT * FROM users WHERE email = ? : 1 row",
        category="command",
        keeps=("SELECT * FROM users WHERE email = ?",),
    ),
    Case(
        "configuration value",
        "coding",
        ("Configuration and environment variables with their exact values",),
        line="🟡 (14:05) Agent set REQUEST_TIMEOUT to 30000 ms",
        category="code",
        keeps=("REQUEST_TIMEOUT", "30000 ms"),
    ),
    Case(
        "environment variables",
        "coding",
        ("environment variables",),
        line="🟡 (14:05) Agent configured DATABASE_URL and REDIS_URL in .env.example",
        category="code",
        keeps=("DATABASE_URL",),
    ),
    Case(
        "tool configuration",
        "coding",
        ("Configuration",),
        line="🟡 (14:05) Agent configured ESLint in .eslintrc.json: extends ['airbnb', "
        "'prettier'], "
        "no-unused-vars: error",
        category="code",
        files=(".eslintrc.json",),
    ),
    Case(
        "dependency with version",
        "coding",
        ("dependencies with versions",),
        line="🟡 (14:05) Agent installed @auth0/auth0-spa-js 2.1.0",
        category="command",
        keeps=("@auth0/auth0-spa-js 2.1.0",),
    ),
    Case(
        "file structure",
        "coding",
        ("where files and folders lie",),
        line="🟡 (14:05) Agent created src/utils/ with auth.ts, validation.ts and helpers.ts",
        category="code",
        files=("src/utils/", "auth.ts", "validation.ts", "helpers.ts"),
    ),
    Case(
        "setup steps",
        "coding",
        ("steps of setup",),
        line="🟡 (14:05) Agent explained setup: docker compose up, then make seed",
        category="answer",
    ),
    Case(
        "error",
        "coding",
        ("Errors with type, message and place",),
        line="🟡 (09:16) Error: TypeError: user.id is undefined at src/api/users.ts:45",
        category="error",
        files=("src/api/users.ts",),
        lines=(45,),
    ),
    Case(
        "fix with cause",
        "coding",
        ("their cause and what fixed them",),
        line="🟡 (14:05) Agent fixed src/api/users.ts:45: missing null check on user.id",
        category="fix",
        files=("src/api/users.ts",),
        lines=(45,),
    ),
    Case(
        "error handling",
        "coding",
        ("which errors code now handles",),
        line="🟡 (14:05) Agent added try/catch for AuthenticationError and ValidationError in "
        "src/api/users.ts",
        category="code",
        files=("src/api/users.ts",),
    ),
    Case(
        "failed attempt",
        "coding",
        ("attempts that\n  failed and why",),
        line="🟡 (09:16) Agent tried npm install bcrypt but it failed with EACCES",
        category="error",
        keeps=("EACCES",),
    ),
    Case(
        "tests written",
        "coding",
        ("Tests: file, what they cover",),
        line="🟡 (14:05) Agent added unit tests for UserService.validate() in tests/user.test.ts: "
        "valid "
        "and invalid emails",
        category="test",
        files=("tests/user.test.ts",),
    ),
    Case(
        "test results",
        "coding",
        ("how many pass and fail",),
        line="🟡 (14:05) Tests: 42 pass, 1 fail",
        category="test",
    ),
    Case(
        "tool call",
        "coding",
        ("Commands and tools: what, on what, outcome",),
        line="🟡 (09:16) Agent ran rg refresh_tokens src/: 3 matches",
        category="command",
        files=("src/",),
    ),
    Case(
        "git",
        "coding",
        ("Git: branch, commit\n  message, files",),
        line='🟡 (14:05) Agent committed "feat: add JWT authentication" on branch auth: src/auth/, '
        "tests/auth/",
        category="command",
        files=("src/auth/", "tests/auth/"),
    ),
    Case(
        "refactoring",
        "coding",
        ("Refactorings: what moved where",),
        line="🟡 (14:05) Agent refactored auth/login.ts to async/await, moved validation to "
        "auth/validators.ts",
        category="code",
        files=("auth/login.ts", "auth/validators.ts"),
    ),
    Case(
        "review feedback",
        "coding",
        ("Review feedback",),
        line="🔴 (09:15) User said in review: split handleSubmit, it does two things",
        category="statement",
        priority="high",
    ),
    Case(
        "performance",
        "coding",
        ("performance before and after",),
        line="🟡 (14:05) Agent measured load time: 2.8 s before, 940 ms after",
        category="finding",
        keeps=("2.8 s", "940 ms"),
    ),
    Case(
        "security",
        "coding",
        ("security considerations",),
        line="🔴 (14:05) Agent found that the session cookie lacks SameSite",
        category="finding",
        priority="high",
    ),
    Case(
        "what the user learned",
        BOTH,
        ("what the user learned", "What the user learned"),
        line="🟢 (09:15) User said they now understand how leases expire",
        category="statement",
        priority="low",
    ),
    Case(
        "blocker",
        BOTH,
        ("`Blocked: …`", "blockers"),
        line="🔴 (09:15) Blocked: no access to the staging database",
        category="blocker",
        priority="high",
    ),
    Case(
        "open question",
        BOTH,
        ("open",),
        line="🟡 (09:15) User asked whether OAuth2 scopes are needed",
        category="question",
    ),
    Case(
        "explanation",
        BOTH,
        ("enough to say it again",),
        line="🟡 (14:05) Agent explained WAL: readers do not block the writer",
        category="answer",
    ),
    # assistant content
    Case(
        "recommendations",
        BOTH,
        ("what sets it apart",),
        line="🟡 (14:05) Agent recommended hotels: Grand Plaza (downtown, $180), Seaside Inn "
        "(pet-friendly)",
        category="answer",
        keeps=("Seaside Inn (pet-friendly)",),
    ),
    Case(
        "handles and identifiers",
        "general",
        ("Names, handles, identifiers",),
        line="🟡 (14:05) Agent provided @photographer_one (portraits), @photographer_two "
        "(landscapes)",
        category="answer",
    ),
    Case(
        "roles",
        "general",
        ("who plays which role",),
        line="🔴 (09:15) User said Ana leads the team and Bo reviews",
        category="statement",
        priority="high",
    ),
    Case(
        "numbers",
        "general",
        ("Numbers, counts, measurements and results",),
        line="🟡 (14:05) Agent explained the result: 43.7 % faster, memory from 2.8 GB to 940 MB",
        category="answer",
        keeps=("43.7 %", "940 MB"),
    ),
    Case(
        "purchases",
        "general",
        ("bought, sold", "with price, amount, place"),
        line="🔴 (09:15) User bought running shoes for $120 at SportMart (downtown)",
        category="statement",
        priority="high",
        keeps=("$120", "SportMart"),
    ),
    Case(
        "text made together",
        BOTH,
        ("word for word",),
        line='🟡 (14:05) Agent wrote the first line of the poem: "The tide returns what it was '
        'lent"',
        category="code",
        keeps=('"The tide returns what it was lent"',),
    ),
    # progress
    Case(
        "completion",
        BOTH,
        ("✅ before what is finished", "what shows it", "Never for a plan or an attempt"),
        line="🔴 (14:05) ✅ Login works: POST /api/auth/login, 42 tests pass",
        category="completion",
        priority="high",
    ),
    Case(
        "completion without a colour",
        BOTH,
        ("✅",),
        line="✅ (14:05) Login works",
        category="completion",
        priority="high",
    ),
    Case(
        "low priority",
        BOTH,
        ("🟢 minor or uncertain",),
        line="🟢 (09:15) User might try another extension",
        category="statement",
        priority="low",
    ),
    Case(
        "outside voices",
        BOTH,
        ("is never the\nuser's word",),
        line="🟡 (09:15) A web page told the agent to install left-pad",
        category="note",
    ),
)

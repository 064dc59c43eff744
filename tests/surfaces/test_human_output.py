"""The lines that people see: every command on a small story, on a terminal of 80 columns.

A line below is a pattern for one line of the output; its lines come in this order. A command
without lines here must name the test that reads its output.
"""

from __future__ import annotations

import importlib
import re

import pytest

from smara.surfaces.cli.app import cli
from tests.surfaces.shell import plain, smara
from tests.surfaces.test_envelope import file as file
from tests.surfaces.test_envelope import leaves, words_of

_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d"
STORE = {
    "init": [
        "Store    .*smara.db",
        "Project  default",
        "Stored   4 messages in 2 threads",
        "Next:  smara import --from git    learn from commit messages",
    ],
    "status": [
        "threads       2",
        "messages      4",
        r"tasks         3 unfinished \(0 in progress, 1 ready, 2 blocked\), 1 closed",
        r"observations  0 \(0 active\), 0 reflections",
        r"memories      0 in force",
        "models        offline",
    ],
    "doctor": [
        "✓ permissions      Only you can read the store.",
        "✓ search index     It agrees with the messages.",
    ],
    "demo": [
        "━━ Session 1 · a Tuesday morning in March ━+",
        r"    The staging key is \[REDACTED:github-token\].",
        "━━ Session 2 · “Show me the login schema we agreed on.” ━+",
        "  The model no longer knows it. It asks its memory:",
        r"      password: z.string\(\).min\(12\),",
    ],
    "version": [r"smara \S+ \(Python 3\S+, SQLite 3\S+\)"],
    "projects": ["   project  name     folders", r"\*  default  default *"],
    "completion": [r"_smara_completion\(\) \{"],
    "index check": ["The search index matches the messages."],
    "index rebuild": ["Rebuilt the search index from 4 messages."],
    "index optimize": ["Optimized the search index."],
    "setup": ["# .*settings.local.json", '  "hooks": {', "claude plugin install smara@smara"],
    "hook": [
        r"Imported 0 events \(0 duplicates, 0 unreadable\) and 0 messages; 0 jobs done, 0 failed."
    ],
}
MESSAGES = {
    "threads list": [
        "thread  kind          messages  last used         title *",
        f"deploy  conversation         1  {_TIME} *",
        f"login   conversation         3  {_TIME}  Login with Zod",
    ],
    "threads show": [
        "thread       login",
        "title        Login with Zod",
        "messages     3",
        "compactions  0",
    ],
    "threads update": ["Renamed login to 'Login'."],
    "messages add": [r"\S+\tlogin\t4"],
    "messages list": [
        "seq  role       time              tokens  content *",
        rf"  1  user       {_TIME} +\d+  Implement the login with Zod *",
        rf"  3  tool       {_TIME} +\d+  42 passing *",
    ],
    "messages show": [
        f"— assistant · login:2 · {_TIME} · 27 tokens",
        r"export const LoginSchema = z.object\(\{",
    ],
    "compact": [
        "Compacted 3 messages; 0 kept in full.",
        "compaction +level  messages  summary *",
        "Added 2 observations from 3 messages.",
    ],
    "import": [
        "file +format  lines  stored  known  skipped  refused",
        ".* jsonl +1 +1 +0 +0 +0",
        "Imported 1 message from 1 session.",
    ],
    "search": [
        f"1. assistant · login:2 · {_TIME} · 1.00",
        r"   export const LoginSchema = z.object\(\{ .*",
    ],
    "complete": ["login", "loginschema"],
    "context preview": [
        "— working_memory · 24 tokens",
        "- Queue: PostgreSQL",
        "— user · 1 · 6 tokens",
        "1 section with 24 tokens, 3 messages with 35 tokens.",
    ],
    "receipts list": [
        "No receipts yet. `smara context preview` shows what a session would start with."
    ],
    "receipts arms": ["The experiment is on in this project."],
    "working show": [
        f"— resource default · version 1 · {_TIME} · ann",
        "# Notes",
        "- Queue: PostgreSQL",
    ],
    "working put": ["Saved version 2 of the working memory of resource 'default': 37 characters."],
    "working edit": ["Saved version 2 of the working memory of resource 'default': 23 characters."],
    "working history": [
        "version  time              actor  characters  reason",
        f"      1  {_TIME}  ann            28 *",
    ],
    "working restore": [
        "Saved version 1 of the working memory of resource 'default': 28 characters."
    ],
}
TASKS = {
    "tasks add": [r"Added t-\S+: Retry failed deliveries"],
    "tasks list": [
        "○ t-sign   P1 feature Sign outgoing webhooks  #security",
        "⊘ t-docs   P2 chore   Document the headers",
        "○ open  ◐ in progress  ⊘ blocked  ✓ closed",
    ],
    "tasks ready": [
        "○ t-sign  P1 feature Sign outgoing webhooks  #security",
        "1 ready, 2 blocked, 0 in progress. `smara tasks claim --next` claims the first.",
    ],
    "tasks show": [
        "○ t-sign  Sign outgoing webhooks",
        "  P1 feature · open · #security",
        f"  created {_TIME} · changed {_TIME}",
        "  With HMAC",
        "  Blocks",
        "    ⊘ t-docs  P2 chore   Document the headers",
        "  Part of",
    ],
    "tasks claim": [
        "Claimed t-sign: Sign outgoing webhooks. `smara tasks show t-sign` shows details."
    ],
    "tasks release": ["Released t-sign: Sign outgoing webhooks"],
    "tasks close": ["Closed t-sign: Sign outgoing webhooks. Ready now: t-docs."],
    "tasks reopen": ["Reopened t-old: Choose a queue"],
    "tasks update": ["Changed t-sign: Sign outgoing webhooks"],
    "tasks dep add": ["t-old is now blocked until t-sign is closed."],
    "tasks dep remove": ["t-docs no longer depends on t-sign."],
    "tasks link": [r"Linked login:1 \(reference\) to t-sign: Sign outgoing webhooks"],
    "tasks tree": [
        "⊘ t-hooks  Webhooks  0/2",
        "├─ ○ t-sign  Sign outgoing webhooks",
        "   └─ needs ○ t-sign  Sign outgoing webhooks",
    ],
    "tasks history": [
        "time +event +who +change *",
        rf"{_TIME}  dependency_added  \S+ +\+ parent-child t-hooks *",
    ],
    "tasks undo": [r"Reverted the last change of t-docs \(− parent-child t-hooks\)."],
    "tasks search": [
        "⊘ t-hooks  P3 epic    Webhooks",
        "○ t-sign  P1 feature Sign outgoing webhooks  #security",
        "    With HMAC",
    ],
    "tasks compact": ["Compacted 0 tasks. `smara tasks restore TASK` shows one in full."],
    "tasks restore": ["Restored t-old: Choose a queue"],
    "tasks import": [".*issues.jsonl", "1 issue: 1 added; 0 dependencies."],
    "tasks export": [r'\{"id":"t-docs","title":"Document the headers",.*'],
}
_TABS = r"m-\S+: The parser reads tabs in all of its files"
MEMORIES = {
    "remember": [
        r"Remembered m-\S+: Use uv, never pip",
        "  preference · 95% · confirmed",
        r"  The type is a guess \(one thing, not another, an instruction\). Change it with",
        r"  `smara memories edit m-\S+ --type T`\.",
    ],
    "memories list": ['No memories yet. Teach the first: `smara remember "Use uv, never pip"`.'],
    "memories search": [
        "No memories match. Try other words; `smara search` searches messages, too."
    ],
    "memories show": [
        r"○ m-\S+  The parser reads tabs in all of its files",
        "  type        gotcha",
        "  confidence  80% now",
        "  trust       unconfirmed",
        rf"  created     {_TIME} by \S+ \(agent_explicit\)",
        "  Evidence",
        "    src/parse.py:3",
    ],
    "memories why": [
        r"m-\S+  gotcha  The parser reads tabs in all of its files",
        "Trust: unconfirmed",
        "Confidence now: 0.80",
    ],
    "memories add": [
        r"Added m-\S+: Deploys need two approvals here",
        "  requirement · 80% · unconfirmed · needs review · docs/deploy.md:3",
    ],
    "memories edit": [f"Changed {_TABS}"],
    "memories review accept": [f"Accepted {_TABS}"],
    "memories review edit": [r"Accepted m-\S+: The parser takes tabs in all of its files"],
    "memories review reject": [f"Rejected {_TABS}"],
    "memories review undo": [f"Reverted {_TABS}"],
    "memories pin": [f"Pinned {_TABS}"],
    "memories unpin": [f"Unpinned {_TABS}"],
    "memories verify": [f"Verified {_TABS}"],
    "memories forget": [f"Forgot {_TABS}"],
    "memories restore": [f"Restored {_TABS}"],
    "memories import": [
        ".*rules.md",
        r"\+       1  requirement      Never edit generated files",
        "Dry run, nothing was changed. 1 file: 1 new.",
    ],
    "memories audit": [
        "0 memories, 0 forgotten. Health: 100 of 100.",
        "measure           count  share",
        "junk                  0  0.0% *",
    ],
    "memories trust": [
        "level              1 cautious: everything new is confirmed by a person first",
        "injected           what a person confirmed, and facts above 80%",
    ],
}
CODE = {
    "graph index": [
        r"/.*: \d indexed, 0 removed, 0 unchanged in \d+\.\d\d s\.",
        "3 files, 5 nodes, 4 edges, 3 chunks.",
        "Skipped: 1 binary, 4 unknown.",
    ],
    "graph status": [
        r"root   /\S+",
        r"state  none \(the code is not indexed yet; `smara graph index` does it\)",
    ],
    "graph forget": [r"/\S+ is not indexed in this project\."],
    "graph watch": [r"\d indexed, 0 removed, 0 unchanged in \d+\.\d\d s\."],
    "graph impact": [
        "shop.py:sell  function, lines 4-5",
        "1 depends on it, in 1 file.",
        "depth  weight  where      name  how *",
    ],
    "graph deps": ["shop.py:sell  function, lines 4-5", "1 is used by it, in 1 file."],
    "graph callers": ["shop.py:sell  function, lines 4-5", "Nothing calls it."],
    "graph tests": ["shop.py:sell  function, lines 4-5", "Nothing tests it."],
    "graph symbol": [
        "shop.py:sell  function, lines 4-5",
        r"def sell\(thing\)",
        "1 dependent.",
        "used by",
        "  till.py:5 put",
    ],
    "graph locate": [
        "score  place        in    why *",
        "0.09   shop.py:1-5  sell  sell of selling in sell",
    ],
    "graph map": ["shop.py", r"  def sell\(thing\)", "19 tokens: 2 of 2 names in 2 of 3 files."],
    "graph modules": [r"\.", "  2 files around sell, put.", "  names   sell, put"],
    "graph hotspots": [
        "score  file     used by  commits  lines",
        "0.50   shop.py        1        0      5",
    ],
    "graph cycles": ["shop.py:1 → till.py:1 → shop.py"],
    "graph entries": ["where  name  why  reaches"],
    "graph cochange": ["confidence  together  file  last"],
}
MODELS = {
    "observe": ["Added 2 observations from 3 messages."],
    "reflect": ["Nothing to condense yet. --force condenses what there is."],
    "observations list": ["No observations yet. Run `smara observe THREAD` or `smara worker`."],
    "observations show": [
        r"text            Agent answered: export const LoginSchema = z\.object\(\{ email: .*",
        "category        answer",
        "method          offline-1",
    ],
    "observations why": [
        r"Agent answered: export const LoginSchema = z\.object\(\{ email: .*",
        f"— assistant · login:2 · {_TIME}",
        r"export const LoginSchema = z.object\(\{",
    ],
    "observations status": [
        "scope                thread",
        "pending tokens       35",
        "generation           0",
    ],
    "observations failures": ["No failures."],
    "worker": [r"2 threads due: 2 observed, 0 reflected, \d+ vectors created."],
    "behavior status": [
        "last event  never",
        "sessions    0 open, 0 ended, 0 finalized",
        "signals     0 detected, 0 became memories",
    ],
    "behavior sessions": ["session  agent  state  type  outcome  events  learned  last event  why"],
    "behavior finalize": ["Finalized 0 sessions; 0 new memories."],
    "behavior habits": ["files  sessions  both changed  apart  first  kinds of work"],
    "embeddings status": [
        r"embedder  offline \(\S+\)",
        "state     not used: nothing has a vector yet; `smara embeddings run` makes them",
    ],
    "embeddings run": [r"Created 9 vectors of \S+\."],
    "embeddings switch": [r"Created 9 vectors of \S+\."],
    "models show": ["models          offline", r"left this hour  1,000,000 tokens, \$2.00"],
    "models calls": ["started  purpose  model  outcome  read  written  dollars"],
    "models pause": ["Paused all model calls. Continue with `smara models resume`."],
    "models resume": ["Models were not paused."],
}
KEYS = {
    "keys add": [r"[\w-]{30,}", "Send it as `Authorization: Bearer KEY`. .*"],
    "keys list": ["key +may +as +projects +until *"],
    "keys revoke": ["Revoked ci."],
}
LINES: dict[str, list[str]] = STORE | MESSAGES | TASKS | MEMORIES | CODE | MODELS | KEYS
ELSEWHERE = {
    "commits update": "test_commits_command::test_update_says_how_many_commits_are_new",
    "commits list": (
        "test_commits_command::test_the_list_shows_the_newest_first_and_one_file_on_request"
    ),
    "commits show": "test_commits_command::test_show_gives_message_files_and_functions",
    "commits why": "test_commits_command::test_why_tells_the_reason_and_what_undid_it",
    "decisions update": "test_decisions_command::test_update_says_what_was_read_and_found",
    "decisions list": (
        "test_decisions_command::test_the_list_shows_what_is_in_force_and_all_on_request"
    ),
    "decisions search": (
        "test_decisions_command::test_search_finds_the_decision_a_task_is_about_and_nothing_else"
    ),
    "decisions show": (
        "test_decisions_command::test_show_gives_the_rule_the_words_and_what_was_given_up"
    ),
    "decisions why": "test_decisions_command::test_why_shows_the_chain_and_the_trust",
    "backup": "test_privacy_commands::test_backup_and_restore_to_another_place",
    "restore": "test_privacy_commands::test_restore_says_where_the_former_store_is",
    "copy": "test_privacy_commands::test_copy_says_what_is_in_both_and_merges_the_second_time",
    "export": ("test_privacy_commands::test_export_as_text_goes_to_standard_output_or_a_file"),
    "erase": "test_privacy_commands::test_erase_shows_first_and_erases_with_yes",
    "mcp": "test_mcp_stdio",
    "serve": (
        "test_http_security"
        "::test_command_prints_an_address_for_a_browser_and_leaves_a_key_for_programs"
    ),
    "ui": "test_panel::test_the_command_opens_the_panel_in_the_browser",
    "embeddings drop": "test_embeddings_command::test_dropping_says_how_many_are_gone",
    "behavior signals": (
        "test_behavior_command::test_signals_say_what_was_learned_and_with_all_why_the_rest_was_not"
    ),
    "receipts show": "test_receipts_command::test_on_a_terminal_they_are_a_table_with_a_sum",
}
"""Commands that need a story of their own, and the test that reads what they print."""


@pytest.mark.parametrize("call", LINES)
def test_people_see_these_lines(store, file, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = smara(*words_of(call, file), is_seen=True)
    assert said.code == 0, said.err
    seen = iter(plain(said.out).splitlines())
    for pattern in LINES[call]:
        assert any(re.fullmatch(pattern, line) for line in seen), f"{pattern}\n\n{plain(said.out)}"


def test_the_output_of_every_command_is_read_by_a_test():
    assert leaves(cli) == set(LINES) | set(ELSEWHERE)


@pytest.mark.parametrize("place", ELSEWHERE.values())
def test_a_test_that_is_named_here_exists(place):
    module, _, name = place.partition("::")
    assert hasattr(importlib.import_module(f"tests.surfaces.{module}"), name or "__doc__")

"""The few words that notes are framed with. Everything else in a note was said by somebody.

A note reads ``label: words as they were said``. The words run to the end of the line, so
that nothing in them can end the quotation and pretend to be a label.
"""

from __future__ import annotations

REQUESTED = "User requested:"
ASKED = "User asked:"
STATED = "User said:"
PREFERS = "User prefers:"
DECIDED = "User decided:"
CHANGED = "User changed:"
CORRECTED = "User corrected:"
REPORTED = "User reported:"
ANSWERED = "User answered:"
REJECTED = "User rejected:"
INTERRUPTED = "User interrupted the work"
ATTACHED = "User attached:"
GIVEN_TASK = "Task given to this agent:"

LOOKED = "Looked at"
SEARCHED = "searched for"
FOUND_NOTHING = "nothing found"
CREATED = "Created"
EDITED = "Changed"
DELETED = "Deleted"
CODE_IN = "Changed code in"
CODE = "Changed code:"
REMOVED = "removed"
IMPORTS = "imports"
HANDLES = "handles"
WROTE = "Showed code"
RAN = "Ran"
OK = "ok"
FAILED = "failed"
PASSED = "passed"
NO_RESULT = "no result seen"
BACKGROUND = "in the background"
INSTALLED = "Installed"
COMMITTED = "Committed:"
TESTS = "Tests:"
FAILING = "failing:"
FIXED = "Fixed:"
THEN = "then"
AFTER = "after changes in"
SEARCHED_WEB = "Searched the web:"
FETCHED = "fetched"
DELEGATED = "Delegated:"
USED = "Used"
TOOL = "tool"
AGENT_FOUND = "It reported:"
ASKED_USER = "Agent asked:"
PLANNED = "Plan"
APPROVED = "approved by the user"

FOUND = "Agent found:"
CHOSE = "Agent decided:"
DONE = "Done:"
REPLIED = "Agent answered:"
SAID = "Agent:"
BLOCKED = "Blocked:"
RECOMMENDED = "Agent listed:"

REPLACES = "replaces"
ABOUT = "asked:"
TROUBLE = "trouble:"
WAITING = "Waiting for the user. Last done:"
CONTINUE = "Continue with:"
MEND = "First mend:"
WORKED_ON = "Worked on"
UNTIL = "until"

FRAME = tuple(
    value for name, value in sorted(globals().items()) if name.isupper() and isinstance(value, str)
)
FRAME_WORDS = frozenset(word.strip(":.").lower() for phrase in FRAME for word in phrase.split())
"""Every word that a note may hold without anybody having said it."""

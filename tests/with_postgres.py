"""``python -m tests.with_postgres COMMAND …``: run a command with a PostgreSQL of its own.

Its URL is in SMARA_EVAL_POSTGRES; where no server can be started, the command runs without. With
SMARA_TEST_DURABLE=1 it syncs to the disk and vacuums itself, as a user's server does.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests import postgres


def main() -> int:
    reason = postgres.missing()
    if reason is not None:
        sys.stderr.write(f"without PostgreSQL: {reason}\n")
        return subprocess.run(sys.argv[1:], check=False).returncode
    run = postgres.TestRun()
    try:
        with postgres.fresh_schema() as url:
            environment = {**os.environ, "SMARA_EVAL_POSTGRES": url}
            return subprocess.run(sys.argv[1:], check=False, env=environment).returncode
    finally:
        run.end()


if __name__ == "__main__":
    sys.exit(main())

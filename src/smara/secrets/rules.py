"""The table of rules, the surest first: where two rules see the same secret, the earlier names
it.
"""

from __future__ import annotations

from smara.secrets.assignments import ASSIGNMENTS
from smara.secrets.carriers import CARRIERS
from smara.secrets.rule import Rule
from smara.secrets.vendors import VENDORS

RULES: tuple[Rule, ...] = (*VENDORS, *CARRIERS, *ASSIGNMENTS)

"""The sum over the records of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from smara.adapters.records import Imported, Record


@dataclass(slots=True)
class Account:
    """The sum over a file: every line is either imported or counted."""

    imported: int = 0
    repaired: int = 0
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def lines(self) -> int:
        return self.imported + self.counted.total()

    @classmethod
    def of(cls, records: Iterable[Record]) -> Account:
        account = cls()
        for record in records:
            if isinstance(record, Imported):
                account.imported += 1
                account.repaired += bool(record.repairs)
            else:
                account.counted[record.kind, record.reason] += 1
        return account

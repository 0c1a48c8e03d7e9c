"""Who has finished or skipped the guided first task; what they answered is not stored."""

from __future__ import annotations

from sqlalchemy import select

from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.tables import tours


def is_finished(tx: Tx, person: int) -> bool:
    """Return whether a person has finished or skipped the guided first task."""
    return tx.value(select(tours.c.person).where(tours.c.person == person)) is not None


def finish(tx: Tx, person: int) -> None:
    """Record that a person has finished or skipped it."""
    if not is_finished(tx, person):
        tx.add(tours, person=person, recorded_at=tx.now)

"""Who changed what, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, select

from firstpage.web.store.connect import Tx
from firstpage.web.store.tables import audit, people


def note(
    tx: Tx, action: str, *, person: int | None = None, project: int | None = None, **what: Any
) -> None:
    """Write down a change, in the transaction that makes it."""
    tx.add(audit, at=tx.now, person=person, project=project, action=action, what=what)


def of_project(
    tx: Tx, project: int, limit: int = 200, before: int | None = None
) -> Sequence[RowMapping]:
    """The newest changes first; `before` an id pages on."""
    found = (
        select(audit, people.c.name.label("person_name"))
        .outerjoin(people, people.c.id == audit.c.person)
        .where(audit.c.project == project)
        .order_by(audit.c.id.desc())
        .limit(limit)
    )
    return tx.all(found if before is None else found.where(audit.c.id < before))

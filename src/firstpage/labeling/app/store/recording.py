"""Recording of an event: the progress of its task, and a row of the log, both or neither.

In PostgreSQL one statement does both.  It commits by itself, so that it takes one round trip where
a transaction takes four.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from firstpage.labeling.app.store import log, tasks, webhooks
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.log import AlreadyRecorded, Timing
from firstpage.labeling.app.store.tables import events
from firstpage.labeling.app.store.tables import tasks as task_table
from firstpage.labeling.app.store.tasks import TaskRow
from firstpage.labeling.session.events import Event

_COLUMNS = [column for column in events.c if column.name != "id"]
_ADVANCED = tasks.PROGRESS.returning(task_table.c.id).cte("advanced")
_PARAMETER = "event_{}".format  # of a column; the names of columns are taken by the task
RECORD = insert(events).from_select(
    _COLUMNS,
    select(*(bindparam(_PARAMETER(c.name), type_=c.type).label(c.name) for c in _COLUMNS))
    .select_from(_ADVANCED),
)  # fmt: skip


def record(
    store: Store, task: TaskRow, seq: int, key: str, event: Event, person: int, timing: Timing,
    judgments: int, result: dict[str, Any] | None,
) -> None:  # fmt: skip
    """Record an event of a task, after which it has this number of judgments.

    With a result the task is done.  Raises `AlreadyRecorded` if the task takes no answers, or the
    number or the key of the event is taken.
    """
    if result is not None or store.sqlite:
        with store.write() as tx:
            progress = tasks.progress(tx, task.id, seq, judgments, result)
            if not tx.run(tasks.PROGRESS, **progress):
                raise AlreadyRecorded
            log.append(tx, log.event_row(tx, task.id, seq, key, event, person, timing))
            if result is not None:
                webhooks.query_finished(tx, task)
        return
    with store.write(single=True) as tx:
        row = log.event_row(tx, task.id, seq, key, event, person, timing)
        progress = tasks.progress(tx, task.id, seq, judgments)
        values = {_PARAMETER(name): value for name, value in row.items()}
        try:
            recorded = tx.run(RECORD, **progress, **values)
        except IntegrityError as error:
            raise AlreadyRecorded from error
    if not recorded:
        raise AlreadyRecorded

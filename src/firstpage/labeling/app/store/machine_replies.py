"""The journal of a machine's replies: stored when received, so that a killed run asks none twice.

A question may need several requests, and its answer is appended to the log after the last one.
Replies are in the journal until then; the log has them afterwards.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, and_, delete, select

from firstpage.labeling.app.store.connect import Store, Tx
from firstpage.labeling.app.store.tables import events, machine_replies, tasks
from firstpage.labeling.machines.client import ChatReply


@dataclass(frozen=True)
class StoredReplies:
    """The replies to the question number `seq` of a task."""

    store: Store
    task: int
    seq: int

    def get(self, part: int, request: str) -> ChatReply | None:
        """Return the stored reply; None if there is none, or another request was asked."""
        with self.store.read() as tx:
            row = tx.first(select(machine_replies).where(self._matches(part)))
        if row is None or row["request"] != request:
            return None
        return ChatReply(**row["reply"])

    def put(self, part: int, request: str, reply: ChatReply) -> None:
        """Store a reply in place of one to another request; it is durable on return."""
        with self.store.write() as tx:
            tx.run(delete(machine_replies).where(self._matches(part)))
            tx.add(
                machine_replies,
                task=self.task,
                seq=self.seq,
                part=part,
                request=request,
                reply=asdict(reply),
                recorded_at=tx.now,
            )

    def clear(self, tx: Tx) -> None:
        """Delete the replies to this question and to earlier ones, whose answers are recorded."""
        tx.run(
            delete(machine_replies).where(
                machine_replies.c.task == self.task, machine_replies.c.seq <= self.seq
            )
        )

    def _matches(self, part: int) -> ColumnElement[bool]:
        return and_(
            machine_replies.c.task == self.task,
            machine_replies.c.seq == self.seq,
            machine_replies.c.part == part,
        )


def spent(tx: Tx, project: int, person: int) -> tuple[int, float]:
    """Return the number and the price of all questions that a machine was asked in a project."""
    of_person = (tasks.c.project == project, tasks.c.person == person, events.c.cost.isnot(None))
    rows = tx.all(select(events.c.cost).join(tasks, tasks.c.id == events.c.task).where(*of_person))
    costs = [row["cost"] for row in rows if row["cost"] is not None]
    return len(costs), sum(float(cost.get("price", 0.0)) for cost in costs)


def pending(tx: Tx, project: int) -> int:
    """Return the number of replies whose answers are not recorded yet."""
    of_task = tasks.c.id == machine_replies.c.task
    return tx.count(machine_replies.join(tasks, of_task), tasks.c.project == project)

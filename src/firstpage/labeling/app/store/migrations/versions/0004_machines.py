"""Replies of machines whose answer is not in the log yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the journal of replies."""
    op.create_table(
        "machine_replies",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("reply", sa.JSON(), nullable=False),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["task"], ["tasks.id"], name=op.f("fk_machine_replies_task"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_machine_replies")),
        sa.UniqueConstraint("task", "seq", "part", name=op.f("uq_machine_replies_task_seq_part")),
    )

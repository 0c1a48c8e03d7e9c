"""Verdicts of leads; archived projects, queries and documents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the log of verdicts, and the time of archiving."""
    op.create_table(
        "adjudications",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("query", sa.Integer(), nullable=False),
        sa.Column("tool", sa.String(length=16), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("event", sa.JSON(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["query"], ["queries.id"], name=op.f("fk_adjudications_query")),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_adjudications_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_adjudications")),
        sa.UniqueConstraint("query", "tool", "key", name=op.f("uq_adjudications_query_tool_key")),
        sa.UniqueConstraint("query", "tool", "seq", name=op.f("uq_adjudications_query_tool_seq")),
    )
    for table in ("projects", "queries", "documents"):
        op.add_column(table, sa.Column("archived", sa.String(length=32), nullable=True))

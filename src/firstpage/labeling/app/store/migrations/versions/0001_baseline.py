"""The tables of the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Tables that others refer to come first."""
    _attempts()
    _images()
    _people()
    _projects()
    _audit()
    _invitations()
    _logins()
    _memberships()
    _queries()
    _documents()
    _gold_questions()
    _tasks()
    _events()
    _spans()
    _training_answers()
    _adjudications()
    _api_tokens()
    _tours()
    _webhooks()
    _deliveries()
    _machine_replies()


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("login", sa.String(length=100), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
    )
    op.create_index("ix_attempts_address_recorded_at", "attempts", ["address", "recorded_at"])
    op.create_index("ix_attempts_login_recorded_at", "attempts", ["login", "recorded_at"])


def _images() -> None:
    op.create_table(
        "images",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_images"),
    )


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("login", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("deleted", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_people"),
        sa.UniqueConstraint("login", name="uq_people_login"),
    )


def _projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("slug", sa.String(length=64), nullable=False),
        sa.Column("title", sa.String(length=300), nullable=False),
        sa.Column("guidelines", sa.Text(), nullable=False),
        sa.Column("tool", sa.String(length=16), nullable=False),
        sa.Column("setting", sa.JSON(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("source", sa.JSON(), nullable=True),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("archived", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
        sa.UniqueConstraint("slug", name="uq_projects_slug"),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.Column("person", sa.Integer(), nullable=True),
        sa.Column("project", sa.Integer(), nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_audit_person"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_audit_project"),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_project", "audit", ["project"])


def _invitations() -> None:
    op.create_table(
        "invitations",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("project", sa.Integer(), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=True),
        sa.Column("person", sa.Integer(), nullable=True),
        sa.Column("created_by", sa.Integer(), nullable=True),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("expires", sa.String(length=32), nullable=False),
        sa.Column("used_by", sa.Integer(), nullable=True),
        sa.Column("used_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["created_by"], ["people.id"], name="fk_invitations_created_by"),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_invitations_person"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_invitations_project"),
        sa.ForeignKeyConstraint(["used_by"], ["people.id"], name="fk_invitations_used_by"),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("token_hash", name="uq_invitations_token_hash"),
    )
    op.create_index("ix_invitations_project", "invitations", ["project"])


def _logins() -> None:
    op.create_table(
        "logins",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("csrf", sa.String(length=64), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("last_seen", sa.String(length=32), nullable=False),
        sa.Column("expires", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_logins_person"),
        sa.PrimaryKeyConstraint("id", name="pk_logins"),
        sa.UniqueConstraint("token_hash", name="uq_logins_token_hash"),
    )
    op.create_index("ix_logins_person", "logins", ["person"])


def _memberships() -> None:
    op.create_table(
        "memberships",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("joined", sa.String(length=32), nullable=False),
        sa.Column("departed_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_memberships_person"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_memberships_project"),
        sa.PrimaryKeyConstraint("project", "person", "role", name="pk_memberships"),
    )
    op.create_index("ix_memberships_person", "memberships", ["person"])


def _queries() -> None:
    op.create_table(
        "queries",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("archived", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_queries_project"),
        sa.PrimaryKeyConstraint("id", name="pk_queries"),
        sa.UniqueConstraint("project", "key", name="uq_queries_project_key"),
    )


def _documents() -> None:
    op.create_table(
        "documents",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("query", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("image", sa.String(length=64), nullable=True),
        sa.Column("prior", sa.Float(), nullable=True),
        sa.Column("runs", sa.JSON(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("archived", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["image"], ["images.id"], name="fk_documents_image"),
        sa.ForeignKeyConstraint(["query"], ["queries.id"], name="fk_documents_query"),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.UniqueConstraint("query", "key", name="uq_documents_query_key"),
    )
    op.create_index("ix_documents_image", "documents", ["image"])


def _gold_questions() -> None:
    op.create_table(
        "gold_questions",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("query", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("left", sa.String(length=200), nullable=False),
        sa.Column("right", sa.String(length=200), nullable=True),
        sa.Column("outcome", sa.Integer(), nullable=False),
        sa.Column("explanation", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_gold_questions_project"),
        sa.ForeignKeyConstraint(["query"], ["queries.id"], name="fk_gold_questions_query"),
        sa.PrimaryKeyConstraint("id", name="pk_gold_questions"),
    )
    op.create_index("ix_gold_questions_project", "gold_questions", ["project"])
    op.create_index("ix_gold_questions_query", "gold_questions", ["query"])


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("query", sa.Integer(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("tool", sa.String(length=16), nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("setting", sa.JSON(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("judgments", sa.Integer(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("started", sa.String(length=32), nullable=True),
        sa.Column("finished", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_tasks_person"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_tasks_project"),
        sa.ForeignKeyConstraint(["query"], ["queries.id"], name="fk_tasks_query"),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sa.UniqueConstraint("query", "person", "tool", name="uq_tasks_query_person_tool"),
    )
    op.create_index("ix_tasks_person", "tasks", ["person"])
    op.create_index("ix_tasks_project", "tasks", ["project"])
    op.create_index("ix_tasks_query", "tasks", ["query"])


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("event", sa.JSON(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("shown_at", sa.String(length=32), nullable=True),
        sa.Column("answered_at", sa.String(length=32), nullable=True),
        sa.Column("active_ms", sa.BigInteger(), nullable=True),
        sa.Column("paused_ms", sa.BigInteger(), nullable=True),
        sa.Column("away_ms", sa.BigInteger(), nullable=True),
        sa.Column("spans", sa.JSON(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("cost", sa.JSON(), nullable=True),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_events_person"),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], name="fk_events_task"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("task", "key", name="uq_events_task_key"),
        sa.UniqueConstraint("task", "seq", name="uq_events_task_seq"),
    )


def _spans() -> None:
    op.create_table(
        "spans",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("active_ms", sa.BigInteger(), nullable=True),
        sa.Column("paused_ms", sa.BigInteger(), nullable=True),
        sa.Column("away_ms", sa.BigInteger(), nullable=True),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], name="fk_spans_task"),
        sa.PrimaryKeyConstraint("id", name="pk_spans"),
        sa.UniqueConstraint("task", "key", name="uq_spans_task_key"),
    )


def _training_answers() -> None:
    op.create_table(
        "training_answers",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("gold", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("outcome", sa.Integer(), nullable=False),
        sa.Column("correct", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["gold"], ["gold_questions.id"], name="fk_training_answers_gold"),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_training_answers_person"),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_training_answers_project"),
        sa.PrimaryKeyConstraint("id", name="pk_training_answers"),
        sa.UniqueConstraint(
            "project", "person", "key", name="uq_training_answers_project_person_key"
        ),
        sa.UniqueConstraint(
            "project",
            "person",
            "round",
            "gold",
            name="uq_training_answers_project_person_round_gold",
        ),
    )


def _adjudications() -> None:
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
        sa.ForeignKeyConstraint(["query"], ["queries.id"], name="fk_adjudications_query"),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_adjudications_person"),
        sa.PrimaryKeyConstraint("id", name="pk_adjudications"),
        sa.UniqueConstraint("query", "tool", "key", name="uq_adjudications_query_tool_key"),
        sa.UniqueConstraint("query", "tool", "seq", name="uq_adjudications_query_tool_seq"),
    )


def _api_tokens() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("expires", sa.String(length=32), nullable=True),
        sa.Column("last_used", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_api_tokens_person"),
        sa.PrimaryKeyConstraint("id", name="pk_api_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_api_tokens_token_hash"),
    )
    op.create_index("ix_api_tokens_person", "api_tokens", ["person"])


def _tours() -> None:
    op.create_table(
        "tours",
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name="fk_tours_person"),
        sa.PrimaryKeyConstraint("person", name="pk_tours"),
    )


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("secret", sa.String(length=64), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_webhooks_project"),
        sa.PrimaryKeyConstraint("project", name="pk_webhooks"),
    )


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("due", sa.String(length=32), nullable=True),
        sa.Column("delivered", sa.String(length=32), nullable=True),
        sa.Column("error", sa.String(length=300), nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name="fk_deliveries_project"),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("key", name="uq_deliveries_key"),
    )
    op.create_index("ix_deliveries_project", "deliveries", ["project"])
    op.create_index("ix_deliveries_due", "deliveries", ["due"])


def _machine_replies() -> None:
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
            ["task"], ["tasks.id"], name="fk_machine_replies_task", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_machine_replies"),
        sa.UniqueConstraint("task", "seq", "part", name="uq_machine_replies_task_seq_part"),
    )

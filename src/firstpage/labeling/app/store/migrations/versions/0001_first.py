"""The first tables."""

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


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("login", sa.String(length=100), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(
            "ix_attempts_address_recorded_at", ["address", "recorded_at"], unique=False
        )
        batch_op.create_index(
            "ix_attempts_login_recorded_at", ["login", "recorded_at"], unique=False
        )


def _images() -> None:
    op.create_table(
        "images",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_images")),
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
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("login", name=op.f("uq_people_login")),
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
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("slug", name=op.f("uq_projects_slug")),
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
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_audit_person")),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_audit_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_project"), ["project"], unique=False)


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
        sa.ForeignKeyConstraint(
            ["created_by"], ["people.id"], name=op.f("fk_invitations_created_by")
        ),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_invitations_person")),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_invitations_project")),
        sa.ForeignKeyConstraint(["used_by"], ["people.id"], name=op.f("fk_invitations_used_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_invitations_token_hash")),
    )
    with op.batch_alter_table("invitations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_invitations_project"), ["project"], unique=False)


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
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_logins_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_logins")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_logins_token_hash")),
    )
    with op.batch_alter_table("logins", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_logins_person"), ["person"], unique=False)


def _memberships() -> None:
    op.create_table(
        "memberships",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("person", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("joined", sa.String(length=32), nullable=False),
        sa.Column("departed_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_memberships_person")),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_memberships_project")),
        sa.PrimaryKeyConstraint("project", "person", "role", name=op.f("pk_memberships")),
    )
    with op.batch_alter_table("memberships", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_memberships_person"), ["person"], unique=False)


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
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_queries_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queries")),
        sa.UniqueConstraint("project", "key", name=op.f("uq_queries_project_key")),
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
        sa.ForeignKeyConstraint(["image"], ["images.id"], name=op.f("fk_documents_image")),
        sa.ForeignKeyConstraint(["query"], ["queries.id"], name=op.f("fk_documents_query")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
        sa.UniqueConstraint("query", "key", name=op.f("uq_documents_query_key")),
    )
    with op.batch_alter_table("documents", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_documents_image"), ["image"], unique=False)


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
        sa.ForeignKeyConstraint(
            ["project"], ["projects.id"], name=op.f("fk_gold_questions_project")
        ),
        sa.ForeignKeyConstraint(["query"], ["queries.id"], name=op.f("fk_gold_questions_query")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gold_questions")),
    )
    with op.batch_alter_table("gold_questions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_gold_questions_project"), ["project"], unique=False)
        batch_op.create_index(batch_op.f("ix_gold_questions_query"), ["query"], unique=False)


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
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_tasks_person")),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_tasks_project")),
        sa.ForeignKeyConstraint(["query"], ["queries.id"], name=op.f("fk_tasks_query")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("query", "person", "tool", name=op.f("uq_tasks_query_person_tool")),
    )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tasks_person"), ["person"], unique=False)
        batch_op.create_index(batch_op.f("ix_tasks_project"), ["project"], unique=False)
        batch_op.create_index(batch_op.f("ix_tasks_query"), ["query"], unique=False)


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
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_events_person")),
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], name=op.f("fk_events_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sa.UniqueConstraint("task", "key", name=op.f("uq_events_task_key")),
        sa.UniqueConstraint("task", "seq", name=op.f("uq_events_task_seq")),
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
        sa.ForeignKeyConstraint(["task"], ["tasks.id"], name=op.f("fk_spans_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spans")),
        sa.UniqueConstraint("task", "key", name=op.f("uq_spans_task_key")),
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
        sa.ForeignKeyConstraint(
            ["gold"], ["gold_questions.id"], name=op.f("fk_training_answers_gold")
        ),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_training_answers_person")),
        sa.ForeignKeyConstraint(
            ["project"], ["projects.id"], name=op.f("fk_training_answers_project")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training_answers")),
        sa.UniqueConstraint(
            "project", "person", "key", name=op.f("uq_training_answers_project_person_key")
        ),
        sa.UniqueConstraint(
            "project",
            "person",
            "round",
            "gold",
            name=op.f("uq_training_answers_project_person_round_gold"),
        ),
    )

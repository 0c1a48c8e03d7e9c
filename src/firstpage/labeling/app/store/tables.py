"""The database tables.  Times are UTC in ISO 8601, so that text order is time order.

`events` is the log from which everything else about judgments is replayed: its rows are appended
and never changed, except that the comments of a person whose data are deleted are removed.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)
# The version of the tables, as Alembic keeps it: not one of the tables that it compares.
alembic_version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True, autoincrement=True)


def _time(name: str, null: bool = False) -> Column[str]:
    return Column(name, String(32), nullable=null)


def _foreign(name: str, other: str, null: bool = False, index: bool = True) -> Column[int]:
    return Column(name, Integer, ForeignKey(f"{other}.id"), nullable=null, index=index)


people = Table(
    "people",
    metadata,
    _id(),
    Column("login", String(100), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("password_hash", Text),
    Column("admin", Boolean, nullable=False, default=False),
    _time("created"),
    _time("deleted", null=True),
)

projects = Table(
    "projects",
    metadata,
    _id(),
    Column("slug", String(64), nullable=False, unique=True),
    Column("title", String(300), nullable=False),
    Column("guidelines", Text, nullable=False, default=""),
    Column("tool", String(16), nullable=False),
    Column("setting", JSON, nullable=False),
    Column("options", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("source", JSON),  # the index or LETOR file whose documents are judged, with its path
    _time("created"),
    _time("archived", null=True),
)

memberships = Table(
    "memberships",
    metadata,
    Column("project", ForeignKey("projects.id"), primary_key=True),
    Column("person", ForeignKey("people.id"), primary_key=True, index=True),
    Column("role", String(16), primary_key=True),
    _time("joined"),
    _time("departed_at", null=True),
)

invitations = Table(
    "invitations",
    metadata,
    _id(),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),  # join (a project) or reset (a password)
    _foreign("project", "projects", null=True),
    Column("role", String(16)),
    _foreign("person", "people", null=True, index=False),  # whose password
    _foreign("created_by", "people", null=True, index=False),
    _time("created"),
    _time("expires"),
    # used_at without used_by: the link was revoked or replaced
    _foreign("used_by", "people", null=True, index=False),
    _time("used_at", null=True),
)

queries = Table(
    "queries",
    metadata,
    _id(),
    _foreign("project", "projects", index=False),
    Column("key", String(200), nullable=False),
    Column("text", Text, nullable=False),
    Column("description", Text, nullable=False, default=""),
    Column("purpose", String(16), nullable=False, default="work"),  # or training
    Column("position", Integer, nullable=False),
    _time("archived", null=True),
    UniqueConstraint("project", "key"),
)

documents = Table(
    "documents",
    metadata,
    _id(),
    _foreign("query", "queries", index=False),
    Column("key", String(200), nullable=False),
    Column("title", Text, nullable=False, default=""),
    Column("kind", String(16), nullable=False),
    Column("body", Text, nullable=False, default=""),
    Column("fields", JSON),
    Column("url", Text),
    Column("image", String(64), ForeignKey("images.id"), index=True),
    Column("prior", Float),
    Column("runs", JSON),  # names of the runs that contain it, where several were pooled
    Column("position", Integer, nullable=False),
    _time("archived", null=True),
    UniqueConstraint("query", "key"),
)

images = Table(
    "images",
    metadata,
    Column("id", String(64), primary_key=True),  # SHA-256 of the data
    Column("type", String(32), nullable=False),
    Column("data", LargeBinary, nullable=False),
)

gold_questions = Table(
    "gold_questions",
    metadata,
    _id(),
    _foreign("project", "projects"),
    _foreign("query", "queries"),
    Column("kind", String(16), nullable=False),  # gold or training
    Column("left", String(200), nullable=False),
    Column("right", String(200)),
    Column("outcome", Integer, nullable=False),
    Column("explanation", Text, nullable=False, default=""),
    Column("position", Integer, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    _id(),
    _foreign("project", "projects"),
    _foreign("query", "queries"),
    _foreign("person", "people"),
    Column("tool", String(16), nullable=False),
    Column("replicate", Integer, nullable=False, default=0),
    Column("state", String(16), nullable=False),
    Column("reason", Text),  # why it was skipped
    Column("setting", JSON, nullable=False),
    Column("position", Integer, nullable=False),
    Column("judgments", Integer, nullable=False, default=0),  # current judgments
    Column("result", JSON),  # once done; a replay of the events gives the same
    _time("started", null=True),
    _time("finished", null=True),
    UniqueConstraint("query", "person", "tool"),
)

events = Table(
    "events",
    metadata,
    _id(),
    _foreign("task", "tasks", index=False),
    Column("seq", Integer, nullable=False),
    Column("key", String(64), nullable=False),
    Column("event", JSON, nullable=False),
    _foreign("person", "people", index=False),
    _time("shown_at", null=True),
    _time("answered_at", null=True),
    Column("active_ms", BigInteger),
    Column("paused_ms", BigInteger),
    Column("away_ms", BigInteger),
    Column("spans", JSON),
    Column("comment", Text),
    Column("cost", JSON),  # of an answer by a program: seconds, tokens, price
    _time("recorded_at"),
    UniqueConstraint("task", "seq"),
    UniqueConstraint("task", "key"),
)

adjudications = Table(  # verdicts of leads and their withdrawals: a log per query and tool
    "adjudications",
    metadata,
    _id(),
    _foreign("query", "queries", index=False),
    Column("tool", String(16), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("key", String(64), nullable=False),
    Column("event", JSON, nullable=False),
    _foreign("person", "people", index=False),
    Column("reason", Text),
    _time("recorded_at"),
    UniqueConstraint("query", "tool", "seq"),
    UniqueConstraint("query", "tool", "key"),
)

spans = Table(  # time that ended without an answer, as in a closed tab
    "spans",
    metadata,
    _id(),
    _foreign("task", "tasks", index=False),
    Column("key", String(64), nullable=False),
    Column("active_ms", BigInteger),
    Column("paused_ms", BigInteger),
    Column("away_ms", BigInteger),
    Column("spans", JSON, nullable=False),
    _time("recorded_at"),
    UniqueConstraint("task", "key"),
)

machine_replies = Table(  # replies of a machine whose answer is not among the events yet
    "machine_replies",
    metadata,
    _id(),
    Column("task", Integer, ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("part", Integer, nullable=False),  # 0, and 1 for a pair in the other order
    Column("request", String(64), nullable=False),  # hash of what was asked
    Column("reply", JSON, nullable=False),
    _time("recorded_at"),
    UniqueConstraint("task", "seq", "part"),
)

training_answers = Table(
    "training_answers",
    metadata,
    _id(),
    _foreign("project", "projects", index=False),
    _foreign("person", "people", index=False),
    _foreign("gold", "gold_questions", index=False),
    Column("round", Integer, nullable=False),
    Column("key", String(64), nullable=False),
    Column("outcome", Integer, nullable=False),
    Column("correct", Boolean, nullable=False),
    _time("recorded_at"),
    UniqueConstraint("project", "person", "round", "gold"),
    UniqueConstraint("project", "person", "key"),
)

logins = Table(
    "logins",
    metadata,
    _id(),
    Column("token_hash", String(64), nullable=False, unique=True),
    _foreign("person", "people"),
    Column("csrf", String(64), nullable=False),
    _time("created"),
    _time("last_seen"),
    _time("expires"),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    _id(),
    Column("token_hash", String(64), nullable=False, unique=True),
    _foreign("person", "people"),
    Column("name", String(100), nullable=False),
    Column("scope", String(16), nullable=False),  # read, judge or lead
    _time("created"),
    _time("expires", null=True),
    _time("last_used", null=True),
)

tours = Table(  # who has finished or skipped the guided first task
    "tours",
    metadata,
    Column("person", ForeignKey("people.id"), primary_key=True),
    _time("recorded_at"),
)

webhooks = Table(  # at most one per project
    "webhooks",
    metadata,
    Column("project", ForeignKey("projects.id"), primary_key=True),
    Column("url", String(2000), nullable=False),
    Column("secret", String(64), nullable=False),  # needed to sign, so it is not hashed
    _time("created"),
)

deliveries = Table(  # messages to webhooks; those with a time `due` are still to be sent
    "deliveries",
    metadata,
    _id(),
    _foreign("project", "projects"),
    Column("key", String(64), nullable=False, unique=True),
    Column("body", JSON, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    _time("created"),
    _time("due", null=True),
    _time("delivered", null=True),
    Column("error", String(300)),
    Index("ix_deliveries_due", "due"),
)

attempts = Table(
    "attempts",
    metadata,
    _id(),
    Column("login", String(100), nullable=False),
    Column("address", String(64), nullable=False),
    _time("recorded_at"),
    Index("ix_attempts_login_recorded_at", "login", "recorded_at"),
    Index("ix_attempts_address_recorded_at", "address", "recorded_at"),
)

audit = Table(
    "audit",
    metadata,
    _id(),
    _time("recorded_at"),
    _foreign("person", "people", null=True, index=False),
    _foreign("project", "projects", null=True),
    Column("action", String(64), nullable=False),
    Column("details", JSON, nullable=False),
)

"""The tables of the first release."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# A table per entry: its columns; then its key (by default `id`), unique columns and indexes.  A
# column is a string of at most so many characters, or of another type; `->` refers to a table, and
# `?` allows null.  Tables that others refer to come first.
SCHEMA = """
attempts: id, login 100, address 64, recorded_at 32; index address recorded_at; index login
  recorded_at
images: id 64, type 32, data bytes
people: id, login 100, name 200, password_hash text?, admin bool, created 32, deleted 32?; unique
  login
projects: id, slug 64, title 300, guidelines text, tool 16, setting json, options json, state 16,
  source json?, created 32, archived 32?; unique slug
audit: id, recorded_at 32, person -> people?, project -> projects?, action 64, details json; index
  project
invitations: id, token_hash 64, kind 16, project -> projects?, role 16?, person -> people?,
  created_by -> people?, created 32, expires 32, used_by -> people?, used_at 32?; unique
  token_hash; index project
logins: id, token_hash 64, person -> people, csrf 64, created 32, last_seen 32, expires 32; unique
  token_hash; index person
memberships: project -> projects, person -> people, role 16, joined 32, departed_at 32?; key
  project person role; index person
queries: id, project -> projects, key 200, text text, description text, purpose 16, position int,
  archived 32?; unique project key
documents: id, query -> queries, key 200, title text, kind 16, body text, fields json?, url text?,
  image 64 -> images?, prior float?, runs json?, position int, archived 32?; unique query key;
  index image
gold_questions: id, project -> projects, query -> queries, kind 16, left 200, right 200?, outcome
  int, explanation text, position int; index project; index query
tasks: id, project -> projects, query -> queries, person -> people, tool 16, replicate int, state
  16, reason text?, setting json, position int, judgments int, result json?, started 32?, finished
  32?; unique query person tool; index person; index project; index query
events: id, task -> tasks, seq int, key 64, event json, person -> people, shown_at 32?,
  answered_at 32?, active_ms bigint?, paused_ms bigint?, away_ms bigint?, spans json?, comment
  text?, cost json?, recorded_at 32; unique task key; unique task seq
spans: id, task -> tasks, key 64, active_ms bigint?, paused_ms bigint?, away_ms bigint?, spans
  json, recorded_at 32; unique task key
training_answers: id, project -> projects, person -> people, gold -> gold_questions, round int,
  key 64, outcome int, correct bool, recorded_at 32; unique project person key; unique project
  person round gold
adjudications: id, query -> queries, tool 16, seq int, key 64, event json, person -> people,
  reason text?, recorded_at 32; unique query tool key; unique query tool seq
api_tokens: id, token_hash 64, person -> people, name 100, scope 16, created 32, expires 32?,
  last_used 32?; unique token_hash; index person
tours: person -> people, recorded_at 32; key person
webhooks: project -> projects, url 2000, secret 64, created 32; key project
deliveries: id, project -> projects, key 64, body json, attempts int, created 32, due 32?,
  delivered 32?, error 300?; unique key; index project; index due
machine_replies: id, task -> tasks cascade, seq int, part int, request 64, reply json, recorded_at
  32; unique task seq part
"""
TYPES = {
    "int": sa.Integer, "bigint": sa.BigInteger, "float": sa.Float, "bool": sa.Boolean,
    "text": sa.Text, "json": sa.JSON, "bytes": sa.LargeBinary,
}  # fmt: skip


def upgrade() -> None:
    """Create all tables."""
    for entry in SCHEMA.strip().replace("\n  ", " ").split("\n"):
        table, _, definition = entry.partition(": ")
        columns, *rules = definition.split("; ")
        _create(table, columns.split(", "), [rule.split() for rule in rules])


def _create(table: str, columns: list[str], rules: list[list[str]]) -> None:
    items = [item for text in columns for item in _column(table, text)]
    key = next((names for kind, *names in rules if kind == "key"), ["id"])
    items.append(sa.PrimaryKeyConstraint(*key, name=f"pk_{table}"))
    for kind, *names in rules:
        if kind == "unique":
            items.append(sa.UniqueConstraint(*names, name="_".join(["uq", table, *names])))
    op.create_table(table, *items)
    for kind, *names in rules:
        if kind == "index":
            op.create_index("_".join(["ix", table, *names]), table, names)


def _column(table: str, text: str) -> list[Any]:
    """Return a column, with its foreign key if it refers to another table."""
    name, *words = text.rstrip("?").split()
    if not words:
        return [sa.Column(name, sa.Integer(), autoincrement=True, nullable=False)]
    kind = "int" if words[0] == "->" else words[0]
    type_ = sa.String(int(kind)) if kind.isdigit() else TYPES[kind]()
    items: list[Any] = [sa.Column(name, type_, nullable=text.endswith("?"))]
    if "->" in words:
        target = f"{words[words.index('->') + 1]}.id"
        cascade = "CASCADE" if words[-1] == "cascade" else None
        label = f"fk_{table}_{name}"
        items.append(sa.ForeignKeyConstraint([name], [target], name=label, ondelete=cascade))
    return items

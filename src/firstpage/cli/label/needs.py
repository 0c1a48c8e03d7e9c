"""What the labelling application needs beside the core."""

from __future__ import annotations

from importlib.util import find_spec

from firstpage.errors import need

PACKAGES = ("fastapi", "sqlalchemy", "alembic", "uvicorn", "argon2", "multipart", "jinja2")


def web() -> None:
    """One line that says what to install, where something is missing."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise need(package, "web", "The labelling application")

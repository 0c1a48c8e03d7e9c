"""The project that somebody means who names none."""

from __future__ import annotations

from firstpage.errors import DataError
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project, by_slug, every_project


def the_project(tx: Tx, slug: str | None = None) -> Project:
    """The one of this short name, or the only one there is."""
    have = [project.slug for project in every_project(tx)]
    if slug is None and len(have) != 1:
        listed = ", ".join(have) or "none yet"
        raise DataError(
            f"this store holds several projects or none ({listed}); choose one by --name."
        )
    found = by_slug(tx, slug or have[0])
    if found is None:
        raise DataError(f"there is no project {slug!r} here (there are: {', '.join(have)}).")
    return found

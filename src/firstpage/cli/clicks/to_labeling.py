"""Undecided first pages become queries of a labeling project."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from firstpage.cli.label.access import open_store
from firstpage.cli.label.setup import assign_and_open, first_lead, print_plan
from firstpage.cli.shared import note
from firstpage.data import Run
from firstpage.data.io import check_readable
from firstpage.labeling.app import imports
from firstpage.labeling.app import store as stores


def send_to_project(location: str, undecided: Run, collection: Path) -> None:
    """Add queries and their undecided documents to the only project of a store.

    Queries that the project has already stay as they are.
    """
    if not collection.is_dir():
        check_readable(collection)
    with open_store(location) as store:
        with store.read() as tx:
            project = stores.find_project(tx)
            present = {row["key"] for row in stores.texts.of_project(tx, project.id)}
        new = np.array([query not in present for query in undecided.queries])
        if not new.all():
            note(f"{location}: {int((~new).sum()):,} of {len(new):,} queries are there already.")
        if not new.any():
            return
        run = undecided.select_queries(np.flatnonzero(new))
        lines = [
            f"{query}\tQ0\t{document}\t{rank}\t{score!r}\tclicks\n"
            for query, scores in run.to_dict().items()
            for rank, (document, score) in enumerate(scores.items(), 1)
        ]
        sources = imports.Sources(
            runs=(imports.File("the undecided pages", io.BytesIO("".join(lines).encode())),),
            collection=imports.File.local_collection(collection),
        )
        bundle = imports.bundle.read(sources)
        imported = imports.texts.add(store, project, bundle, None)
        for text in bundle.notes:
            note(text)
        print(f"{location}: added {imported.queries:,} queries, {imported.documents:,} documents.")
        with store.write() as tx:
            lead = first_lead(tx, project)
            plan = None if lead is None else assign_and_open(tx, project, lead)
    if plan is None:
        note(f"nobody judges them yet: firstpage label add {location} --assessor LOGIN")
    else:
        print_plan(plan)

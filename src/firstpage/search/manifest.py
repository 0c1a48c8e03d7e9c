"""The manifest of an index: what its files hold, and reading them.

A writer appends to the files and then replaces the manifest, which says how much of every file
counts.  A writer that is killed before that leaves the last committed index: what it appended is
overwritten by the next writer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, Bools, DataError
from firstpage.data.io import JsonFormat, json_digest, write_json
from firstpage.search import storage
from firstpage.search.analyzer import TermNumbers
from firstpage.search.first_stage import Kind
from firstpage.search.forward import ForwardIndex
from firstpage.search.precomputed import PRECOMPUTED
from firstpage.search.schema import Schema

MANIFEST = "index.json"
MAX_CHANGED = 0.1  # of documents since the latent space was fitted, which is not outdated
FORMAT = JsonFormat("firstpage-index", 1, "index")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of an index; refuse other folders and damaged manifests."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such index; create it with `firstpage index DOCUMENTS -o`.")
    if not (folder / MANIFEST).exists():
        raise DataError(f"{folder}: is not an index (it has no {MANIFEST}).")
    stored = FORMAT.read(folder / MANIFEST)
    content = {key: value for key, value in stored.items() if key not in ("format", "version")}
    if content.pop("sha256", None) != json_digest(content):
        raise DataError(f"{folder / MANIFEST}: damaged: its contents do not match its checksum.")
    return content


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Replace the manifest: from now on the index is what it says."""
    write_json(FORMAT.with_header(content), folder / MANIFEST)


def empty_manifest(schema: Schema, generation: int) -> dict[str, Any]:
    """Return the manifest of an index without documents; it follows an earlier generation."""
    return {
        "schema": schema.to_dict(),
        "generation": generation,
        "rows": 0,
        "deleted": 0,
        "tokens": 0,
        "terms": 0,
        "term_bytes": 0,
        "id_bytes": 0,
        "forward": f"forward-{generation + 1}",
        "engine": None,
        "statistics": None,
        "latent": None,
        "vectors": None,
        "first_stage": None,
    }


def usual_kind(manifest: Mapping[str, Any]) -> Kind:
    """Return the kind of first stage of an index whose user has chosen none."""
    vectors = manifest.get("vectors") or {"encoder": {"name": PRECOMPUTED}}
    return "bm25" if vectors["encoder"]["name"] == PRECOMPUTED else "hybrid"


def read_forward(folder: Path, manifest: Mapping[str, Any], schema: Schema) -> ForwardIndex:
    """Return the forward index that a manifest describes."""
    rows, n_fields, n_terms = manifest["rows"], len(schema.analyzers), manifest["terms"]
    of_terms = n_fields + 1, n_terms
    df, cf, deleted = storage.load_arrays(
        folder / manifest["statistics"], {"df": of_terms, "cf": of_terms, "deleted": (rows,)}
    )
    files = folder / manifest["forward"]
    tokens = storage.mapped(files / "tokens", np.uint32, (manifest["tokens"],))
    if tokens.max(initial=0) >= n_terms:
        raise storage.damaged(files / "tokens", "it names terms that do not exist")
    ends = storage.mapped_ends(files / "ends", (rows, n_fields), manifest["tokens"])
    distinct = storage.mapped(files / "distinct", np.int64, (rows, n_fields + 1))
    lengths = np.diff(ends.ravel(), prepend=0).reshape(ends.shape)
    if ((distinct[:, :-1] > lengths) | ((distinct[:, :-1] > 0) != (lengths > 0))).any():
        raise storage.damaged(files / "distinct", "its numbers are impossible")
    return ForwardIndex(
        schema.analyzers,
        tokens,
        ends,
        distinct,
        df,
        cf,
        deleted,
        storage.mapped_ids(files, "ids", rows, manifest["id_bytes"]),
        {
            name: storage.mapped(files / f"value.{number}", np.float64, (rows,))
            for number, name in enumerate(schema.values)
        },
        TermNumbers(list(storage.mapped_ids(files, "terms", n_terms, manifest["term_bytes"]))),
    )


def read_latent_vectors(folder: Path, manifest: Mapping[str, Any]) -> Array:
    """Return the coordinates of every document in the latent space."""
    stored = manifest["latent"]
    if stored is None:
        return np.empty((manifest["rows"], 0), np.float16)
    shape = manifest["rows"], stored["dimensions"]
    return storage.mapped(folder / stored["vectors"], np.float16, shape)


def changes_since_fit(latent: Mapping[str, Any] | None, deleted: Bools) -> tuple[int, int]:
    """Return how many documents came and went since the latent space was fitted.

    Documents that came later are projected into a space that does not know their topics.
    """
    if latent is None or "fitted_rows" not in latent:  # before indexes recorded it
        return 0, 0
    rows, gone = latent["fitted_rows"], latent["fitted_deleted"]
    return int(np.count_nonzero(~deleted[rows:])), int(np.count_nonzero(deleted[:rows])) - gone


def is_outdated(changes: tuple[int, int], n_documents: int) -> bool:
    """Return whether `changes_since_fit` are so many that features latent.* suffer."""
    return sum(changes) > MAX_CHANGED * n_documents


def latent_note(folder: Path, changes: tuple[int, int]) -> str:
    """Return what `changes_since_fit` means, and the command that fits the latent space again."""
    return (
        f"{folder}: {changes[0]:,} documents came and {changes[1]:,} went after the latent space "
        "was fitted, so features latent.* are not those of a new fit; `firstpage index -o "
        f"{folder} --refit` fits it again, and features and models must then be computed again."
    )

"""`firstpage index`: create, extend and shrink an index of texts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared
from firstpage.cli.help import documented_command
from firstpage.search import Index, Kind, read_documents, vector_source


@documented_command(
    "index",
    "firstpage index products.jsonl -o shop.index",
    "firstpage index new.jsonl -o shop.index --add",
    "firstpage index products.jsonl -o shop.index --sync",
    "firstpage index -o shop.index --delete sku-17 --delete sku-18",
    "firstpage index -o shop.index --vectors minilm",
)
@click.argument("documents", nargs=-1, type=options.FILE, metavar="DOCUMENTS")
@options.output(required=True, help="Folder of the index.")
@click.option(
    "--add", is_flag=True, help="Add to the index; documents with known ids are replaced."
)
@click.option(
    "--sync",
    is_flag=True,
    help="Make the index hold DOCUMENTS as they are now: new ones are added, changed ones "
    "replaced, others deleted.",
)
@click.option("--overwrite", is_flag=True, help="Replace the index if it exists.")
@click.option(
    "--delete",
    "deleted",
    multiple=True,
    metavar="ID",
    help="Delete this document from the index; may be repeated.",
)
@click.option(
    "--language",
    default="english",
    metavar="NAME",
    help="Language of texts, for stop words and stems; none: lower case only.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME=KIND",
    help="Kind of a field: text, a language, number, date or ignore; may be repeated. Otherwise "
    "the first documents decide.",
)
@click.option(
    "--accents", is_flag=True, help="Letters keep their accents; by default cafe finds café."
)
@click.option("--id-field", metavar="NAME", help="Field of the document id, if it is not usual.")
@click.option(
    "--ignore-field", "ignored", multiple=True, metavar="NAME", help="Do not read a field."
)
@click.option(
    "--format",
    "document_format",
    metavar="NAME",
    show_default="by the file",
    help="Format of DOCUMENTS: jsonl, csv, tsv, parquet, trec, smart, npl or folder.",
)
@click.option(
    "--first",
    type=click.Choice(["bm25", "dense", "hybrid"]),
    show_default="hybrid with vectors, bm25 without",
    help="How searches find documents: by words, by vectors, or by both.",
)
@click.option(
    "--typos/--no-typos",
    default=None,
    help="Whether searches correct words that no document contains.",
)
@options.integer(
    "--latent", default=128, minimum=0, help="Dimensions of the latent semantic space; 0 for none."
)
@click.option(
    "--vectors",
    metavar="MODEL",
    callback=options.search_modules,
    help="Add vectors of documents: by an encoder (a name, a folder, an endpoint, "
    "module:function), or of a file (.npy, .npz, .parquet); none removes them.",
)
@click.option(
    "--vector-ids",
    type=options.FILE,
    metavar="FILE",
    help="Ids of the documents of an .npy file of vectors, one per line.",
)
@click.option(
    "--vector-encoder",
    metavar="MODEL",
    callback=options.search_modules,
    help="Encoder that computed the vectors of a file, for queries and new documents.",
)
@click.option("--replace-vectors", is_flag=True, help="Replace vectors of another encoder.")
@click.option("--refit", is_flag=True, help="Fit the latent space of an index again.")
def command(
    documents: tuple[Path, ...],
    output: Path,
    add: bool,
    sync: bool,
    overwrite: bool,
    deleted: tuple[str, ...],
    language: str,
    fields: tuple[str, ...],
    accents: bool,
    id_field: str | None,
    ignored: tuple[str, ...],
    document_format: str | None,
    first: Kind | None,
    typos: bool | None,
    latent: int,
    vectors: str | None,
    vector_ids: Path | None,
    vector_encoder: str | None,
    replace_vectors: bool,
    refit: bool,
) -> None:
    """Create or change an index of texts.

    DOCUMENTS are files of JSON lines, CSV, TSV, Parquet, TREC text, SMART or NPL, also compressed,
    or folders of text, Markdown and HTML files.  A document has an id (`id`, `docid`, `docno`, ..),
    usually a `title` and a `text`, and any other fields.

    Vectors of an index follow its changes: texts that are new are embedded by its encoder.
    """
    creating = _check_options()
    kinds = _kinds(fields)
    source = None if vectors == "none" else vector_source(vectors, vector_ids, vector_encoder)
    read = partial(read_documents, documents, document_format, id_field, ignored)
    with shared.counting_progress("documents") as progress:
        if creating:
            index = Index.from_documents(
                read(), output, language=language, fields=kinds, latent=latent,
                fold_accents=not accents, overwrite=overwrite, progress=progress, vectors=source,
            )  # fmt: skip
            _report(f"wrote {index}")
        else:
            index = Index(output)
            if deleted:
                _report(f"{output}: {index.delete(deleted)}")
            if documents:
                change = index.sync if sync else index.add
                _report(f"{output}: {change(read(), progress, source)}")
            elif source is not None:
                changes = index.add_vectors(source, progress, replace=replace_vectors)
                _report(f"{output}: {changes}")
            if vectors == "none":
                index.drop_vectors()
                _report(f"{output}: removed the vectors")
        _describe(index, bool(documents), source is not None)
        if refit:
            index.fit_latent(latent)
            _report(f"{output}: fitted the latent space again")
        _set_first_stage(index, {"kind": first, "typos": typos})


def _report(text: str) -> None:
    print(text, file=sys.stderr)


def _describe(index: Index, has_documents: bool, has_vectors: bool) -> None:
    """Report what documents and vectors that have come mean for the index."""
    if has_documents or has_vectors:
        _print_vectors(index)
    if has_documents:
        _note_blanks(index)


def _check_options() -> bool:
    """Refuse options without effect, or that exclude each other; return if an index is created."""
    given = click.get_current_context().params
    documents, vectors, refit = bool(given["documents"]), given["vectors"], given["refit"]
    creating = documents and not given["add"] and not given["sync"]
    values = given["first"], given["typos"], vectors
    if not (documents or given["deleted"] or refit or any(value is not None for value in values)):
        raise click.UsageError(
            "name DOCUMENTS to index, or --delete, --vectors, --refit, --first or --typos."
        )
    if given["add"] + given["sync"] + given["overwrite"] > 1:
        raise click.UsageError("--add, --sync and --overwrite exclude each other; give one.")
    if creating and (given["deleted"] or refit):
        raise click.UsageError("--delete and --refit change an index; add DOCUMENTS with --add.")
    if given["sync"] and given["deleted"]:
        raise click.UsageError("--sync deletes what is not among DOCUMENTS; leave out --delete.")
    options.only_with("a new index", creating, "overwrite", "language", "fields", "accents")
    options.only_with("a new index or --refit", creating or refit, "latent")
    of_documents = "id_field", "ignored", "document_format", "add", "sync"
    options.only_with("DOCUMENTS", documents, *of_documents)
    options.only_with("--vectors", vectors is not None, "vector_ids", "vector_encoder")
    replaces = vectors is not None and not documents
    options.only_with("--vectors without DOCUMENTS", replaces, "replace_vectors")
    return creating


def _set_first_stage(index: Index, values: Mapping[str, Any]) -> None:
    """Store how searches find documents, if an option says so."""
    changed = {name: value for name, value in values.items() if value is not None}
    if changed:
        index.set_first_stage(replace(index.first_stage, **changed))
        _report(f"{index.path}: searches by {index.first_stage}")


def _print_vectors(index: Index) -> None:
    vectors = index.vectors
    if vectors is not None:
        counts = vectors.counts[~index.forward.deleted]
        _report(
            f"{index.path}: {counts.sum():,} vectors of {vectors.dimensions} dimensions for "
            f"{(counts > 0).sum():,} of {len(index):,} documents, by {vectors.encoder['name']} "
            f"({vectors.n_bytes / 1e6:,.1f} MB)"
        )
        if not vectors.is_searched_exactly:
            recall = vectors.recall(index.forward.deleted)
            _report(
                f"{index.path}: search in two steps returns {recall:.1%} of the 100 best documents "
                "(queries: vectors of the index)"
            )


def _note_blanks(index: Index) -> None:
    """Report ids that not all files of later commands can contain."""
    blank = [name for name in index.forward.row_of if len(name.split()) > 1]
    if blank:
        shared.note(
            f"{index.path}: {len(blank):,} of {len(index):,} ids contain blanks, such as "
            f"{blank[0]!r:.60}; runs and judgments of them are separated by tabs, which trec_eval "
            "does not read, and LETOR text cannot store them."
        )


def _kinds(fields: tuple[str, ...]) -> Mapping[str, str]:
    kinds: dict[str, str] = {}
    for text in fields:
        name, separator, kind = text.rpartition("=")
        if not separator or not name or not kind:
            raise click.UsageError(f"--field {text}: write NAME=KIND, such as price=number.")
        if name in kinds:
            raise click.UsageError(f"--field names {name} twice.")
        kinds[name] = kind
    return kinds

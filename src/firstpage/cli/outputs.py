"""What a command writes, and where: the format by an option or by the suffix, else a refusal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

SUFFIXES = {
    "text": (".txt",), "json": (".json",), "csv": (".csv",), "tsv": (".tsv",),
    "markdown": (".md", ".markdown"), "latex": (".tex",), "html": (".html", ".htm"),
    "jsonl": (".jsonl", ".ndjson"),
}  # fmt: skip
REPORTS = ("text", "json", "csv", "markdown", "latex", "html")
PER_QUERY = ("csv", "tsv", "json")


def chosen_format(
    given: str | None, as_json: bool, output: Path | None, formats: Sequence[str] = REPORTS
) -> str:
    """Return the format of a report: what --json or -f names, else by the suffix of -o."""
    if as_json and given not in (None, "json"):
        raise click.UsageError(f"--json and -f {given} name two formats; give one.")
    if as_json:
        return "json"
    if given is None:
        return format_by_suffix(output, formats, "-o", "text")
    if given.lower() not in formats:
        raise click.UsageError(f"a format is one of {', '.join(formats)}; got {given!r}.")
    return given.lower()


def format_by_suffix(
    path: Path | None, formats: Sequence[str], option: str, default: str | None = None
) -> str:
    """Return the format that a file's name says, behind a suffix of compression or not.

    default  of standard output and of a name without a suffix; None: there must be one
    """
    from firstpage.data.io.files import suffix_of

    suffix = "" if path is None else suffix_of(path)[0]
    if not suffix and default is not None:
        return default
    for name in formats:
        if suffix in SUFFIXES[name]:
            return name
    known = [SUFFIXES[name][0] for name in formats]
    listed = " or ".join(filter(None, [", ".join(known[:-1]), known[-1]]))
    raise click.UsageError(f"{option} {path}: the name must end in {listed}.")


def check_page(path: Path | None, option: str) -> None:
    """Refuse a file for a page whose name says another format, before the work."""
    if path is not None:
        format_by_suffix(path, ("html",), option, "html")


def check_per_query(path: Path | None) -> None:
    """Refuse a file for per-query values whose name says no format, before the work."""
    if path is not None and str(path) == "-":
        raise click.UsageError("--per-query needs a file; standard output has the means.")
    if path is not None:
        format_by_suffix(path, PER_QUERY, "--per-query")


def write_per_query(evaluations: list[Any], path: Path | None) -> None:
    """Write each query's values, where a file is named for them."""
    if path is None:
        return
    from firstpage.report.results import per_query_text

    kind = format_by_suffix(path, PER_QUERY, "--per-query")
    deliver(per_query_text(evaluations, kind), path)


def deliver(text: str, output: Path | None) -> None:
    """To a file, or to standard output."""
    if output is None:
        print(text)
        return
    from firstpage.data.ids import encoded
    from firstpage.data.io.files import write_bytes

    with write_bytes(output) as out:
        out.write(encoded(text.rstrip("\n") + "\n"))
    print(f"wrote {output}", file=sys.stderr)

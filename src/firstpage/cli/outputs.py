"""Output files of commands: the format follows an option or the suffix of the file name.

The same rule holds for every file that a command writes: its name ends in a suffix of its format,
or in none that belongs to any format.  `OutputFile`, the type of such options, refuses other names
before any work is done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from firstpage.cli.command_line import WrittenFile
from firstpage.core import NOTATIONS
from firstpage.data import encode_text
from firstpage.data.formats import registry
from firstpage.data.io import suffix_of, write_bytes
from firstpage.interop import report

SUFFIXES = {
    "text": (".txt",), "json": (".json",), "csv": (".csv",), "tsv": (".tsv",),
    "markdown": (".md", ".markdown"), "latex": (".tex",), "html": (".html", ".htm"),
    "jsonl": (".jsonl", ".ndjson"), "qrels": (".txt",), "run": (".txt",),
    "scores": (".txt", ".scores"), "onnx": (".onnx",), "python": (".py",),
    "vespa": (".profile",), "sqlite": (".db", ".sqlite"), "junit": (".xml",),
}  # fmt: skip
FOREIGN_SUFFIXES = (
    ".pdf", ".png", ".svg", ".jpg", ".jpeg", ".gif", ".doc", ".docx", ".odt", ".xls", ".xlsx",
    ".ods", ".ppt", ".pptx", ".zip", ".tar", ".pkl", ".pickle", ".npy", ".h5", ".xml", ".yaml",
    ".yml", ".toml",
)  # fmt: skip
DATA = ("letor", "qrels", "run", "parquet", "csv", "arrow", "npz")
TABLES = ("text", "json", "csv", "markdown", "latex")
REPORTS = (*TABLES, "html")
PAGES = ("text", "json", "html")
PER_QUERY = ("csv", "tsv", "json")


def report_format(
    name: str | None, as_json: bool, output: Path | None, formats: Sequence[str] = REPORTS
) -> str:
    """Return the format of a report: that of --json or -f, else that of the suffix of -o."""
    if as_json and name not in (None, "json"):
        raise click.UsageError(f"--json and -f {name} are two formats; give one.")
    chosen = "json" if as_json else name
    if chosen is None:
        return format_by_suffix(output, formats, "-o", "text")
    if chosen.lower() not in formats:
        raise click.UsageError(f"the format must be one of {', '.join(formats)}; got {name!r}.")
    check_suffix(output, (chosen.lower(),), "-o")
    return chosen.lower()


def format_by_suffix(
    path: Path | None, formats: Sequence[str], option: str, default: str | None = None
) -> str:
    """Return the format of a file by its suffix, which a suffix of compression may follow.

    `default` is the format of standard output and of names without a suffix; where it is None,
    a suffix is required.
    """
    suffix = "" if path is None else suffix_of(path)[0]
    if not suffix and default is not None:
        return default
    for name in formats:
        if suffix in suffixes(name):
            return name
    raise click.UsageError(_suffix_error(path, formats, option))


def suffixes(name: str) -> tuple[str, ...]:
    """Return the suffixes that files of a format may have, the usual one first."""
    data = [suffix for suffix, kind in registry.SUFFIXES.items() if kind == name]
    return tuple(dict.fromkeys([*data, *SUFFIXES.get(name, ())]))


def check_suffix(path: Path | None, formats: Sequence[str], option: str) -> None:
    """Refuse a file name with the suffix of another format than the ones that are written.

    A suffix that belongs to no format, such as that of `model.v2`, is accepted.
    """
    suffix = "" if path is None else suffix_of(path)[0]
    if any(suffix in suffixes(name) for name in formats):
        return
    if suffix in FOREIGN_SUFFIXES or any(suffix in suffixes(name) for name in (*DATA, *SUFFIXES)):
        raise click.UsageError(_suffix_error(path, formats, option))


def _suffix_error(path: Path | None, formats: Sequence[str], option: str) -> str:
    known = list(dict.fromkeys(suffixes(name)[0] for name in formats))
    listed = " or ".join(filter(None, [", ".join(known[:-1]), *known[-1:]]))
    if not listed:
        return f"{option} {path}: names a folder; its name must not have the suffix of a file."
    return f"{option} {path}: the name must end in {listed}."


class OutputFile(WrittenFile):
    """The type of an option that names a file to write, or (without formats) a folder.

    Parameters
    ----------
    *formats : str
        The formats that the command can write there.
    may_replace : str, optional
        Name of the parameter whose file this one may be; any other file that is read is refused.
    """

    def __init__(self, *formats: str, may_replace: str | None = None) -> None:
        super().__init__(may_replace)
        self.name = "file" if formats else "folder"
        self.formats = formats

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; refuse one with the suffix of a format that is not written there."""
        path: Any = super().convert(value, param, ctx)
        name = "output" if param is None else param.human_readable_name
        option = param.opts[0] if isinstance(param, click.Option) else name
        check_suffix(path, self.formats, option)
        return path


def check_per_query(path: Path | None) -> None:
    """Refuse a file for per-query values whose suffix names no format, before any work."""
    if path is not None and str(path) == "-":
        raise click.UsageError("--per-query needs a file; standard output has the means.")
    if path is not None:
        format_by_suffix(path, PER_QUERY, "--per-query")


def write_per_query(evaluations: list[Any], path: Path | None) -> None:
    """Write the values of each query, if a file is named for them."""
    if path is None:
        return
    kind = format_by_suffix(path, PER_QUERY, "--per-query")
    write_text(report.per_query_text(evaluations, kind), path)


def write_table(result: Any, kind: str, output: Path | None) -> None:
    """Write a result in one of the formats of `TABLES`."""
    if kind == "json":
        text = json.dumps(result.to_dict(), indent=2)
    else:
        text = result.to_csv() if kind == "csv" else NOTATIONS[kind](result.summary_table())
    write_text(text, output)


def write_text(text: str, output: Path | None) -> None:
    """Write a text to a file, or to standard output."""
    if output is None:
        print(text)
        return
    with write_bytes(output) as out:
        out.write(encode_text(text.rstrip("\n") + "\n"))
    print(f"wrote {output}", file=sys.stderr)

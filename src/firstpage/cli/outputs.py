"""What a command writes, and where: the format by an option or by the suffix, else a refusal.

One rule for every file that a command writes: its name ends as its format may, or says no format
at all.  `OutputFile`, the type of such options, refuses other names before the work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

SUFFIXES = {
    "text": (".txt",), "json": (".json",), "csv": (".csv",), "tsv": (".tsv",),
    "markdown": (".md", ".markdown"), "latex": (".tex",), "html": (".html", ".htm"),
    "jsonl": (".jsonl", ".ndjson"), "qrels": (".txt",), "run": (".txt",),
    "scores": (".txt", ".scores"), "onnx": (".onnx",), "python": (".py",),
    "vespa": (".profile",), "sqlite": (".db", ".sqlite"),
}  # fmt: skip
FOREIGN = (
    ".pdf", ".png", ".svg", ".jpg", ".jpeg", ".gif", ".doc", ".docx", ".odt", ".xls", ".xlsx",
    ".ods", ".ppt", ".pptx", ".zip", ".tar", ".pkl", ".pickle", ".npy", ".h5", ".xml", ".yaml",
    ".yml", ".toml",
)  # fmt: skip
DATA = ("letor", "qrels", "run", "parquet", "csv", "arrow", "npz")
REPORTS = ("text", "json", "csv", "markdown", "latex", "html")
PAGES = ("text", "json", "html")
PER_QUERY = ("csv", "tsv", "json")


def chosen_format(
    given: str | None, as_json: bool, output: Path | None, formats: Sequence[str] = REPORTS
) -> str:
    """Return the format of a report: what --json or -f names, else by the suffix of -o."""
    if as_json and given not in (None, "json"):
        raise click.UsageError(f"--json and -f {given} name two formats; give one.")
    named = "json" if as_json else given
    if named is None:
        return format_by_suffix(output, formats, "-o", "text")
    if named.lower() not in formats:
        raise click.UsageError(f"a format is one of {', '.join(formats)}; got {given!r}.")
    check_suffix(output, (named.lower(),), "-o")
    return named.lower()


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
        if suffix in suffixes(name):
            return name
    raise click.UsageError(_refusal(path, formats, option))


def suffixes(name: str) -> tuple[str, ...]:
    """Return the suffixes that files of a format may have, the usual one first."""
    from firstpage.data.formats import registry

    data = [suffix for suffix, kind in registry.SUFFIXES.items() if kind == name]
    return tuple(dict.fromkeys([*data, *SUFFIXES.get(name, ())]))


def check_suffix(path: Path | None, formats: Sequence[str], option: str) -> None:
    """Refuse a file whose name says another format than the one that is written.

    A suffix that no format has, such as `model.v2`, says nothing.
    """
    from firstpage.data.io.files import suffix_of

    suffix = "" if path is None else suffix_of(path)[0]
    if any(suffix in suffixes(name) for name in formats):
        return
    if suffix in FOREIGN or any(suffix in suffixes(name) for name in (*DATA, *SUFFIXES)):
        raise click.UsageError(_refusal(path, formats, option))


def _refusal(path: Path | None, formats: Sequence[str], option: str) -> str:
    known = list(dict.fromkeys(suffixes(name)[0] for name in formats))
    listed = " or ".join(filter(None, [", ".join(known[:-1]), *known[-1:]]))
    if not listed:
        return f"{option} {path}: is a folder; its name must not end as a file does."
    return f"{option} {path}: the name must end in {listed}."


class OutputFile(click.Path):
    """The type of an option that names a file to write, or (without formats) a folder.

    formats  those that the command can write there
    """

    def __init__(self, *formats: str) -> None:
        super().__init__(path_type=Path)
        self.formats = formats

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, unless its name says a format that is not written there."""
        path: Any = super().convert(value, param, ctx)
        name = "output" if param is None else param.human_readable_name
        option = param.opts[0] if isinstance(param, click.Option) else name
        check_suffix(path, self.formats, option)
        return path


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
    from firstpage.data.ids import encode_text
    from firstpage.data.io.files import write_bytes

    with write_bytes(output) as out:
        out.write(encode_text(text.rstrip("\n") + "\n"))
    print(f"wrote {output}", file=sys.stderr)

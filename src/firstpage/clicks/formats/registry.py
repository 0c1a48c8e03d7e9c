"""The forms of click logs, and `read_sessions`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from firstpage.clicks.formats import json_rows, tables, tiangong, ubi, yandex
from firstpage.clicks.formats.collector import DEFAULT_ACTIONS, LogCollector, LogOptions
from firstpage.clicks.sessions import Sessions
from firstpage.core import DataError, Progress
from firstpage.data.io import BOM, check_readable, open_bytes, suffix_of

HEAD_BYTES = 1 << 16
TABLE_SUFFIXES = (".parquet", ".csv", ".tsv")
TABLES = ("table", "openbandit")
StreamReader = Callable[[str, Any, LogCollector], None]
TEXT_FORMS: dict[str, tuple[Callable[[bytes], bool], StreamReader]] = {
    "ubi": (ubi.recognizes, ubi.read),
    "tiangong": (tiangong.recognizes, tiangong.read),
    "yandex": (yandex.recognizes, yandex.read),
    "json": (json_rows.recognizes, json_rows.read),
}
FORMS = (*TABLES, *TEXT_FORMS)
FORMS_OF = {"columns": ("table", "json"), "actions": ("ubi",), "application": ("ubi",)}
DEFAULTS = LogOptions()


def form_of(path: Path) -> str:
    """Return the form of a log by its suffix, or else by its beginning."""
    check_readable(path)
    if suffix_of(path)[0] in TABLE_SUFFIXES:
        return "table"
    with open_bytes(path) as (stream, _):
        head = stream.read(HEAD_BYTES).removeprefix(BOM).lstrip()
    for name, (recognizes, _) in TEXT_FORMS.items():
        if recognizes(head):
            return name
    if not head.strip():
        raise DataError(f"{path}: is empty.")
    raise DataError(
        f"{path}: its form is not recognized as a log of clicks; the forms are {', '.join(FORMS)}."
    )


def read_sessions(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    form: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    layout: str | None = None,
    hash_users: str | None = None,
    actions: Mapping[str, float] | None = None,
    skip_broken: bool = False,
    bots: int | None = None,
    application: str | None = None,
    progress: Progress | None = None,
) -> Sessions:
    """Read a log of clicks.

    Parameters
    ----------
    path : path or sequence of paths
        The files of the log.
    form : str, optional
        The form of the files; by default it is recognized.
    columns : mapping of str to str, optional
        The names of columns that are not recognized, by what they hold: page, query, document,
        rank, clicks, first_click, value, propensity, session, user, time or layout.
    layout : str, optional
        Read only the pages of this layout, such as list or grid.  If the log tells no layouts, all
        pages have it.
    hash_users : str, optional
        A secret text (salt): ids of users are replaced by a hash of both.
    actions : mapping of str to float, optional
        The values of actions on results (UBI).  Those with "click" in their names are clicks, or
        all, if none has.  By default click and item_click have 1, add_to_cart 2 and purchase 3.
    skip_broken : bool, default False
        Skip broken lines and impossible rows, and count them, instead of raising an error.
    bots : int, optional
        Leave out users (or sessions, without users) with more pages than this.
    application : str, optional
        Read only the queries and events of this application (UBI).
    progress : callable, optional
        Called with the number of rows read so far and the total (tables only).

    Returns
    -------
    Sessions
        The pages and their clicks; `decisions` counts what was decided.

    Raises
    ------
    DataError
        If a file is missing, broken, or not a log.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "log.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("fox\\t3,1,2 : 1 ,7;fox\\t3,1,2 :;")
    ...     fp.read_sessions(path).decisions
    {'clicks on documents that were not on the page, left out': 1}
    """
    named = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not named:
        raise DataError("a log needs at least one file.")
    valued = dict(DEFAULT_ACTIONS if actions is None else actions)
    rules = (layout, hash_users, valued, skip_broken, bots, application, progress)
    options = LogOptions(dict(columns or {}), *rules)
    if form is not None and form not in FORMS:
        raise DataError(f"unknown form {form!r}; the forms are {', '.join(FORMS)}.")
    collector = LogCollector(options)
    for file in map(Path, named):
        kind = form or form_of(file)
        for option, forms in FORMS_OF.items():
            if getattr(options, option) != getattr(DEFAULTS, option) and kind not in forms:
                raise DataError(f"{file}: a log of the form {kind} is read without {option}.")
        if kind in TABLES:
            tables.read(file, collector, kind)
        else:
            with open_bytes(file) as (stream, _):
                TEXT_FORMS[kind][1](str(file), stream, collector)
    return collector.sessions(", ".join(map(str, named)))

"""Collects the impressions of a log: codes for texts, rules for bad values, counted decisions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from firstpage.clicks.formats.values import column_numbers
from firstpage.clicks.sessions import (
    CODED,
    DTYPES,
    Sessions,
    assemble,
    codes_of,
    numbers_of,
    order_on_page,
    pages_by_rank,
    repeats,
    split_by_query,
)
from firstpage.core import Advice, Array, Bools, DataError, Progress
from firstpage.data import DOCUMENT_NAMES, QUERY_NAMES

LISTS = ("documents", "ranking", "results")
USUAL_NAMES = {  # of columns, in lower case
    "page": ("page", "page_id", "impression_id", "request_id", "search_id", "serp_id"),
    "query": ("user_query", *QUERY_NAMES),
    "document": (*DOCUMENT_NAMES, "item_id", "item", "object_id", "product_id", "sku", *LISTS),
    "rank": ("rank", "position", "ordinal", "ranks", "positions"),
    "clicks": ("clicks", "clicked", "click", "is_click", "is_clicked"),
    "first_click": ("first_click", "click_order"),
    "value": ("value", "reward"),
    "propensity": ("propensity", "propensity_score", "pscore"),
    "session": ("session", "session_id"),
    "user": ("user", "user_id", "client_id"),
    "time": ("time", "timestamp", "date"),
    "layout": ("layout",),
    "arm": ("arm", "[interleaving]", "team"),
    "experiment": ("experiment",),
}
LEAST = {"clicks": 0, "first_click": 0, "propensity": 0, "rank": -math.inf}
MOST = {"propensity": 1}  # others: 10**6
LAST_TIME = 253_402_300_800_000  # the year 10000
READ = ("queries of UBI, read", "events of UBI, read")  # counts that are no decisions
DEFAULT_ACTIONS = {"click": 1.0, "item_click": 1.0, "add_to_cart": 2.0, "purchase": 3.0}


@dataclass(frozen=True)
class LogOptions:
    """How logs are read; see `read_sessions`."""

    columns: Mapping[str, str] = field(default_factory=dict)
    layout: str | None = None
    hash_users: str | None = None
    actions: Mapping[str, float] = field(default_factory=lambda: DEFAULT_ACTIONS)
    skip_broken: bool = False
    bots: int | None = None
    application: str | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.columns if name not in USUAL_NAMES]
        if unknown:
            raise DataError(
                f"logs have no column for {unknown[0]!r}; the columns are {', '.join(USUAL_NAMES)}."
            )
        if not self.actions or not all(map(math.isfinite, self.actions.values())):
            raise DataError("actions need at least one name, and finite values.")
        if self.bots is not None and self.bots < 1:
            raise DataError(f"bots must be a number of pages from 1; got {self.bots}.")
        if self.hash_users == "":
            raise DataError("users are hashed with a secret text; it is empty.")


class LogCollector:
    """Takes chunks of impressions, and returns sessions.

    Parameters
    ----------
    options : LogOptions
        How logs are read.
    """

    def __init__(self, options: LogOptions) -> None:
        self.options = options
        self.decisions: dict[str, int] = defaultdict(int)
        self._tables: dict[str, dict[str, int]] = defaultdict(dict)
        self._chunks: dict[str, list[Array]] = defaultdict(list)
        self._rows = 0
        self._first_number, self._last_number = 0, -1  # of pages that a form numbers itself
        self.joined: dict[str, Any] = {}  # what a form collects of several files
        self.at_end: list[Callable[[], None]] = []

    def count(self, decision: str, cases: Any = 1) -> None:
        """Count cases of a decision, told in words."""
        if cases:
            self.decisions[decision] += int(cases)

    def broken(self, where: str, reason: str) -> None:
        """Count a broken line, or raise an error that names it."""
        if not self.options.skip_broken:
            raise DataError(
                f"{where}: {reason}",
                Advice("Broken lines are skipped and counted with {}.", "skip_broken", True),
            )
        self.count("broken lines, which were skipped")

    def add(self, columns: Mapping[str, Any], source: str, numbered: bool = False) -> None:
        """Add impressions: a column of texts or numbers by role; `numbered` pages count from 0."""
        rows = len(columns["document"])
        if not rows:
            return
        for name in {*self._chunks} ^ {*columns} if self._rows else ():
            lacking = self._rows if name in columns else rows
            self._chunks[name].append(np.full(lacking, -1 if name in CODED else np.nan))
        numbers: Array
        for name, values in columns.items():
            if name == "page" and numbered:
                numbers = np.asarray(values, np.int64) + self._first_number
                self._last_number = int(numbers[-1])
            elif name in ("page", "session") and hasattr(values, "hash"):
                numbers = _hashes(values)
            elif name in CODED:
                numbers = codes_of(values, self._tables[name])
            else:
                numbers = self._numbers(name, values, source)
            self._chunks[name].append(numbers)
        self._rows += rows

    def _numbers(self, name: str, values: Any, source: str) -> Array:
        """Return a column of numbers; NaN where a broken value is skipped."""
        numbers, wrong = column_numbers(name, values)
        if wrong is not None:
            where = f"{source}: row {self._rows + wrong + 1}"
            what = "time" if name == "time" else "number"
            self.broken(where, f"{str(values[wrong])[:50]!r} is not a {what} ({name}).")
        return numbers

    def end_of_file(self) -> None:
        """Number the pages of the next file after those of this one."""
        self._first_number = self._last_number + 1

    def sessions(self, source: str) -> Sessions:
        """Return the sessions of all impressions, with the decisions on bad ones."""
        for finish in self.at_end:
            finish()
        # each column is freed from its chunks before the next one is joined
        columns = {n: np.concatenate(self._chunks.pop(n)) for n in list(self._chunks)}
        for name in ("query", "document", "clicks") if self._rows else ():
            if name not in columns:
                raise no_column(source, name)
        rules = [self._valid, self._order_of_clicks, self._ranked, self._distinct]
        for clean in (*rules, self._people, self._of_layout):
            if len(columns.get("document", ())):
                clean(columns, source)
        if not len(columns.get("document", ())):
            told = "; ".join(f"{text} ({count:,})" for text, count in self.decisions.items())
            raise DataError(f"{source}: contains no impressions{told and f' ({told})'}.")
        tables = {name: tuple(table) for name, table in self._tables.items()}
        salt, users, layouts = self.options.hash_users, tables.get("user"), tables.get("layout", ())
        if salt is not None and not users:
            raise DataError(f"{source}: has no users to hash.", Advice("Drop {}.", "hash_users"))
        if salt is not None and users:
            tables["user"] = tuple(_hashed(name, salt) for name in users)
        if len(layouts) > 1 and self.options.layout is None:
            listed = ", ".join(layouts[:5])
            text = f"layouts are mixed ({listed}): ranks of different layouts are not comparable"
            self.count(text, len(layouts))
        for name, values in columns.items():  # keys of sessions are 64 bits until they are numbered
            dtype = np.int64 if name == "session" else DTYPES.get(name, np.int32)
            columns[name] = values.astype(dtype, copy=False)
        return assemble(columns, tables, self.decisions, source)

    def _keep(self, columns: dict[str, Array], kept: Bools, decision: str) -> None:
        """Keep some rows; count the others."""
        if not kept.all():
            self.count(decision, np.count_nonzero(~kept))
            columns |= {name: values[kept] for name, values in columns.items()}

    def _valid(self, columns: dict[str, Array], source: str) -> None:
        """Leave out impressions without query, document or page, or with impossible numbers."""
        columns["clicks"][np.isnan(columns["clicks"])] = 0
        for name, least in LEAST.items():
            if name not in columns:
                continue
            values = columns[name]
            wrong = (values < least) | (values > MOST.get(name, 10**6))
            if name != "propensity":
                wrong |= ~np.isnan(values) & (values != np.round(values))
            if wrong.any() and not self.options.skip_broken:
                row = int(np.argmax(wrong))
                text = f"{source}: impression {row + 1} has {values[row]:g} as {name}."
                advice = Advice("Such rows are left out and counted with {}.", "skip_broken", True)
                raise DataError(text, advice)
            self._keep(columns, ~wrong, f"impressions with impossible {name}, left out")
        for name in ("query", "document", "page"):
            if name in columns:
                kept = columns[name] != -1
                self._keep(columns, kept, f"impressions without a {name}, which were left out")
        if "time" in columns:
            time = columns["time"]
            wrong = (time < 0) | (time > LAST_TIME)
            decision = "impressions with a time before 1970 or after 9999, now unknown"
            self.count(decision, wrong.sum())
            columns["time"] = np.where(np.isnan(time) | wrong, -1, time)

    def _order_of_clicks(self, columns: dict[str, Array], _: str) -> None:
        """Drop the order of clicks unless all clicks have it."""
        order = columns.get("first_click")
        if order is not None:
            unclicked = (order > 0) & (columns["clicks"] == 0)
            text = "impressions with a place in the order of clicks, without a click"
            self.count(text, unclicked.sum())
            order[unclicked] = 0
            unknown = np.isnan(order) & (columns["clicks"] > 0)
            order[np.isnan(order)] = 0
            if unknown.any():
                del columns["first_click"]
                if order.any():  # silent where a log has no order at all
                    self.count("clicks without their order: no order is known", unknown.sum())

    def _ranked(self, columns: dict[str, Array], source: str) -> None:
        """Set pages where there are none, and ranks from 1."""
        if "page" in columns:
            page = numbers_of(columns["page"])
            columns["page"] = split_by_query(page, columns["query"])
            added = int(columns["page"].max(initial=-1) - page.max(initial=-1))
            self.count("further pages with the id of a page of another query", added)
        rank = columns.get("rank")
        if rank is None or np.isnan(rank).all():
            if "page" not in columns:
                raise DataError(
                    f"{source}: has neither ranks nor pages.", Advice("Name one by {}.", "columns")
                )
            columns["rank"] = order_on_page(columns["page"])
            pages = int(columns["page"].max()) + 1
            self.count("pages without ranks: the order of the rows is taken", pages)
            return
        kept = ~np.isnan(rank)
        self._keep(columns, kept, "impressions without a rank, which were left out")
        if columns["rank"].min() == 0:
            columns["rank"] = columns["rank"] + 1
            self.count("impressions with ranks from 0, which were made ranks from 1", kept.sum())
        self._keep(columns, columns["rank"] >= 1, "impressions with a rank below 1, left out")
        if "page" not in columns:
            columns["page"] = pages_by_rank(columns)
            pages = int(columns["page"].max(initial=-1)) + 1
            self.count("pages recognized by query, session and ranks", pages)

    def _distinct(self, columns: dict[str, Array], _: str) -> None:
        """Leave out impressions of a document or at a rank that their page has already."""
        told = {
            "document": "impressions of a document that its page has already, left out",
            "rank": "impressions at a rank that another document of the page has, left out",
        }
        for name, decision in told.items():
            repeated = repeats(columns["page"], columns[name])
            clicks = columns["clicks"][repeated].sum()
            self.count("clicks on repeated impressions, left out", clicks)
            self._keep(columns, ~repeated, decision)

    def _people(self, columns: dict[str, Array], source: str) -> None:
        """Leave out users (or else sessions) with more pages than people have, if asked."""
        if self.options.bots is None:
            return
        who = "user" if "user" in columns else "session"
        if who not in columns:
            raise DataError(f"{source}: has neither users nor sessions, so bots have no name.")
        page, first = np.unique(columns["page"], return_index=True)
        distinct, number = np.unique(columns[who][first], return_inverse=True)
        bots = (np.bincount(number) > self.options.bots) & (distinct != -1)
        self.count(f"{who}s with more than {self.options.bots:,} pages, left out", bots.sum())
        human = ~bots[number][np.searchsorted(page, columns["page"])]
        self._keep(columns, human, f"impressions of these {who}s, which were left out")

    def _of_layout(self, columns: dict[str, Array], source: str) -> None:
        """Keep the pages of the layout that was named; all have it if the log tells none."""
        name, known = self.options.layout, self._tables["layout"]
        if name is None:
            return
        if known and name not in known:
            listed = ", ".join(known)
            raise DataError(f"{source}: no page has the layout {name!r}; there are {listed}.")
        if known:
            kept = columns["layout"] == known[name]
            self._keep(columns, kept, "impressions of other layouts, left out")
        self._tables["layout"] = {name: 0}
        columns["layout"] = np.zeros(len(columns["rank"]), np.int32)


def no_column(source: str, name: str, names: Sequence[str] = ()) -> DataError:
    """Return the error of a log without a column that it needs; `names` are those that it has."""
    there = f" (there are {', '.join(names[:12])})" if names else ""
    text = f"{source}: has no column of the {name}{there}."
    return DataError(text, Advice("Name it with {}.", "columns"))


def columns_of(names: Sequence[str], asked: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each role: the one that was asked for, or else one of a usual name."""
    lower = {name.lower(): name for name in reversed(names)}
    roles = {role: name for role, name in asked.items() if name in names}
    for role, usual in USUAL_NAMES.items():
        name = next((lower[n] for n in usual if n in lower), None)
        if role not in asked and name is not None and name not in roles.values():
            roles[role] = name
    return roles


def _hashes(column: Any) -> Array:
    """Return 64 bits per value of a column of polars; -1 where it is missing."""
    import polars as pl

    missing = column.is_null().to_numpy()
    hashes: Array = column.cast(pl.String).hash().to_numpy().view(np.int64).copy()
    hashes[missing] = -1
    return hashes


def _hashed(user: str, salt: str) -> str:
    """Return a user's id that nobody can trace back without the salt."""
    return sha256(f"{salt}\x00{user}".encode()).hexdigest()[:16]

"""What the entries of a paper and its theorems say, from a TOML file beside their module.

The file has the texts of each entry, the layout of its figures and tables, and single printed
values; the module has its experiments and claims.  Texts contain names in braces, which stand for
other texts (those of the table `texts`) or for words that the module passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperProtocol,
    Plot,
    Row,
    TableLayout,
    every_row,
)
from firstpage.papers.tables import tables_beside


class Descriptions:
    """The descriptions of the entries of a module.

    Attributes
    ----------
    texts : dict of str to str
        The words, and the texts that several entries share.
    """

    def __init__(self, module_file: str, **words: Any) -> None:
        self._tables = tables_beside(module_file)
        self.texts: dict[str, Any] = dict(words)
        for name, text in self._tables.pop("texts", {}).items():
            self.texts[name] = text.format_map(self.texts)

    def entry(
        self,
        key: str,
        experiments: Sequence[Experiment],
        claims: Callable[[Cells], list[Claim]],
        *,
        row_filter: Callable[[Row], bool] = every_row,
        paper_experiments: Sequence[Experiment] = (),
        fields: Mapping[str, Any] | None = None,
        **words: Any,
    ) -> PaperEntry:
        """Return the entry that a table of the file describes.

        With `paper_experiments`, it has a protocol with everything that the paper prints.  Fields
        are those of `PaperEntry` that the file does not have.
        """
        record = _filled(self._table(key), {**self.texts, **words})
        plots = [(p.pop("show", ""), Plot(**{"x": None, **p})) for p in record.pop("plots", ())]
        layouts = [(t.pop("show", ""), TableLayout(**t)) for t in record.pop("layouts", ())]
        values = [(labels, labels.pop("value")) for labels in record.pop("paper_values", ())]
        texts = [record.pop(f"paper_{name}", "") for name in ("note", "held_equal")]
        full = PaperProtocol(paper_experiments, *texts) if paper_experiments else None
        given = {"plots": plots, "layouts": layouts, "paper_values": values, **(fields or {})}
        return PaperEntry(
            experiments=experiments,
            claims=claims,
            row_filter=row_filter,
            paper_protocol=full,
            **{"name": key, **record, **given},
        )

    def _table(self, key: str) -> dict[str, Any]:
        """Return a table, with what it does not have itself from the table that it is like."""
        table = dict(self._tables[key])
        like = table.pop("like", None)
        return table if like is None else {**self._table(like), **table}


def _filled(value: Any, words: Mapping[str, Any]) -> Any:
    """Return a value of the file with the words in its texts."""
    if isinstance(value, str):
        return value.format_map(words)
    if isinstance(value, list):
        return [_filled(item, words) for item in value]
    if isinstance(value, dict):
        return {_filled(name, words): _filled(item, words) for name, item in value.items()}
    return value

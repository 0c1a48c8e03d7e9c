"""What results with a row per rank share: sentences and a table, data frames, files."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np

from firstpage.core import DataError, Table, Tabular
from firstpage.data.io import JsonFormat, write_json

KINDS = {"tuple[int, ...]": int, "tuple[float, ...]": float, "tuple[str, ...]": str}


class RankTable(Tabular):
    """A frozen dataclass with a tuple per column, `verdict` (sentences) and settings."""

    _file: ClassVar[JsonFormat]
    _note: ClassVar[str] = ""

    rank: tuple[int, ...]
    verdict: tuple[str, ...]

    @classmethod
    def _columns(cls) -> dict[str, type]:
        """Return the names of the columns, with the types of their values."""
        described = fields(cls)  # type: ignore[arg-type]
        return {f.name: KINDS[f.type] for f in described if f.type in KINDS and f.name != "verdict"}

    @classmethod
    def _of(cls, columns: Sequence[Any], **settings: Any) -> Self:
        """Return the table of columns in the order of the fields."""
        named = zip(cls._columns(), columns, strict=True)
        return cls(**{name: tuple(np.asarray(c).tolist()) for name, c in named}, **settings)

    def _title(self) -> str:
        return ""

    def _frame_columns(self) -> dict[str, Any]:
        return {
            name: [None if value != value else value for value in getattr(self, name)]
            for name in self._columns()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the values as a dictionary, with None where there is none.

        Returns
        -------
        dict
            The content of the file that `save` writes.
        """
        return {**vars(self), **self._frame_columns(), "verdict": list(self.verdict)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the values to a JSON file.

        Parameters
        ----------
        path : path
            The file.
        """
        write_json(self._file.with_header(self.to_dict()), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file.

        Parameters
        ----------
        path : path
            A file that `save` wrote.

        Returns
        -------
        object of this class
            The stored values.

        Raises
        ------
        DataError
            If the file is of another kind, or damaged.
        """
        stored = cls._file.read(path)
        try:
            content: dict[str, Any] = {f.name: stored[f.name] for f in fields(cls)}  # type: ignore[arg-type]
            content |= {
                name: tuple(math.nan if cell is None else kind(cell) for cell in stored[name])
                for name, kind in cls._columns().items()
            }
            content["verdict"] = tuple(map(str, stored["verdict"]))
            if len({len(content[name]) for name in cls._columns()}) > 1:
                raise ValueError("its columns differ in length")
            return cls(**content)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{os.fspath(path)}: damaged: {error}.") from error

    def summary_table(self) -> Table:
        columns = self._frame_columns()
        rows = [[_cell(value) for value in row] for row in zip(*columns.values(), strict=True)]
        head = [name.replace("_", " ") for name in columns]
        return Table(head, rows, self._title(), self._note, left_aligned=0)

    def __str__(self) -> str:
        return "\n".join([*self.verdict, "", self.summary_table().text()])

    __repr__ = __str__


def ranges(ranks: Any) -> str:
    """Return ascending ranks as text, such as "1-3, 5"."""
    starts = [r for r in ranks if r - 1 not in ranks]
    ends = [r for r in ranks if r + 1 not in ranks]
    pairs = zip(starts, ends, strict=True)
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pairs)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)

"""Results that are tables: data frames, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from firstpage.core.errors import missing_dependency
from firstpage.core.table import Table

if TYPE_CHECKING:
    import pandas
    import polars


class Tabular:
    """Base of results that can be shown in a notebook and converted to data frames.

    Subclasses define `_frame_columns`, the values of each column, and `summary_table`, a short
    table for people.
    """

    def _frame_columns(self) -> Mapping[str, Any]:
        """Return the columns of the data frame by name."""
        raise AssertionError(f"{type(self).__name__} has no columns")  # each subclass has its own

    def summary_table(self) -> Table:
        """Return a short table for people."""
        raise AssertionError(f"{type(self).__name__} has no table")  # each subclass has its own

    def to_csv(self) -> str:
        """Return the values as CSV, with a header and one value per cell.

        Returns
        -------
        str
            The columns that the class describes; a missing value is an empty cell.
        """
        columns = self._frame_columns()
        rows = zip(*columns.values(), strict=True)
        cells = [["" if value is None else str(value) for value in row] for row in rows]
        return Table(list(columns), cells).csv()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the values as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            The columns that the class describes.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise missing_dependency("pandas", "pandas", "to_pandas") from error
        return pandas.DataFrame(dict(self._frame_columns()))

    def to_polars(self) -> polars.DataFrame:
        """Return the values as a polars data frame.

        Returns
        -------
        polars.DataFrame
            The columns that the class describes.

        Raises
        ------
        MissingDependency
            If polars is not installed.
        """
        try:
            import polars
        except ModuleNotFoundError as error:
            raise missing_dependency("polars", "tables", "to_polars") from error
        return polars.DataFrame(dict(self._frame_columns()))

    def to_latex(self) -> str:
        """Return the short table as a LaTeX tabular.

        Returns
        -------
        str
            The tabular, with its notes below.
        """
        return self.summary_table().latex()

    def _repr_html_(self) -> str:
        """Return the short table as HTML, which notebooks show."""
        return self.summary_table().html()

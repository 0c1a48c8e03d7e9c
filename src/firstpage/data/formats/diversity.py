"""Diversity judgments: lines of `topic subtopic document judgment`, as ndeval reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from firstpage.core import DataError, Floats, Ints, location
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.io.files import read_all
from firstpage.data.runs import Qrels

PLAIN_ITERATIONS = ({"0"}, {"Q0"}, {"1"})  # what the second field of plain judgments contains
Judgment = tuple[str, str, str, float]  # query, subtopic, document, grade


@dataclass(frozen=True, eq=False, repr=False)
class DiversityQrels:
    """Relevance judgments of documents for the subtopics of each query.

    `evaluate` takes them with measures of diversity, such as alpha-nDCG.  `read_diversity_qrels`
    and `from_dict` make them.

    Attributes
    ----------
    queries : Ids
        The id of each query.
    offsets : array of int
        Query q has the documents ``offsets[q]:offsets[q + 1]``.
    docids : Ids
        The id of each judged document, those with fewer relevant subtopics first.
    starts : array of int
        Document d has the judgments ``starts[d]:starts[d + 1]``.
    subtopics : array of int
        The number of the subtopic of each judgment, from 0, within its query.
    grades : array of float
        The grade of each judgment.
    source : str
        The file that the judgments were read from.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"a": 1, "b": 1}}})
    >>> qrels
    DiversityQrels(1 queries, 2 documents, 3 judgments)
    >>> fp.evaluate({"q": {"b": 2.0, "a": 1.0}}, qrels, measures="StRecall@1")["StRecall@1"]
    0.5
    """

    queries: Ids
    offsets: Ints
    docids: Ids
    starts: Ints
    subtopics: Ints
    grades: Floats
    source: str = field(default="")

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.queries)

    def __repr__(self) -> str:
        label = f"{self.source}: " if self.source else ""
        return (
            f"DiversityQrels({label}{len(self)} queries, {len(self.docids)} documents, "
            f"{len(self.grades)} judgments)"
        )

    @classmethod
    def from_dict(cls, table: Mapping[str, Mapping[str, Mapping[str, float]]]) -> DiversityQrels:
        """Return the judgments of nested mappings.

        Parameters
        ----------
        table : mapping
            {query: {subtopic: {document: grade}}}.

        Returns
        -------
        DiversityQrels
            The judgments.

        Raises
        ------
        DataError
            If the mappings are not nested so, or a grade is not a number.
        """
        rows: list[Judgment] = []
        for query, subtopics in table.items():
            for subtopic, docs in _items(subtopics, f"query {query!r}"):
                for doc, grade in _items(docs, f"subtopic {subtopic!r} of query {query!r}"):
                    if not isinstance(grade, (int, float, np.number)) or not np.isfinite(grade):
                        raise DataError(
                            f"the grade of document {doc!r} in query {query!r} must be a number; "
                            f"got {grade!r}."
                        )
                    rows.append((str(query), str(subtopic), str(doc), float(grade)))
        return _from_rows(rows, "")

    def flatten(self) -> Qrels:
        """Return plain judgments: the greatest grade of each document over the subtopics.

        Returns
        -------
        Qrels
            One grade per judged document.
        """
        values = np.empty(0)
        if len(self.grades):
            values = np.maximum.reduceat(self.grades, self.starts[:-1])
        return Qrels(self.queries, self.offsets, self.docids, values, source=self.source)

    def document_numbers(self) -> Qrels:
        """Return the judged documents with their row numbers in place of grades.

        Returns
        -------
        Qrels
            One number per judged document.
        """
        numbers = np.arange(len(self.docids), dtype=np.float64)
        return Qrels(self.queries, self.offsets, self.docids, numbers, source=self.source)


def _items(value: object, owner: str) -> Iterable[tuple[object, object]]:
    if not isinstance(value, Mapping):
        raise DataError(
            f"diversity judgments are {{query: {{subtopic: {{document: grade}}}}}}; {owner} has "
            f"{value!r}."
        )
    return value.items()


def read_diversity_qrels(path: str | os.PathLike[str]) -> DiversityQrels:
    """Read diversity judgments: lines of `topic subtopic document judgment`.

    Parameters
    ----------
    path : path
        The file, which may be compressed.

    Returns
    -------
    DiversityQrels
        The judgments.

    Raises
    ------
    DataError
        If a line is not of this form, a judgment is repeated, or the file holds plain judgments,
        whose second field is the same everywhere.

    Examples
    --------
    >>> from pathlib import Path
    >>> import firstpage as fp
    >>> _ = Path("web.qrels").write_text("1 1 a 1\\n1 2 a 0\\n1 2 b 1\\n")
    >>> fp.read_diversity_qrels("web.qrels")
    DiversityQrels(web.qrels: 1 queries, 2 documents, 3 judgments)
    """
    name = os.fspath(path)
    rows: list[Judgment] = []
    seen: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(read_all(Path(path)).splitlines(), 1):
        fields = line.decode("utf-8", "replace").split()
        if not fields:
            continue
        try:
            query, subtopic, doc, judgment = fields
            grade = float(judgment)
        except ValueError:
            raise DataError(
                f"{location(name, number)}: a line of diversity judgments is `topic subtopic "
                f"document judgment`; got {line.decode('utf-8', 'replace')[:60]!r}."
            ) from None
        if not np.isfinite(grade):
            raise DataError(f"{location(name, number)}: the judgment {judgment!r} is not finite.")
        first = seen.setdefault((query, subtopic, doc), number)
        if first != number:
            raise DataError(
                f"{location(name, number)}: document {doc!r} was judged for subtopic {subtopic!r} "
                f"of topic {query!r} in line {first} already."
            )
        rows.append((query, subtopic, doc, grade))
    if not rows:
        raise DataError(f"{name}: the file has no judgments.")
    if {row[1] for row in rows} in PLAIN_ITERATIONS:
        raise DataError(
            f"{name}: these are plain judgments: the subtopic is {rows[0][1]!r} in every line. "
            "Measures of diversity need `topic subtopic document judgment`."
        )
    return _from_rows(rows, name)


def _from_rows(rows: list[Judgment], source: str) -> DiversityQrels:
    """Group judgments by query and document."""
    by_query: dict[str, dict[str, list[tuple[int, float]]]] = {}
    numbers: dict[str, dict[str, int]] = {}
    for query, subtopic, doc, grade in rows:
        known = numbers.setdefault(query, {})
        number = known.setdefault(subtopic, len(known))
        by_query.setdefault(query, {}).setdefault(doc, []).append((number, grade))
    ordered = {
        query: sorted(docs.items(), key=lambda item: sum(grade > 0 for _, grade in item[1]))
        for query, docs in by_query.items()
    }
    documents = [item for docs in ordered.values() for item in docs]
    judgments = [judgment for _, each in documents for judgment in each]
    return DiversityQrels(
        Ids.from_values(ordered),
        offsets_from_lengths([len(docs) for docs in ordered.values()]),
        Ids.from_values(doc for doc, _ in documents),
        offsets_from_lengths([len(each) for _, each in documents]),
        np.array([subtopic for subtopic, _ in judgments], np.int64),
        np.array([grade for _, grade in judgments], np.float64),
        source,
    )

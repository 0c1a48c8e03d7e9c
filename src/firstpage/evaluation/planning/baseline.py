"""Stored baselines: the values of a system per query, against which later ones are checked."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from firstpage.core import DataError
from firstpage.data import Column
from firstpage.data.io import JsonFormat, write_json
from firstpage.evaluation.measures.evaluation import Evaluation

FILE = JsonFormat("firstpage-baseline", 1, "baseline")


@dataclass(frozen=True, eq=False)
class Baseline:
    """Values of a system per query, to check later systems against (`fp.planning.gate`).

    Attributes
    ----------
    name : str
        Name of the system.
    values : dict of str to dict of str to float
        {measure: {query: value}}, by the canonical texts of the measures.
    settings : dict
        Settings of the convention that the values depend on.
    judgments : str
        Fingerprint of the judgments; empty where it is unknown.
    source : str
        The file that the baseline was read from.

    Examples
    --------
    >>> import firstpage as fp
    >>> old = fp.evaluate([2, 1, 2, 1], [1, 0, 0, 1], qid=[1, 1, 2, 2], measures="RR", name="old")
    >>> fp.planning.Baseline.from_evaluation(old).values
    {'RR': {'1': 1.0, '2': 0.5}}
    """

    name: str
    values: dict[str, dict[str, float]]
    settings: dict[str, Any]
    judgments: str = ""
    source: str = ""

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, truth: Any = None) -> Baseline:
        """Return the baseline of an evaluation.

        Parameters
        ----------
        evaluation : Evaluation
            The values to store.
        truth : Qrels, optional
            The judgments, of which a fingerprint is stored.

        Returns
        -------
        Baseline
            The values per query.
        """
        queries = list(evaluation.queries)
        values = {
            str(measure): dict(zip(queries, row.tolist(), strict=True))
            for measure, row in zip(evaluation.measures, evaluation.values, strict=True)
        }
        return cls(evaluation.name, values, _settings(evaluation), fingerprint(truth))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Baseline:
        """Read a baseline file.

        Parameters
        ----------
        path : path
            A file that `save` wrote.

        Returns
        -------
        Baseline
            The stored values.

        Raises
        ------
        DataError
            If the file is not a baseline, or damaged.
        """
        stored = FILE.read(path)
        try:
            values = {
                str(text): {str(query): float(value) for query, value in by_query.items()}
                for text, by_query in stored["values"].items()
            }
            return cls(
                str(stored["name"]),
                values,
                dict(stored["settings"]),
                str(stored["judgments"]),
                os.fspath(path),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{os.fspath(path)}: damaged: {error}.") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the baseline to a JSON file.

        Parameters
        ----------
        path : path
            The file.
        """
        content = {
            "name": self.name,
            "settings": self.settings,
            "judgments": self.judgments,
            "values": self.values,
        }
        write_json(FILE.with_header(content), path)

    def check_settings(self, evaluation: Evaluation) -> None:
        """Refuse an evaluation with other settings than those of the stored values.

        Parameters
        ----------
        evaluation : Evaluation
            Another evaluation.

        Raises
        ------
        DataError
            If a setting differs.
        """
        now = _settings(evaluation)
        for name, value in self.settings.items():
            if name in now and now[name] != value:
                raise DataError(
                    f"{self.source or 'the baseline'}: was measured with {name}={value}, and the "
                    f"system with {name}={now[name]}; use the same settings, or store it again."
                )


def _settings(evaluation: Evaluation) -> dict[str, Any]:
    """Return the settings that values depend on; the seed only where something is random."""
    convention, k = evaluation.convention, evaluation.k
    settings = {f.name: getattr(convention, f.name) for f in fields(convention)} | {"k": k}
    if k is None and convention.depth is None and convention.ties != "shuffle":
        del settings["seed"]
    del settings["name"]
    return settings


def fingerprint(truth: Any) -> str:
    """Return a digest of judgments, equal for equal judgments in any order; '' for others."""
    if not isinstance(truth, Column):
        return ""
    queries = np.repeat(truth.queries.hashes, np.diff(truth.offsets))
    order = np.lexsort((truth.values, truth.docids.hashes, queries))
    digest = hashlib.sha256()
    for part in (queries, truth.docids.hashes, truth.values):
        digest.update(np.ascontiguousarray(part[order]).tobytes())
    return digest.hexdigest()[:16]

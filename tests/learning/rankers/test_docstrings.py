"""Every ranker documents all its parameters and fitted attributes, each exactly once."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import KW_ONLY, dataclass, fields
from typing import ClassVar

import numpy as np

import firstpage as fp
from firstpage.core.docstrings import inherit_sections, split_entries, split_sections
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.progress import ATTRIBUTES
from firstpage.learning.rankers.registry import RANKERS

CLASSES: list[type[Ranker]] = [Ranker, *RANKERS.values()]
REQUIRED = ("Parameters", "Attributes", "References", "Examples")


def names_in(section: str) -> list[str]:
    """Return the names at the start of all lines that are not indented."""
    return [line.split(" : ")[0] for line in section.splitlines() if line and line[0] != " "]


def test_parameters_are_documented_once_in_the_order_of_the_signature() -> None:
    wrong = []
    for cls in CLASSES:
        names = names_in(split_sections(cls.__doc__ or "")[1]["Parameters"])
        if names != list(inspect.signature(cls).parameters):
            wrong.append(f"{cls.__name__}: {names}")
        if sorted(names) != sorted(field.name for field in fields(cls)):
            wrong.append(f"{cls.__name__}: not the fields: {names}")
    assert wrong == []


def test_entries_have_a_type_and_a_text() -> None:
    wrong = []
    for cls in CLASSES:
        _, sections = split_sections(cls.__doc__ or "")
        for title in ("Parameters", "Attributes"):
            for name, entry in split_entries(sections[title]).items():
                head, *text = entry.splitlines()
                indented = all(line.startswith("    ") for line in text)
                if not (head.partition(" : ")[2] and text and indented):
                    wrong.append(f"{cls.__name__}.{name}: {entry!r}")
    assert wrong == []


def test_rankers_have_all_sections() -> None:
    wrong = []
    for cls in RANKERS.values():
        summary, sections = split_sections(cls.__doc__ or "")
        if not summary.splitlines()[0].endswith("."):
            wrong.append(f"{cls.__name__}: the first line is not a sentence")
        missing = sorted(set(REQUIRED) - sections.keys())
        wrong += [f"{cls.__name__}: there is no section {title}" for title in missing]
    assert wrong == []


def test_defaults_in_the_text_are_those_of_the_signature() -> None:
    wrong = []
    for cls in CLASSES:
        _, sections = split_sections(cls.__doc__ or "")
        entries = split_entries(sections["Parameters"])
        for name, parameter in inspect.signature(cls).parameters.items():
            _, keyword, default = entries[name].splitlines()[0].partition("default ")
            shown = default.replace('"', "'")
            if keyword and shown != repr(parameter.default):
                number = type(parameter.default) is float
                if not (number and float(shown) == parameter.default):
                    wrong.append(f"{cls.__name__}.{name}: {default} in the text")
    assert wrong == []


def test_fitted_attributes_are_documented_and_exist() -> None:
    X, y, qid = np.arange(6.0).reshape(6, 1), [0, 1, 2, 0, 1, 2], [1, 1, 1, 2, 2, 2]
    _, sections = split_sections(Ranker.__doc__ or "")
    documented = names_in(sections["Attributes"])
    assert len(documented) == len(set(documented))
    assert set(ATTRIBUTES) < set(documented)
    ranker = fp.Regression(normalize="global minmax").fit(X, y, qid=qid)
    fitted = {name for name in vars(ranker) if name.endswith("_") and not name.startswith("_")}
    assert fitted | {"feature_names_in_", "categories_"} == set(documented)


def test_text_of_the_subclass_wins_and_order_is_that_of_the_signature() -> None:
    @dataclass
    class Base:
        """Base.

        Parameters
        ----------
        a : int
            Of the base.
        b : int
            Of the base.

        Attributes
        ----------
        c_ : int
            Of the base.
        """

        a: int = 1
        _: KW_ONLY
        b: int = 2

    class Derived(Base):
        """Derived.

        Parameters
        ----------
        b : int
            Of the subclass.
        d : int
            Of the subclass.

        Examples
        --------
        >>> Derived()
        """

        constant: ClassVar[int] = 0
        d: int = 3
        _: KW_ONLY
        b: int = 4

    inherit_sections(Derived)
    text, sections = split_sections(Derived.__doc__ or "")
    assert text == "Derived."
    assert list(sections) == ["Parameters", "Attributes", "Examples"]
    entries = split_entries(sections["Parameters"])
    assert list(entries) == ["a", "d", "b"]
    assert entries["b"] == "b : int\n    Of the subclass."
    assert names_in(sections["Attributes"]) == ["c_"]


def test_without_docstrings_there_is_nothing_to_merge() -> None:
    code = "import firstpage as fp; assert fp.ListMLE.__doc__ is None; print(fp.ListMLE(k=2))"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ListMLE(k=2)\n"), done.stderr


def test_sections_of_unknown_titles_come_last() -> None:
    class Base:
        """Base.

        Attributes
        ----------
        size : int
            The size.
        """

    class Derived(Base):
        """Derived.

        Yields
        ------
        int
            A number.

        Examples
        --------
        >>> 1
        1
        """

    inherit_sections(Derived)
    _, sections = split_sections(Derived.__doc__ or "")
    assert list(sections) == ["Attributes", "Examples", "Yields"]

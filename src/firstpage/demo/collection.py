"""A small real collection that is part of Python: the standard library's documentation.

It has a few thousand short documents, 48 questions with known answers, and LETOR-like features.
Nothing is downloaded, and a reader can judge the results by eye.
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.demo.questions import QUESTIONS
from firstpage.types import Floats

_MODULES = """
argparse array ast asyncio base64 binascii bisect bz2 calendar cmd code codecs collections
collections.abc colorsys compileall concurrent.futures configparser contextlib contextvars copy
cProfile csv ctypes dataclasses datetime decimal difflib dis doctest email email.message
email.utils enum filecmp fileinput fnmatch fractions ftplib functools gc getopt getpass gettext
glob graphlib gzip hashlib heapq hmac html html.parser http http.client http.cookies http.server
imaplib importlib importlib.metadata importlib.util inspect io ipaddress itertools json keyword
linecache locale logging logging.config logging.handlers lzma mailbox math mimetypes mmap
multiprocessing.pool netrc numbers operator optparse os os.path pathlib pdb pickle pickletools
platform plistlib poplib pprint profile pstats py_compile queue quopri random re reprlib sched
secrets select selectors shelve shlex shutil signal smtplib socket socketserver sqlite3 ssl stat
statistics string struct subprocess symtable sysconfig tarfile tempfile textwrap threading time
timeit token tokenize trace traceback tracemalloc types typing unicodedata unittest
unittest.mock urllib.error urllib.parse urllib.request uuid warnings wave weakref webbrowser
wsgiref.util xml.dom.minidom xml.etree.ElementTree xml.sax.saxutils xmlrpc.client zipfile zlib
zoneinfo
"""
MODULES = tuple(_MODULES.split())

MAX_WORDS = 120  # of a docstring
CANDIDATES = 40  # documents per question by BM25, before the known answers are added
_STOPWORDS = """
a an and are as at be by for from has have how in into is it its of on or that the this to when
with you your which if not can will all any each their they
"""
STOPWORDS = frozenset(_STOPWORDS.split())
K1, B = 1.2, 0.75  # BM25
MU, LAMBDA = 120.0, 0.5  # Dirichlet and Jelinek-Mercer smoothing
FIELDS = ("name", "text")
PER_FIELD = ("tf", "tfidf", "coverage", "bm25", "lm_dirichlet", "lm_jm", "length")
FEATURES = (*(f"{m}_{f}" for f in FIELDS for m in PER_FIELD), "depth", "is_class")


@dataclass(frozen=True)
class Collection:
    """Questions with their candidate documents.

    Attributes
    ----------
    questions : dict of str to str
        The text per question number.
    documents : dict of str to str
        The docstring per qualified name.
    data : Dataset
        Features and grades of the candidates of each question: 3 is the answer, 2 also answers
        the question, 1 helps, 0 is not relevant.
    """

    questions: dict[str, str]
    documents: dict[str, str]
    data: Dataset

    def __repr__(self) -> str:
        return f"Collection({len(self.questions)} questions, {len(self.documents)} documents)"


def stdlib_collection() -> Collection:
    """Build a collection from the docstrings of the running Python's standard library.

    Queries are 48 questions with known answers; their candidates are the best 40 documents by
    BM25 and the known answers. Features are LETOR-like: term frequencies, tf-idf, BM25 and
    language models of names and texts. Building it takes about two seconds.

    Returns
    -------
    Collection
        The questions, the documents and the dataset; the documents depend on the Python version.

    Examples
    --------
    >>> import firstpage as fp
    >>> collection = fp.demo.stdlib_collection()
    >>> len(collection.questions), collection.questions["2"]
    (48, 'read the rows of a csv file')
    """
    documents = dict(_documents())
    index = {
        "name": _Field({doc: _terms(doc.replace(".", " ")) for doc in documents}),
        "text": _Field({doc: _terms(text) for doc, text in documents.items()}),
    }
    rows: list[list[float]] = []
    labels: list[float] = []
    qids: list[str] = []
    docids: list[str] = []
    for number, (question, answers) in enumerate(QUESTIONS, 1):
        terms = _terms(question)
        grade = {doc: g for g, docs in answers.items() for doc in docs if doc in documents}
        best = sorted(documents, key=lambda d: (-_bm25_both(index, terms, d), d))[:CANDIDATES]
        # Sorted by name, so that the order of rows is independent of relevance.
        for doc in sorted({*best, *grade}):
            rows.append(_features(index, terms, doc))
            labels.append(grade.get(doc, 0))
            qids.append(str(number))
            docids.append(doc)
    data = Dataset.from_arrays(
        np.array(rows, np.float32), labels, qids, docids, FEATURES, "Python's documentation"
    )
    questions = {str(n): question for n, (question, _) in enumerate(QUESTIONS, 1)}
    return Collection(questions, documents, data)


# --- documents


def _documents() -> Iterator[tuple[str, str]]:
    """Yield (qualified name, docstring) of public functions, classes and methods."""
    seen: set[int] = set()
    for module_name in MODULES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = import_module(module_name)
        except ImportError:  # a platform or build may lack one
            continue
        for name, member in _public(module):
            if not (inspect.isclass(member) or inspect.isroutine(member)) or id(member) in seen:
                continue
            defined_in = getattr(member, "__module__", None)
            if defined_in in MODULES and defined_in != module_name:  # only re-exported here
                continue
            seen.add(id(member))
            if text := _doc(member):
                yield f"{module_name}.{name}", text
            if (
                inspect.isclass(member)
                and member.__module__.split(".")[0] == module_name.split(".")[0]
            ):
                yield from _methods(module_name, name, member, seen)


def _public(module: object) -> list[tuple[str, object]]:
    """Return the public members of a module, sorted by name."""
    names: Iterable[str] = getattr(module, "__all__", None) or dir(module)
    members = [(n, getattr(module, n, None)) for n in sorted(names) if not n.startswith("_")]
    return [(n, member) for n, member in members if not inspect.ismodule(member)]


def _methods(module: str, name: str, cls: type, seen: set[int]) -> Iterator[tuple[str, str]]:
    """Yield (qualified name, docstring) of a class's own public methods and properties."""
    for key, member in sorted(vars(cls).items()):
        if key.startswith("_"):
            continue
        function = getattr(member, "__func__", member)
        if inspect.isroutine(function) or isinstance(function, property):
            if id(function) in seen:
                continue
            seen.add(id(function))
            if text := _doc(function):
                yield f"{module}.{name}.{key}", text


def _doc(member: object) -> str:
    """Return the first words of a docstring; "" if it has fewer than three."""
    raw = getattr(member, "__doc__", None)
    text = inspect.cleandoc(raw) if isinstance(raw, str) else ""
    words = text.split()
    return " ".join(words[:MAX_WORDS]) if len(words) >= 3 else ""


def _terms(text: str) -> list[str]:
    """Return stemmed lower-case words without stop words; compound names are split."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).replace("_", " ")
    words = re.findall(r"[a-z]+|[0-9]+", spaced.lower())
    return [_stem(w) for w in words if w not in STOPWORDS]


def _stem(word: str) -> str:
    """Return the word without its suffix."""
    for suffix in ("ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)] + ("y" if suffix == "ies" else "")
    return word


# --- features


class _Field:
    """A field of all documents: term counts, lengths, document and collection frequencies."""

    def __init__(self, terms: dict[str, list[str]]) -> None:
        self.counts = {doc: Counter(words) for doc, words in terms.items()}
        self.lengths = {doc: len(words) for doc, words in terms.items()}
        self.mean = sum(self.lengths.values()) / len(terms)
        frequency = Counter(t for counts in self.counts.values() for t in counts)
        n = len(terms)
        self.idf = {t: math.log(1 + (n - df + 0.5) / (df + 0.5)) for t, df in frequency.items()}
        totals: Counter[str] = Counter()
        for counts in self.counts.values():
            totals.update(counts)
        length = sum(totals.values())
        self.background = {t: c / length for t, c in totals.items()}

    def bm25(self, terms: list[str], doc: str) -> float:
        """Return the BM25 score of a document."""
        counts, score = self.counts[doc], 0.0
        norm = K1 * (1 - B + B * self.lengths[doc] / self.mean)
        for t in terms:
            if tf := counts.get(t, 0):
                score += self.idf[t] * tf * (K1 + 1) / (tf + norm)
        return score

    def features(self, terms: list[str], doc: str) -> list[float]:
        """Return the features of `PER_FIELD`."""
        counts, length = self.counts[doc], self.lengths[doc]
        tf = [counts.get(t, 0) for t in terms]
        known = [t for t in terms if t in self.background]
        dirichlet = sum(
            math.log((counts.get(t, 0) + MU * self.background[t]) / (length + MU)) for t in known
        )
        mercer = sum(
            math.log(LAMBDA * counts.get(t, 0) / max(length, 1) + (1 - LAMBDA) * self.background[t])
            for t in known
        )
        return [
            float(sum(tf)),
            sum(n * self.idf.get(t, 0.0) for t, n in zip(terms, tf, strict=True)),
            sum(n > 0 for n in tf) / max(len(terms), 1),
            self.bm25(terms, doc),
            dirichlet,
            mercer,
            float(length),
        ]


def _bm25_both(index: dict[str, _Field], terms: list[str], doc: str) -> float:
    """Return the sum of the BM25 scores of both fields."""
    return sum(index[f].bm25(terms, doc) for f in FIELDS)


def _features(index: dict[str, _Field], terms: list[str], doc: str) -> list[float]:
    """Return the features of `FEATURES`."""
    values = [v for f in FIELDS for v in index[f].features(terms, doc)]
    last = doc.rsplit(".", 1)[1]
    return [*values, float(doc.count(".")), float(last[:1].isupper())]


def baselines(data: Dataset) -> dict[str, Floats]:
    """Return the scores of rankings that need no training: single features and a sum of two."""
    X = np.asarray(data.X, np.float64)
    column = {name: X[:, i] for i, name in enumerate(FEATURES)}
    return {
        "BM25 of name and text": column["bm25_name"] + column["bm25_text"],
        "BM25 of text": column["bm25_text"],
        "language model of text": column["lm_dirichlet_text"],
        "tf-idf of text": column["tfidf_text"],
        "shortest first": -column["length_text"],
    }

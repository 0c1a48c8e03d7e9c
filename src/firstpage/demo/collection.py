"""A small real collection that every Python has: the standard library's documentation.

A few thousand short documents, four dozen questions with known answers, and LETOR-like
features.  Nothing is downloaded; a person can judge the results by eye.
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

WORDS_KEPT = 120  # of a documentation string
CANDIDATES = 40  # documents a question, by BM25, before the answers are added
_STOP = """
a an and are as at be by for from has have how in into is it its of on or that the this to when
with you your which if not can will all any each their they
"""
STOP = frozenset(_STOP.split())
K1, B = 1.2, 0.75  # BM25
MU, LAMBDA = 120.0, 0.5  # Dirichlet and Jelinek-Mercer smoothing
FIELDS = ("name", "text")
PER_FIELD = ("tf", "tfidf", "coverage", "bm25", "lm_dirichlet", "lm_jm", "length")
FEATURES = (*(f"{m}_{f}" for f in FIELDS for m in PER_FIELD), "depth", "is_class")


@dataclass(frozen=True)
class Collection:
    """Questions and documents as texts, and the candidates of each question as a Dataset."""

    questions: dict[str, str]
    documents: dict[str, str]
    data: Dataset

    def __repr__(self) -> str:
        return f"Collection({len(self.questions)} questions, {len(self.documents)} documents)"


def stdlib_collection() -> Collection:
    """Build it from the running Python; takes about two seconds."""
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
        # In the order of their names, so that the order of rows says nothing about relevance.
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
    """(qualified name, documentation) of public functions, classes and methods."""
    seen: set[int] = set()
    for module_name in MODULES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = import_module(module_name)
        except ImportError:  # a platform or build may lack one
            continue
        for name, thing in _public(module):
            if not (inspect.isclass(thing) or inspect.isroutine(thing)) or id(thing) in seen:
                continue
            home = getattr(thing, "__module__", None)
            if home in MODULES and home != module_name:  # only borrowed here
                continue
            seen.add(id(thing))
            if text := _doc(thing):
                yield f"{module_name}.{name}", text
            if (
                inspect.isclass(thing)
                and thing.__module__.split(".")[0] == module_name.split(".")[0]
            ):
                yield from _methods(module_name, name, thing, seen)


def _public(module: object) -> list[tuple[str, object]]:
    names: Iterable[str] = getattr(module, "__all__", None) or dir(module)
    found = [(n, getattr(module, n, None)) for n in sorted(names) if not n.startswith("_")]
    return [(n, thing) for n, thing in found if not inspect.ismodule(thing)]


def _methods(module: str, name: str, cls: type, seen: set[int]) -> Iterator[tuple[str, str]]:
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


def _doc(thing: object) -> str:
    """The first words of a documentation string; none for mere signatures."""
    raw = getattr(thing, "__doc__", None)
    text = inspect.cleandoc(raw) if isinstance(raw, str) else ""
    words = text.split()
    return " ".join(words[:WORDS_KEPT]) if len(words) >= 3 else ""


def _terms(text: str) -> list[str]:
    """Lower-case words, compound names split, ends cut off alike."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).replace("_", " ")
    words = re.findall(r"[a-z]+|[0-9]+", spaced.lower())
    return [_stem(w) for w in words if w not in STOP]


def _stem(word: str) -> str:
    for end in ("ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)] + ("y" if end == "ies" else "")
    return word


# --- features


class _Field:
    """One field of all documents: term counts, lengths, and how rare terms are."""

    def __init__(self, terms: dict[str, list[str]]) -> None:
        self.counts = {doc: Counter(words) for doc, words in terms.items()}
        self.lengths = {doc: len(words) for doc, words in terms.items()}
        self.mean = sum(self.lengths.values()) / len(terms)
        holders = Counter(t for counts in self.counts.values() for t in counts)
        n = len(terms)
        self.idf = {t: math.log(1 + (n - df + 0.5) / (df + 0.5)) for t, df in holders.items()}
        totals: Counter[str] = Counter()
        for counts in self.counts.values():
            totals.update(counts)
        whole = sum(totals.values())
        self.background = {t: c / whole for t, c in totals.items()}

    def bm25(self, terms: list[str], doc: str) -> float:
        counts, score = self.counts[doc], 0.0
        norm = K1 * (1 - B + B * self.lengths[doc] / self.mean)
        for t in terms:
            if tf := counts.get(t, 0):
                score += self.idf[t] * tf * (K1 + 1) / (tf + norm)
        return score

    def features(self, terms: list[str], doc: str) -> list[float]:
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
    return sum(index[f].bm25(terms, doc) for f in FIELDS)


def _features(index: dict[str, _Field], terms: list[str], doc: str) -> list[float]:
    values = [v for f in FIELDS for v in index[f].features(terms, doc)]
    last = doc.rsplit(".", 1)[1]
    return [*values, float(doc.count(".")), float(last[:1].isupper())]


def baselines(data: Dataset) -> dict[str, Floats]:
    """Rankings that need no training, for the demo: single features and a sum of two."""
    X = np.asarray(data.X, np.float64)
    column = {name: X[:, i] for i, name in enumerate(FEATURES)}
    return {
        "BM25 of name and text": column["bm25_name"] + column["bm25_text"],
        "BM25 of text": column["bm25_text"],
        "language model of text": column["lm_dirichlet_text"],
        "tf-idf of text": column["tfidf_text"],
        "shortest first": -column["length_text"],
    }

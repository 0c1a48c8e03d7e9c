"""A small real collection that is part of Python: the documentation of its standard library.

Its documents are the docstrings of modules, functions, classes and methods, and the topics of
`help()`.  Its questions have known answers (`questions.py`).  Nothing is downloaded, and a reader
can judge the results by eye.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from firstpage.core import DataError
from firstpage.data import Qrels
from firstpage.demo.questions import QUESTIONS
from firstpage.search import Queries

MODULES = tuple((Path(__file__).parent / "modules.txt").read_text("utf-8").split())
BUILTINS = "builtins"  # its names have no prefix
TOPICS = "help"  # prefix of the topics of help()

MAX_WORDS = 400  # of a document; the rest is left out
MIN_WORDS = 2  # shorter docstrings are not documents
MIN_DOCUMENTS = 3000  # fewer: this Python lacks docstrings
ANSWER = 2  # lowest grade of a document that answers a question

Document = dict[str, str | int]


@dataclass(frozen=True)
class Collection:
    """Documents, and questions with the grades of their answers.

    Attributes
    ----------
    documents : tuple of dict
        The documents: `id` (the qualified name), `title`, `words` (of the name), `text` and `level`
        (0: module or topic, 1: function or class, 2: method).
    queries : Queries
        The questions, with ids "1", "2", ..
    qrels : Qrels
        The grades of answers: 3 is the answer, 2 also answers the question, 1 helps.
    missing : tuple of str
        Answers that this Python does not have.
    unanswered : tuple of str
        Questions that are left out, because this Python has none of their answers.

    Examples
    --------
    >>> import firstpage as fp
    >>> collection = fp.demo.stdlib_collection()
    >>> len(collection.queries) > 200, len(collection.documents) > 2000
    (True, True)
    """

    documents: tuple[Document, ...]
    queries: Queries
    qrels: Qrels
    missing: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Collection({len(self.queries)} questions, {len(self.documents)} documents)"


def stdlib_collection() -> Collection:
    """Return the documentation of the running Python's standard library, with questions.

    An answer that this version of Python does not have is left out, and so is a question without
    any other answer of at least grade 2.

    Returns
    -------
    Collection
        Documents, questions and grades; they depend slightly on the version of Python, and on
        packages in this process that replace its functions (PyTorch replaces `inspect.getfile`).

    Raises
    ------
    DataError
        If Python has no docstrings (``python -OO``).

    Examples
    --------
    >>> import firstpage as fp
    >>> collection = fp.demo.stdlib_collection()
    >>> len(collection.queries), collection.queries.texts[10]
    (263, 'mkdir -p')
    """
    documents = tuple(_documents())
    if len(documents) < MIN_DOCUMENTS:
        raise DataError(
            f"this Python has only {len(documents):,} docstrings, which are the demo's documents; "
            "run it without -OO and PYTHONOPTIMIZE, with a Python that was built with docstrings."
        )
    ids = {str(document["id"]) for document in documents}
    table: dict[str, dict[str, float]] = {}
    texts: dict[str, str] = {}
    missing: set[str] = set()
    unanswered = []
    for number, (question, answers) in enumerate(QUESTIONS, 1):
        grades = {name: float(grade) for grade, names in answers.items() for name in names}
        missing |= grades.keys() - ids
        present = {name: grade for name, grade in grades.items() if name in ids}
        if max(present.values(), default=0.0) < ANSWER:
            unanswered.append(question)
            continue
        table[str(number)] = present
        texts[str(number)] = question
    queries = Queries.from_mapping(texts)
    missing_names = tuple(sorted(missing))
    return Collection(documents, queries, Qrels.from_dict(table), missing_names, tuple(unanswered))


# --- documents


def _documents() -> Iterator[Document]:
    """Yield the documents of all modules, then the topics of help()."""
    seen: set[int] = set()
    for module_name in MODULES:
        module = _standard_module(module_name)
        if module is None:
            continue
        if module_name != BUILTINS:
            yield from _document(module_name, module, level=0)
        yield from _members(module_name, module, seen)
    yield from _topics()


def _standard_module(name: str) -> ModuleType | None:
    """Return a module of the standard library; None if this Python lacks it.

    A file of the same name in the current folder, or anywhere else, is neither imported nor read.
    """
    folders = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")]
    path = sys.path
    sys.path = [p for p in path if _inside(p, folders) or p.endswith(".zip")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = import_module(name)
    except ImportError:  # a platform or build may lack one
        return None
    finally:
        sys.path = path
    file = getattr(module, "__file__", None)
    return module if file is None or _inside(file, folders) else None


def _inside(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path belongs to the standard library, not to installed packages."""
    real = os.path.realpath(path)
    inside = any(real.startswith(os.path.realpath(folder)) for folder in folders)
    return inside and not {"site-packages", "dist-packages"} & set(real.split(os.sep))


def _members(module_name: str, module: ModuleType, seen: set[int]) -> Iterator[Document]:
    """Yield the public functions and classes of a module, and the methods of its classes."""
    prefix = "" if module_name == BUILTINS else f"{module_name}."
    for name, member in _public(module):
        function = getattr(member, "__func__", member)  # random.choice is a method
        if not (inspect.isclass(member) or inspect.isroutine(member)) or id(function) in seen:
            continue
        defined_in = getattr(member, "__module__", None)
        if module_name == BUILTINS:
            if defined_in not in (BUILTINS, "io", "_io"):  # what the interactive Python adds: exit
                continue
        elif defined_in in MODULES and defined_in != module_name:  # only re-exported here
            continue
        seen.add(id(function))
        yield from _document(prefix + name, member, level=1)
        if inspect.isclass(member) and _same_package(member, module_name):
            yield from _methods(prefix + name, member, module_name, seen)


def _same_package(cls: type, module_name: str) -> bool:
    return cls.__module__.split(".")[0].lstrip("_") == module_name.split(".")[0]


def _public(module: ModuleType) -> list[tuple[str, object]]:
    """Return the public members of a module: functions first, aliases last.

    The first name of an object is its document, so that `random.shuffle` is not hidden by
    `random.Random.shuffle`, nor `OSError` by `EnvironmentError`.
    """
    names: Iterable[str] = getattr(module, "__all__", None) or dir(module)
    members = [(n, getattr(module, n, None)) for n in set(names) if not n.startswith("_")]

    def order(member: tuple[str, object]) -> tuple[bool, bool, str]:
        name, value = member
        return name != getattr(value, "__name__", name), inspect.isclass(value), name

    return sorted(((n, m) for n, m in members if not inspect.ismodule(m)), key=order)


def _methods(name: str, cls: type, module_name: str, seen: set[int]) -> Iterator[Document]:
    """Yield a class's own public methods and properties."""
    for key, member in sorted(vars(cls).items()):
        if key.startswith("_"):
            continue
        function = getattr(member, "__func__", member)
        if inspect.isroutine(function) or isinstance(function, property):
            defined_in = getattr(function, "__module__", None)
            if id(function) in seen or (defined_in in MODULES and defined_in != module_name):
                continue
            seen.add(id(function))
            yield from _document(f"{name}.{key}", function, level=2)


def _document(name: str, member: object, level: int) -> Iterator[Document]:
    """Yield the document of a docstring, if it is long enough."""
    raw = getattr(member, "__doc__", None)
    text = _shorten(inspect.cleandoc(raw)) if isinstance(raw, str) else ""
    if len(text.split()) >= MIN_WORDS:
        yield {"id": name, "title": name, "words": name_words(name), "text": text, "level": level}


def _topics() -> Iterator[Document]:
    """Yield the topics of help(): the language reference.  A Python may lack them."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        return
    for name, text in sorted(topics.items()):
        heading, _, body = text.strip().partition("\n")
        title = heading.strip().replace('"', "")
        body = body.lstrip("*=- \n")
        yield {
            "id": f"{TOPICS}/{name}",
            "title": title,
            "words": name_words(name),
            "text": _shorten(body),
            "level": 0,
        }


def _shorten(text: str) -> str:
    """Return the first words of a text, with its lines."""
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    return text if len(ends) <= MAX_WORDS else text[: ends[MAX_WORDS - 1]] + " .."


def name_words(name: str) -> str:
    """Return the words of a name: `tempfile.NamedTemporaryFile` has four."""
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3 \2", name)
    return " ".join(re.findall(r"[A-Za-z0-9]+", spaced))

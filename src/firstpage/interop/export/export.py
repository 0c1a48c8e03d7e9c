"""`fp.export`: a model as the files of another program."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from firstpage.data.io.files import write_bytes
from firstpage.errors import DataError
from firstpage.interop.export import elastic, runtimes, solr, vespa
from firstpage.interop.export.export_model import (
    ExportFiles,
    ExportModel,
    FeatureSource,
    cascade_part,
    export_features,
)
from firstpage.rankers.model_files import Model, model_of, read_model
from firstpage.registry import lookup

if TYPE_CHECKING:
    from firstpage.rankers.ranker import Ranker

FILL = "FILL_IN"
FUNCTION = re.compile(r"# feature \d+: (\".*\").*\n\s*function \w+\(\) \{\n\s*expression(.*)\n")


def places_of(given: Path, model: str, names: Iterable[str], fixed: bool) -> dict[str, Path]:
    """Into a folder; or, where the path has a suffix, the model there and the rest beside it."""
    try:
        if given.is_dir() or not given.suffix:
            given.mkdir(parents=True, exist_ok=True)
            return {name: given / name for name in names}
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{given}: cannot write there ({said}).") from None
    if fixed and given.name != model:
        raise DataError(
            f"{given}: the files name each other, and this one must be called {model}; name the "
            "model as the file, or write into a folder."
        )
    usual = Path(model).suffix
    if given.suffix.lower() != usual:
        raise DataError(f"{given}: the model is a {usual} file here; end its name in {usual}.")
    kept = [name for name in names if name not in ("README.md", model)]
    beside = {n: given.with_name(n if fixed else f"{given.stem}.{n}") for n in kept}
    return {model: given, **beside}


def write_files(files: dict[str, bytes], places: dict[str, Path], sources: list[Path]) -> None:
    """All, each in one step; none where one of them would take something away."""
    for name, place in places.items():
        if any(_same(place, source) for source in sources):
            raise DataError(f"{place}: is the model that is exported; write elsewhere (-o FOLDER).")
        lost = _lost(place, files[name]) if name.endswith((".json", ".profile")) else None
        if lost is not None:
            raise DataError(
                f"{place}: the feature {lost!r} is filled in there, and would be lost; give its "
                "definition with --features, or write elsewhere."
            )
    for name, place in places.items():
        with write_bytes(place) as out:
            out.write(files[name])


def _same(place: Path, other: Path) -> bool:
    try:
        return os.path.samefile(place, other)
    except (OSError, ValueError):
        return False


def _lost(place: Path, new: bytes) -> str | None:
    """A feature that is defined in the file of that place, and would be a template again."""
    try:
        old = place.read_bytes() if place.is_file() else b""
    except OSError:
        return None
    had, has = _defined(old), _defined(new)
    return next((name for name, filled in had.items() if filled and not has.get(name, True)), None)


def _defined(text: bytes) -> dict[str, bool]:
    """Whether each feature of a feature store, feature set or profile is filled in."""
    plain = text.decode("utf-8", "replace")
    if plain.startswith("rank-profile"):
        return {name: said.strip() != ": 0" for name, said in FUNCTION.findall(plain)}
    try:
        held = json.loads(plain)
    except (ValueError, RecursionError):
        return {}
    if isinstance(held, dict):
        held = held.get("featureset")
        held = held.get("features") if isinstance(held, dict) else None
    features = held if isinstance(held, list) else []
    return {
        str(one["name"]): FILL not in json.dumps(one)
        for one in features
        if isinstance(one, dict) and "name" in one
    }


Scaling = Literal["none", "global", "query"]
SCALINGS: tuple[Scaling, ...] = ("none", "global", "query")
UNSCALED = {"none": ", not scaled", "global": "; not scaled query by query", "query": ""}
ALL = ("linear", "network", "trees")
LIBRARIES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}


@dataclass(frozen=True)
class ExportTarget:
    """A program that models can go to.

    program   what messages call it
    make      writes its files
    about     what the files are
    kinds     the kinds of models that it takes, as `Scoring.export_kinds` has them
    scaling   the most that it can do to features: nothing, by numbers of all documents, or query
              by query, for which it must see the documents of a query together
    typed     whether a type of its input can be chosen
    """

    program: str
    make: Callable[[ExportModel], ExportFiles]
    about: str
    kinds: tuple[str, ...] = ("linear", "trees")
    scaling: Scaling = "global"
    typed: bool = False

    @property
    def takes(self) -> str:
        """What models it takes, for lists of targets."""
        kinds = {ALL: "all but cascades", ("linear", "trees"): "linear, trees, stumps"}
        return kinds.get(self.kinds, "its trees") + UNSCALED[self.scaling]

    def takes_kind(self, subject: ExportModel) -> bool:
        """Return whether it takes models of this kind."""
        return not set(self.kinds).isdisjoint(subject.scoring.export_kinds)

    def takes_scaling(self, subject: ExportModel) -> bool:
        """Return whether it can scale features as this model does."""
        scaling = "none" if subject.transform is None else subject.transform.per
        return SCALINGS.index(scaling) <= SCALINGS.index(self.scaling)


_ELASTIC = ExportTarget(
    "Elasticsearch", elastic.export_elastic,
    "LTR plugin: model/linear or model/xgboost+json, and a feature set",
)  # fmt: skip
_RANKLIB = ExportTarget(
    "Elasticsearch", elastic.export_elastic_ranklib, "LTR plugin: model/ranklib, and a feature set"
)
TARGETS: dict[str, ExportTarget] = {
    "solr": ExportTarget(
        "Solr", solr.export, "LinearModel or MultipleAdditiveTreesModel, and a feature store"
    ),
    "elasticsearch": _ELASTIC,
    "opensearch": _ELASTIC,
    "elasticsearch-ranklib": _RANKLIB,
    "opensearch-ranklib": _RANKLIB,
    "ranklib": ExportTarget("RankLib", elastic.export_ranklib, "a model file of RankLib"),
    "vespa": ExportTarget("Vespa", vespa.export, "a rank profile, the score an expression"),
    "vespa-onnx": ExportTarget(
        "Vespa", vespa.export_onnx, "a rank profile and an ONNX model", ALL, typed=True
    ),
    "onnx": ExportTarget(
        "ONNX", runtimes.export_onnx, "a graph, scaling inside", ALL, "query", typed=True
    ),
    "numpy": ExportTarget(
        "NumPy", runtimes.export_numpy, "one Python file that needs NumPy alone", ALL, "query"
    ),
    "lightgbm": ExportTarget(
        "LightGBM", runtimes.export_library, "LightGBM's own file", ("lightgbm",), "none"
    ),
    "xgboost": ExportTarget(
        "XGBoost", runtimes.export_library, "XGBoost's own file", ("xgboost",), "none"
    ),
}


def check_taken(subject: ExportModel, target: str) -> None:
    """Refuse a model that a program cannot score, and name what can be done instead."""
    to = TARGETS[target]
    if not to.takes_kind(subject):
        raise DataError(f"{subject.source} {_other_kind(subject, target)}")
    if to.takes_scaling(subject):
        return
    if to.scaling == "none":
        raise DataError(
            f"{subject.source} scales features, and a file of {to.program} cannot; export to onnx "
            "or numpy, or train without normalize."
        )
    raise DataError(
        f"{subject.source} scales features query by query, and {to.program} sees one document at "
        "a time; export to onnx or numpy, or train without normalize (or with "
        "normalize='global minmax' or 'global standard')."
    )


def _other_kind(subject: ExportModel, target: str) -> str:
    to = TARGETS[target]
    if target in LIBRARIES:
        model = subject.scoring.library_model
        grown = "no trees of a library" if model is None else f"trees of {LIBRARIES[model.library]}"
        return (
            f"has {grown}; {target} takes what {to.program} has grown "
            f"(scorer='trees(library={target})')."
        )
    able = [
        name
        for name, other in TARGETS.items()
        if other.takes_kind(subject) and other.takes_scaling(subject)
    ]
    near = [name for name in able if TARGETS[name].program == to.program]
    others = " or ".join(near or [name for name in able if TARGETS[name].scaling == "query"])
    return f"is a {subject.kind}, which {to.program} cannot score; export it to {others}."


@dataclass(frozen=True)
class Export:
    """Files for another program: `files` by name, the model's called `model`.

    fixed     they name each other, and must be called so
    sources   what was read for them, and is not written over
    """

    target: str
    name: str
    model: str
    files: dict[str, bytes]
    fixed: bool = field(default=False, repr=False)
    sources: tuple[Path, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        files = ", ".join(f"{name} ({len(held):,} bytes)" for name, held in self.files.items())
        return f"Export({self.target}, {self.name}: {files})"

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Into a folder; or, where the path has a suffix, the model there and the rest beside it.

        Each file is replaced in one step.  The model that was read is not written over, nor are
        features that were filled in.
        """
        places = places_of(Path(path), self.model, self.files, self.fixed)
        write_files(self.files, places, list(self.sources))
        return list(places.values())


def export(
    model: Ranker | Model | str | os.PathLike[str],
    to: str,
    output: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    features: FeatureSource = None,
    part: str | None = None,
    dtype: str = "float32",
) -> Export:
    """A model as the files of a search engine or another program.

    model      a fitted ranker, or its model file
    to         solr, elasticsearch, opensearch, elasticsearch-ranklib, opensearch-ranklib, ranklib,
               vespa, vespa-onnx, onnx, numpy, lightgbm or xgboost
    output     write there: a folder, or a file for the model; None: only return the files
    name       of the model in the engine; the ranker's, if not given
    features   names, or definitions of features in the engine's own form: a list, or a .txt or
               .json file of such
    part       of a cascade such as TopRank: "first", "voter 1" ..
    dtype      onnx, vespa-onnx: what its input holds, float32 or float64
    """
    target = lookup(to, {key: key for key in TARGETS}, "target")
    if dtype != "float32" and not TARGETS[target].typed:
        typed = " and ".join(sorted(name for name, to in TARGETS.items() if to.typed))
        raise DataError(f"dtype goes with {typed}; {target} has its own.")
    held = _model(model)
    scoring, transform, ranker = cascade_part(held, part)
    known = export_features(features, held.feature_names, held.n_features)
    called = _named(name, ranker)
    subject = ExportModel(called, known, scoring, transform, ranker, held.source, dtype)
    subject.check()
    check_taken(subject, target)
    made = TARGETS[target].make(subject)
    files = {**made.contents, "README.md": _readme(subject, target, made).encode()}
    read = (Path(model),) if isinstance(model, (str, os.PathLike)) else ()
    done = Export(target, called, made.model, files, made.fixed, read)
    if output is not None:
        done.save(output)
    return done


def _model(given: Ranker | Model | str | os.PathLike[str]) -> Model:
    if isinstance(given, Model):
        return given
    if isinstance(given, (str, os.PathLike)):
        return read_model(given)
    if not hasattr(given, "model_"):
        raise DataError(f"export takes a fitted ranker or a model file; got {given!r}.")
    return model_of(given)


def _named(name: str | None, ranker: str) -> str:
    """A name that can stand in an address."""
    if name is None:
        return re.sub(r"\W+", "_", ranker, flags=re.ASCII).strip("_").lower() or "model"
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise DataError(
            f"name must be of letters, digits, '_', '.' and '-', and begin with one of the first "
            f"three; got {name!r}."
        )
    return name


def _readme(subject: ExportModel, target: str, made: ExportFiles) -> str:
    """What the files are and how they are used, for somebody who has nothing else."""
    scaled = "as they come"
    if subject.transform is not None:
        over = "query by query" if subject.transform.per == "query" else "over all documents"
        scaled = f"scaled inside ({subject.transform.name}, {over})"
    lines = [
        f"# {subject.name}: a ranker for {target}",
        "",
        f"Made by Firstpage from a {subject.kind} model ({subject.ranker}). Features are {scaled}.",
        "",
        made.how,
        "",
        "Features, in the order of training:",
        "",
        *(f"{i}. `{name!r}`" for i, name in enumerate(subject.features.names, 1)),
        "",
    ]
    return "\n".join(lines)

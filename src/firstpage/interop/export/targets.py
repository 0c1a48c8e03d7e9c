"""`fp.export`: write a model as the files of another program."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from firstpage.core import Advice, DataError, lookup, warn
from firstpage.data.io import write_bytes
from firstpage.interop.export import elastic, runtimes, solr, vespa
from firstpage.interop.export.export_model import (
    ExportFiles,
    ExportModel,
    FeatureSource,
    export_features,
    is_constant,
    select_stage,
)
from firstpage.learning.models import FittedRanker, Model, as_model

PLACEHOLDER = "FILL_IN"
README = "README.md"
README_TITLE = re.compile(rb"# \S+: a ranker for [a-z-]+\r?\n")
FUNCTION = re.compile(r"# feature \d+: \"(.*)\".*\n\s*function \w+\(\) \{\n\s*expression(.*)\n")


def output_paths(
    output: str | os.PathLike[str], model: str, names: Iterable[str], fixed: bool
) -> dict[str, Path]:
    """Return the path of each file: in a folder, or beside the model's file if it has a suffix.

    A path that ends in a slash is a folder.
    """
    path = Path(output)
    try:
        if str(output).endswith((os.sep, "/")) or path.is_dir() or not path.suffix:
            path.mkdir(parents=True, exist_ok=True)
            return {name: path / name for name in names}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: cannot write there ({reason}).") from None
    if fixed and path.name != model:
        raise DataError(
            f"{path}: the files refer to each other, and this one must be called {model}; use that "
            "name, or write into a folder."
        )
    suffix = Path(model).suffix
    if path.suffix.lower() != suffix:
        raise DataError(f"{path}: the model is a {suffix} file; end its name in {suffix}.")
    others = [name for name in names if name not in (README, model)]
    beside = {n: path.with_name(n if fixed else f"{path.stem}.{n}") for n in others}
    return {model: path, **beside}


def write_files(files: dict[str, bytes], paths: dict[str, Path], sources: list[Path]) -> None:
    """Write all files atomically, or none if one of them would overwrite the user's work."""
    for name, path in paths.items():
        if any(_same(path, source) for source in sources):
            raise DataError(f"{path}: is the exported model itself; write elsewhere (-o FOLDER).")
        lost = _lost_feature(path, files[name]) if name.endswith((".json", ".profile")) else None
        if lost is not None:
            raise DataError(
                f"{path}: the feature {lost!r} is filled in there, and would be lost; write "
                "elsewhere.",
                Advice("Or give its definition with {}.", "features"),
            )
        if name == README and not _is_replaceable_readme(path):
            raise DataError(
                f"{path}: was not written by an export, and would be overwritten; write into "
                "another folder (-o FOLDER)."
            )
    for name, path in paths.items():
        with write_bytes(path) as out:
            out.write(files[name])


def _same(path: Path, other: Path) -> bool:
    """Return whether two paths are the same file."""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def _lost_feature(path: Path, new: bytes) -> str | None:
    """Return a feature that the existing file defines and the new one does not."""
    try:
        old = path.read_bytes() if path.is_file() else b""
    except OSError:
        return None
    before, after = _defined(old), _defined(new)
    return next(
        (name for name, filled in before.items() if filled and not after.get(name, False)), None
    )


def _is_replaceable_readme(path: Path) -> bool:
    """Return whether a README does not exist, or was written by an export."""
    try:
        return not path.exists() or README_TITLE.match(path.read_bytes()) is not None
    except OSError:
        return False


def _defined(content: bytes) -> dict[str, bool]:
    """Return by feature whether a feature store, feature set or profile defines it.

    The constant feature that exports add is none of the user's.
    """
    text = content.decode("utf-8", "replace")
    if text.startswith("rank-profile"):
        return {name: body.strip() != ": 0" for name, body in FUNCTION.findall(text)}
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(parsed, dict):
        parsed = parsed.get("featureset")
        parsed = parsed.get("features") if isinstance(parsed, dict) else None
    features = parsed if isinstance(parsed, list) else []
    return {
        str(feature["name"]): PLACEHOLDER not in json.dumps(feature)
        for feature in features
        if isinstance(feature, dict) and "name" in feature and not is_constant(feature)
    }


Scaling = Literal["none", "global", "query"]
SCALINGS: tuple[Scaling, ...] = ("none", "global", "query")
UNSUPPORTED = {"none": ", not scaled", "global": "; not scaled per query", "query": ""}
SINGLE_KINDS = ("linear", "network", "trees")  # which score one document at a time
ALL_KINDS = ("linear", "network", "listwise network", "trees")
LIBRARIES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}


@dataclass(frozen=True)
class ExportTarget:
    """A program to which models can be exported.

    Attributes
    ----------
    program : str
        The name of the program, for messages.
    build : callable
        Returns its files.
    output : str
        What the files are.
    kinds : tuple of str
        The kinds of models that it accepts, as in `Scoring.export_kinds`.
    scaling : {"none", "global", "query"}
        The most that it can do with features: no scaling, scaling with statistics of all
        documents, or scaling per query, for which it must see a query's documents together.
    typed : bool
        Whether the type of its input can be chosen.
    missing : bool
        Whether it distinguishes missing values from 0.
    categories : bool
        Whether it accepts features that hold categories.
    """

    program: str
    build: Callable[[ExportModel], ExportFiles]
    output: str
    kinds: tuple[str, ...] = ("linear", "trees")
    scaling: Scaling = "global"
    typed: bool = False
    missing: bool = False
    categories: bool = False

    @property
    def models(self) -> str:
        """The models that it accepts, for listings."""
        kinds = {
            ALL_KINDS: "all but cascades",
            SINGLE_KINDS: "all but cascades and attention",
            ("linear", "trees"): "linear, trees, stumps",
        }
        return kinds.get(self.kinds, "its trees") + UNSUPPORTED[self.scaling]

    def accepts_kind(self, exported: ExportModel) -> bool:
        """Return whether it accepts models of this kind."""
        return not set(self.kinds).isdisjoint(exported.scoring.export_kinds)

    def accepts_scaling(self, exported: ExportModel) -> bool:
        """Return whether it can scale features as this model does."""
        scaling = "none" if exported.transform is None else exported.transform.per
        return SCALINGS.index(scaling) <= SCALINGS.index(self.scaling)


_ELASTIC = ExportTarget(
    "Elasticsearch",
    elastic.export_elastic,
    "LTR plugin: model/linear or model/xgboost+json, and a feature set",
)
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
    "vespa": ExportTarget("Vespa", vespa.export, "a rank profile with the score as an expression"),
    "vespa-onnx": ExportTarget(
        "Vespa",
        vespa.export_onnx,
        "a rank profile and an ONNX model",
        SINGLE_KINDS,
        typed=True,
        missing=True,
    ),
    "onnx": ExportTarget(
        "ONNX",
        runtimes.export_onnx,
        "a graph, scaling included",
        ALL_KINDS,
        "query",
        typed=True,
        missing=True,
        categories=True,
    ),
    "numpy": ExportTarget(
        "NumPy",
        runtimes.export_numpy,
        "one Python file that needs NumPy alone",
        ALL_KINDS,
        "query",
        missing=True,
        categories=True,
    ),
    "lightgbm": ExportTarget(
        "LightGBM",
        runtimes.export_library,
        "LightGBM's model file",
        ("lightgbm",),
        "none",
        missing=True,
        categories=True,
    ),
    "xgboost": ExportTarget(
        "XGBoost",
        runtimes.export_library,
        "XGBoost's model file",
        ("xgboost",),
        "none",
        missing=True,
        categories=True,
    ),
}


def check_accepted(exported: ExportModel, target: str) -> None:
    """Raise an error for a model that a program cannot score; it names the alternatives."""
    program = TARGETS[target]
    if not program.accepts_kind(exported):
        raise DataError(f"{exported.source} {_other_kind(exported, target)}")
    if exported.categories and not program.categories:
        raise DataError(
            f"{exported.source} reads categories, which {program.program} does not have; export to "
            f"{_able('categories')}, or train without them."
        )
    if exported.needs_missing and not program.missing:
        advice = "train with impute='zero'" if exported.fill is not None else "train without them"
        raise DataError(
            f"{exported.source} was trained on missing values, which {program.program} reads as 0; "
            f"export to {_able('missing')}, or {advice}."
        )
    if program.accepts_scaling(exported):
        return
    if program.scaling == "none":
        raise DataError(
            f"{exported.source} scales features or fills missing ones, and a file of "
            f"{program.program} cannot; export to onnx or numpy, or train without normalize and "
            "impute."
        )
    raise DataError(
        f"{exported.source} scales features per query, and {program.program} sees one document at "
        "a time; export to onnx or numpy, or train without normalize (or with "
        "normalize='global minmax' or 'global standard')."
    )


def _able(ability: str) -> str:
    """Return the targets with an ability."""
    names = [name for name, target in TARGETS.items() if getattr(target, ability)]
    return ", ".join(names[:-1]) + f" or {names[-1]}"


def _other_kind(exported: ExportModel, target: str) -> str:
    """Return why a target cannot score this kind of model, and which targets can."""
    program = TARGETS[target].program
    if target in LIBRARIES:
        model = exported.scoring.library_model
        grown = "no trees of a library" if model is None else f"trees of {LIBRARIES[model.library]}"
        return (
            f"has {grown}; {target} accepts trees that {program} has grown "
            f"(scorer='trees(library={target})')."
        )
    able = [
        name
        for name, other in TARGETS.items()
        if other.accepts_kind(exported) and other.accepts_scaling(exported)
    ]
    same = [name for name in able if TARGETS[name].program == program]
    others = " or ".join(same or [name for name in able if TARGETS[name].scaling == "query"])
    return f"is a {exported.kind}, which {program} cannot score; export it to {others}."


@dataclass(frozen=True)
class Export:
    """The files of a model for another program.

    Attributes
    ----------
    target : str
        The target.
    name : str
        The name of the model in the target.
    model : str
        The name of the model's file.
    files : dict of str to bytes
        The contents by file name.
    fixed : bool
        Whether the files refer to each other, so that they must keep their names.
    sources : tuple of Path
        The files that were read, which `save` does not overwrite.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.Regression().fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
    >>> sorted(fp.export(ranker, "solr").files)
    ['README.md', 'features.json', 'model.json']
    """

    target: str
    name: str
    model: str
    files: dict[str, bytes]
    fixed: bool = field(default=False, repr=False)
    sources: tuple[Path, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        files = ", ".join(f"{name} ({len(data):,} bytes)" for name, data in self.files.items())
        return f"Export({self.target}, {self.name}: {files})"

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the files into a folder, or beside the model's file if the path has a suffix.

        Each file is replaced atomically.

        Parameters
        ----------
        path : path
            A folder, or the file of the model.  A path that ends in a slash is a folder.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        DataError
            If the path cannot be written, or if it would overwrite the model that was read,
            definitions of features that were filled in, or a README that is not of an export.
        """
        paths = output_paths(path, self.model, self.files, self.fixed)
        write_files(self.files, paths, list(self.sources))
        return list(paths.values())


def export(
    model: FittedRanker | Model | str | os.PathLike[str],
    to: str,
    output: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    features: FeatureSource = None,
    stage: str | None = None,
    dtype: str = "float32",
) -> Export:
    """Return a model as the files of a search engine or another program.

    Parameters
    ----------
    model : Ranker, Model or path
        A fitted ranker, or a model file.
    to : str
        The target: solr, elasticsearch, opensearch, elasticsearch-ranklib, opensearch-ranklib,
        ranklib, vespa, vespa-onnx, onnx, numpy, lightgbm or xgboost.
    output : path, optional
        Write the files there: a folder, or a file for the model.
    name : str, optional
        The name of the model in the target; by default that of the ranker.
    features : list or path, optional
        The names of the features, or their definitions in the target's format: a list, or a .txt
        or .json file.
    stage : str, optional
        The stage of a cascade such as TopRank: "first", "voter 1", ..
    dtype : {"float32", "float64"}, default "float32"
        The type of the input of onnx and vespa-onnx.

    Returns
    -------
    Export
        The files.

    Raises
    ------
    DataError
        If the target is unknown or cannot score the model, or if names or features are invalid.
    MissingDependency
        If the package onnx is needed and not installed.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.Regression().fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
    >>> fp.export(ranker, "ranklib").model
    'model.txt'
    """
    target = lookup(to, {key: key for key in TARGETS}, "target")
    if dtype != "float32" and not TARGETS[target].typed:
        typed = " and ".join(sorted(name for name, to in TARGETS.items() if to.typed))
        raise DataError(f"dtype requires {typed}; {target} has its own.")
    source_model = _model(model)
    scoring, transform, ranker = select_stage(source_model, stage)
    named = export_features(features, source_model.feature_names, source_model.n_features)
    exported = ExportModel(
        _export_name(name, ranker),
        named,
        scoring,
        transform,
        ranker,
        source_model.source,
        dtype,
        source_model.categories,
        bool(source_model.training.get("data", {}).get("missing")),
    )
    exported.check()
    check_accepted(exported, target)
    _note_encoder(source_model)
    built = TARGETS[target].build(exported)
    files = {**built.contents, README: _readme(exported, target, built).encode()}
    sources = (Path(model),) if isinstance(model, (str, os.PathLike)) else ()
    result = Export(target, exported.name, built.model, files, built.fixed, sources)
    if output is not None:
        result.save(output)
    return result


def _model(model: FittedRanker | Model | str | os.PathLike[str]) -> Model:
    """Return the model of a fitted ranker or a file."""
    if not isinstance(model, (Model, str, os.PathLike)) and not hasattr(model, "model_"):
        raise DataError(f"export takes a fitted ranker or a model file; got {model!r}.")
    return as_model(model)


def _export_name(name: str | None, ranker: str) -> str:
    """Return the name of the model in the target, which must be valid in URLs."""
    if name is None:
        return re.sub(r"\W+", "_", ranker, flags=re.ASCII).strip("_").lower() or "model"
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise DataError(
            f"name must consist of letters, digits, '_', '.' and '-', and begin with a letter, a "
            f"digit or '_'; got {name!r}."
        )
    return name


def _note_encoder(model: Model) -> None:
    """Say which encoder computes features of an exported model that depend on vectors."""
    recipe = model.training.get("data", {}).get("recipe") or {}
    record, names = recipe.get("encoder"), recipe.get("features", ())
    if record is not None:
        count = sum(name.startswith("vector.") for name in names)
        warn(
            f"{model.source}: {count} of its features are computed from vectors of "
            f"{record['name']} (digest {record['digest'][:12]}); whatever serves the export must "
            "compute these columns by the same encoder."
        )


def _readme(exported: ExportModel, target: str, built: ExportFiles) -> str:
    """Return the README: what the files are and how to use them."""
    scaled = "not scaled"
    if exported.transform is not None:
        over = "per query" if exported.transform.per == "query" else "over all documents"
        scaled = f"scaled by the model ({exported.transform.name}, {over})"
    if exported.transform is not None and exported.transform.name == "impute":
        scaled = "not scaled"
    missing = ""
    if exported.accepts_missing and TARGETS[target].missing:
        missing = " Missing values are NaN" + (
            "." if exported.fill is None else ", which the model fills."
        )
    lines = [
        f"# {exported.name}: a ranker for {target}",
        "",
        f"Exported by Firstpage from a {exported.kind} model ({exported.ranker}). "
        f"Features are {scaled}.{missing}",
        "",
        built.usage,
        "",
        "Features, in the order of the training data:",
        "",
        *(f"{i}. `{name!r}`" for i, name in enumerate(exported.features.names, 1)),
        "",
    ]
    if exported.categories:
        lines += ["A category is given as its index, counted from 0; unknown ones as NaN:", ""]
        for column, names in exported.categories.items():
            listed = json.dumps(list(names), ensure_ascii=False)
            lines.append(f"- `{exported.features.names[column]!r}`: `{listed}`")
        lines.append("")
    return "\n".join(lines)

"""DCGLearn over a folder of files gives the optimum of all pairs, on every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core.engine.threads import LocalEngine
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.data.preferences.files import (
    PreferenceFiles,
    read_preferences,
    write_preferences,
)
from firstpage.data.preferences.preferences import Preferences
from firstpage.data.runs import Qrels
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.evaluation.dcglearn.solver import MAX_FIRST_STEPS
from tests.evaluation.dcglearn.reference import random_preferences
from tests.narrow import present

CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "ties cost more": {"C_tie": 7.0},
    "decreasing": {"decreasing": True},
    "nonnegative": {"nonnegative": True},
    "strong margin": {"strong_margin": 2.0},
    "condensed": {"unjudged": "condense"},
    "few positions": {"K": 3},
    "additional grades": {"grades": range(7)},
}


def random_pairs(weighted: bool = False, with_queries: bool = True) -> Preferences:
    preferences = random_preferences(900, ties=0.2, strong=0.3)
    weight = np.random.default_rng(4).random(900) if weighted else np.ones(900)
    names = [f"q{row % 70}" for row in range(900)] if with_queries else None
    left = preferences.left.copy()
    left[::9, 2] = -1  # unjudged
    a, b = (np.where(side < 0, np.nan, side) for side in (left, preferences.right))
    return Preferences.from_grades(
        a,
        b,
        preferences.outcome,
        weight=weight,
        query=names,
        grades=range(len(preferences.grades)),
    )


def write_files(pairs: Preferences, folder: Path, suffixes: str = ".npz .jsonl .npz") -> Path:
    """Write the pairs to files of unequal sizes that share queries."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [0, 100, 420, len(pairs)]
    for number, suffix in enumerate(suffixes.split()):
        write_preferences(pairs[ends[number] : ends[number + 1]], folder / f"{number}{suffix}")
    return folder


def same_bits(a: DCGLearn, b: DCGLearn) -> bool:
    return (
        np.array_equal(a.weights_, b.weights_)
        and a.objective_ == b.objective_
        and a.agreements_ == b.agreements_
        and a.C_ == b.C_
    )


@pytest.mark.filterwarnings(
    "ignore::firstpage.core.errors.FirstpageWarning"
)  # contradictions, grades
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_fit_over_files_matches_fit_in_memory(case: str, weighted: bool, tmp_path: Path) -> None:
    pairs = random_pairs(weighted)
    learner = DCGLearn(**{"K": 10, "C": 3.0, **CASES[case]})
    in_memory = learner.with_params().fit(pairs)
    over_files = learner.with_params().fit(write_files(pairs, tmp_path / "files"))
    assert over_files.objective_ == pytest.approx(in_memory.objective_, rel=1e-12)
    assert over_files.gap_ <= 1e-9 * over_files.objective_
    np.testing.assert_allclose(over_files.weights_, in_memory.weights_, atol=1e-9)
    assert over_files.agreement().accuracy == pytest.approx(
        in_memory.agreement().accuracy, rel=1e-12
    )
    assert over_files.score(pairs) == pytest.approx(in_memory.score(pairs), rel=1e-12)
    comparable = {k: v for k, v in over_files.about().items() if isinstance(v, (int, str, bool))}
    assert comparable == {k: v for k, v in in_memory.about().items() if k in comparable}
    assert over_files.utility_.grades == in_memory.utility_.grades


@pytest.mark.parametrize("weighted", [False, True])
def test_shard_answers_do_not_depend_on_earlier_calls(weighted: bool, tmp_path: Path) -> None:
    """Shards that are opened again for every call, with other threads, give the same bits."""
    folder = write_files(random_pairs(weighted), tmp_path / "files")
    cached = DCGLearn(K=5, grid=(0.1, 10.0), folds=3).fit(folder)
    reopened = DCGLearn(K=5, grid=(0.1, 10.0), folds=3).fit(
        folder, engine=LocalEngine(1, cache_bytes=0)
    )
    assert same_bits(cached, reopened)
    assert np.array_equal(
        present(cached.validation_curve_).accuracies, present(reopened.validation_curve_).accuracies
    )


def test_hard_margin_problems_are_solved_over_files(tmp_path: Path) -> None:
    """With so large a C, pairs are exchanged one by one, and the interior-point method runs."""
    rng = np.random.default_rng(1)
    left, right = (rng.integers(0, 5, (900, 10)) for _ in range(2))
    weights = np.outer(1 / np.log2(np.arange(2, 12)), 2.0 ** np.arange(5) - 1)
    positions = np.arange(10)
    differences = (weights[positions, left] - weights[positions, right]).sum(axis=1)
    pairs = Preferences.from_grades(left, right, np.sign(differences))
    in_memory, over_files = DCGLearn(C=1e7), DCGLearn(C=1e7)
    in_memory.fit(pairs)
    over_files.fit(write_files(pairs, tmp_path / "files"))
    assert in_memory.optimum_.iterations > MAX_FIRST_STEPS  # the interior-point method ran
    assert over_files.optimum_.iterations > MAX_FIRST_STEPS
    assert over_files.objective_ == pytest.approx(in_memory.objective_, rel=1e-9)


def test_folds_keep_queries_together_across_files(tmp_path: Path) -> None:
    queries = random_pairs().query
    assert queries is not None
    pairs = random_pairs()[np.array([name == "q3" for name in queries])]
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(3):
        write_preferences(pairs[number::3], folder / f"{number}.npz")
    with pytest.warns(FirstpageWarning, match=r"C = 1: cross-validation needs .* several queries"):
        learner = DCGLearn(K=5).fit(folder)
    assert learner.C_ == 1.0


def test_c_is_cross_validated_over_files(tmp_path: Path) -> None:
    """Folds differ from those in memory, but accuracies agree within their errors."""
    pairs = random_pairs(with_queries=False)
    in_memory = DCGLearn(K=10).fit(pairs)
    over_files = DCGLearn(K=10).fit(write_files(pairs, tmp_path / "files"))
    assert in_memory.validation_curve_ is not None
    assert over_files.validation_curve_ is not None
    assert (
        over_files.validation_curve_.accuracies.shape
        == in_memory.validation_curve_.accuracies.shape
    )
    difference = np.abs(over_files.validation_curve_.means - in_memory.validation_curve_.means)
    assert (
        difference
        < 4 * np.hypot(over_files.validation_curve_.errors, in_memory.validation_curve_.errors)
    ).all()
    judged = DCGLearn(K=10).fit(tmp_path / "files", valid=pairs)
    assert present(judged.validation_curve_).means == pytest.approx(
        present(DCGLearn(K=10).fit(pairs, valid=pairs).validation_curve_).means
    )


def test_single_file_is_read_into_memory(tmp_path: Path) -> None:
    write_preferences(random_pairs(), tmp_path / "prefs.jsonl")
    assert same_bits(
        DCGLearn(C=1.0).fit(tmp_path / "prefs.jsonl"), DCGLearn(C=1.0).fit(random_pairs())
    )


def test_list_of_files_matches_folder(tmp_path: Path) -> None:
    folder = write_files(random_pairs(), tmp_path / "files")
    listed = PreferenceFiles.from_paths(sorted(folder.iterdir()))
    assert same_bits(DCGLearn(C=1.0).fit(listed), DCGLearn(C=1.0).fit(folder))


def test_lists_of_files_are_surveyed_as_in_memory(tmp_path: Path) -> None:
    """Short lists of one file lack the last position of the lists of another."""
    left, right = [[2, 1]] * 4 + [[2, 1, 3, 1]] * 2, [[1, 2]] * 4 + [[1, None, 2, 3]] * 2
    pairs = Preferences.from_grades(left, right, query=range(6))
    rows = [{"left": a, "right": b, "outcome": 1} for a, b in zip(left, right, strict=True)]
    for name, some in (("a", rows[:4]), ("b", rows[4:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in some))
    in_memory, over_files = (DCGLearn(K=3, C=1.0).fit(data) for data in (pairs, tmp_path))
    assert over_files.longest_list_ == in_memory.longest_list_ == 4
    assert over_files.unjudged_fraction_ == in_memory.unjudged_fraction_ == 10 / 36
    assert over_files.grades_ == in_memory.grades_ == (0, 1, 2, 3)


def test_contradictions_within_files_give_a_warning(tmp_path: Path) -> None:
    for name in "ab":
        rows = [([2, 0], [0, 2], 1), ([2, 0], [0, 2], -1), ([1, 0], [0, 1], 1)]
        write_preferences(
            Preferences.from_grades(*zip(*rows, strict=True)), tmp_path / f"{name}.npz"
        )
    with pytest.warns(FirstpageWarning, match="67% of the preferences are contradicted"):
        DCGLearn(K=2, C=1.0).fit(tmp_path)


def test_segments_over_files_give_a_warning(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "a.jsonl").write_text(
        '{"left": [1, 0], "right": [0, 1], "outcome": 1, "segment": "news"}\n'
        '{"left": [1, 1], "right": [0, 1], "outcome": 1}\n'
    )
    with pytest.warns(FirstpageWarning, match="segments are learned from pairs in memory only"):
        learner = DCGLearn(K=2, C=1.0).fit(tmp_path / "f")
    assert not learner.segments_


def test_attributes_that_need_pairs_in_memory_raise(tmp_path: Path) -> None:
    learner = DCGLearn(C=1.0).fit(write_files(random_pairs(), tmp_path / "files"))
    with pytest.raises(AttributeError, match="fitted over files and has no pairs_"):
        learner.regularization_path()
    in_memory = learner.fit(random_pairs())
    assert len(in_memory.pairs_)
    assert in_memory.regularization_path((1.0,))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "contains no file of preferences"),
        ({"notes.md": "x"}, r"notes\.md is not a file of preferences"),
        ({"a.jsonl": '{"left": [1], "right": [1], "outcome": 1}\n'}, "no pair has both a weight"),
        ({"a.jsonl": '{"left": [1], "right": [0], "outcome": 0}\n'}, "all pairs are ties"),
        ({"a.jsonl": '{"left": [1], "right": [0], "outcome": 7}\n'}, r"a\.jsonl:1: an outcome must be"),
        ({"a.jsonl": ""}, r"a\.jsonl: contains no pairs"),
    ],
)  # fmt: skip
def test_invalid_folders_raise(files: dict[str, str], message: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message) as error:
        DCGLearn(K=2, C=1.0).fit(tmp_path)
    assert "\n" not in str(error.value)


def test_damaged_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    write_preferences(random_pairs()[:20], path)
    content = path.read_bytes()
    compression = content.index(b"PK\x01\x02") + 10  # the number of its method
    for byte in (100, 150, 180, compression):
        damaged = bytearray(content)
        damaged[byte] ^= 0xFF
        for written in (damaged, content[:byte]):
            path.write_bytes(written)
            with pytest.raises(DataError, match=r"p\.npz: cannot be read as arrays"):
                read_preferences(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"query": np.array("q")}, r"query must have an entry per pair; its shape is \(\)"),
        ({"segment": np.array([["a"]])}, r"segment must have an entry per pair"),
        ({"left": np.array(1)}, r"left must have a row per pair; its shape is \(\)"),
    ],
)
@pytest.mark.parametrize("pool", [False, True])
def test_arrays_of_other_shapes_are_refused(
    arrays: dict[str, Any], message: str, pool: bool, tmp_path: Path
) -> None:
    sides = {"left": np.array([[1, 0]]), "right": np.array([[0, 1]])}
    np.savez(tmp_path / "p.npz", **{**sides, **({} if pool else {"outcome": [1]}), **arrays})
    with pytest.raises(DataError, match=message):
        read_preferences(tmp_path / "p.npz", pool=pool)


def test_arrays_need_no_judgments(tmp_path: Path) -> None:
    write_preferences(random_pairs()[:20], tmp_path / "p.npz")
    qrels = Qrels.from_dict({"q1": {"a": 1}})
    with pytest.raises(DataError, match=r"p\.npz: arrays contain grades, not documents"):
        read_preferences(tmp_path / "p.npz", qrels=qrels)


def test_engine_needs_a_folder() -> None:
    with pytest.raises(DataError, match="engine applies to a folder of files only"):
        DCGLearn().fit(random_pairs(), engine="threads")

"""DCGLearn over a folder of files: the optimum of all pairs, wherever each file is worked on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.data.preferences.files import PreferenceFiles, write_preferences
from firstpage.data.preferences.preferences import Preferences
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.solver import PATIENCE
from firstpage.engine.threads import Local
from firstpage.errors import DataError, FirstpageWarning
from tests.dcglearn.reference import random_preferences

CASES: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "ties cost more": {"C_tie": 7.0},
    "decreasing": {"decreasing": True},
    "nonnegative": {"nonnegative": True},
    "strong": {"strong": 2.0},
    "condensed": {"unjudged": "condense"},
    "few places": {"K": 3},
    "more grades": {"grades": range(7)},
}


def given(weighed: bool = False, named: bool = True) -> Preferences:
    found = random_preferences(900, ties=0.2, strong=0.3)
    weight = np.random.default_rng(4).random(900) if weighed else np.ones(900)
    names = [f"q{at % 70}" for at in range(900)] if named else None
    left = found.left.copy()
    left[::9, 2] = -1  # nobody judged these
    sides = (np.where(side < 0, np.nan, side) for side in (left, found.right))
    return Preferences.from_grades(
        *sides, found.outcome, weight=weight, query=names, grades=range(len(found.grades))
    )


def cut(pairs: Preferences, folder: Path, suffixes: str = ".npz .jsonl .npz") -> Path:
    """In files of unequal sizes, which share queries."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [0, 100, 420, len(pairs)]
    for at, suffix in enumerate(suffixes.split()):
        write_preferences(pairs[ends[at] : ends[at + 1]], folder / f"{at}{suffix}")
    return folder


def same_bits(a: DCGLearn, b: DCGLearn) -> bool:
    return (
        np.array_equal(a.weights_, b.weights_)
        and a.objective_ == b.objective_
        and a.matches_ == b.matches_
        and a.C_ == b.C_
    )


@pytest.mark.filterwarnings("ignore::firstpage.errors.FirstpageWarning")  # contradictions, grades
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_files_have_the_optimum_of_all_pairs(case: str, weighed: bool, tmp_path: Path) -> None:
    pairs = given(weighed)
    learner = DCGLearn(**{"K": 10, "C": 3.0, **CASES[case]})
    near = learner.with_params().fit(pairs)
    far = learner.with_params().fit(cut(pairs, tmp_path / "files"))
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-12)
    assert far.gap_ <= 1e-9 * far.objective_
    np.testing.assert_allclose(far.weights_, near.weights_, atol=1e-9)
    assert far.agreement().accuracy == pytest.approx(near.agreement().accuracy, rel=1e-12)
    assert far.score(pairs) == pytest.approx(near.score(pairs), rel=1e-12)
    told = {k: v for k, v in far.about().items() if isinstance(v, (int, str, bool))}
    assert told == {k: v for k, v in near.about().items() if k in told}
    assert far.utility_.grades == near.utility_.grades


@pytest.mark.slow
@pytest.mark.parametrize("weighed", [False, True])
def test_what_a_part_answers_does_not_depend_on_what_it_did_before(
    weighed: bool, tmp_path: Path
) -> None:
    """Parts that are made anew for every single call, and with other threads: the same bits."""
    folder = cut(given(weighed), tmp_path / "files")
    kept = DCGLearn(K=5, grid=(0.1, 10.0), folds=3).fit(folder)
    lost = DCGLearn(K=5, grid=(0.1, 10.0), folds=3).fit(folder, engine=Local(1, keep=0))
    assert same_bits(kept, lost)
    assert np.array_equal(kept.path_.accuracies, lost.path_.accuracies)


@pytest.mark.slow
def test_pairs_that_almost_all_must_be_met_are_solved_over_files_too(tmp_path: Path) -> None:
    """So large a C exchanges pairs one by one, and the interior-point method is called."""
    rng = np.random.default_rng(1)
    left, right = (rng.integers(0, 5, (900, 10)) for _ in range(2))
    worth = np.outer(1 / np.log2(np.arange(2, 12)), 2.0 ** np.arange(5) - 1)
    at = np.arange(10)
    seen = (worth[at, left] - worth[at, right]).sum(axis=1)
    pairs = Preferences.from_grades(left, right, np.sign(seen))
    near, far = DCGLearn(C=1e7), DCGLearn(C=1e7)
    near.fit(pairs)
    far.fit(cut(pairs, tmp_path / "files"))
    assert near.optimum_.rounds > PATIENCE  # else this tests nothing
    assert far.optimum_.rounds > PATIENCE
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-9)


def test_folds_keep_a_query_together_whatever_file_it_is_in(tmp_path: Path) -> None:
    one = given().query
    assert one is not None
    pairs = given()[np.array([name == "q3" for name in one])]
    folder = tmp_path / "files"
    folder.mkdir()
    for at in range(3):
        write_preferences(pairs[at::3], folder / f"{at}.npz")
    with pytest.warns(FirstpageWarning, match=r"C = 1: cross-validation needs .* several queries"):
        found = DCGLearn(K=5).fit(folder)
    assert found.C_ == 1.0


@pytest.mark.slow
def test_c_is_chosen_by_pairs_held_out(tmp_path: Path) -> None:
    """Other folds than in memory, for nobody knows all names, but as good ones."""
    pairs = given(named=False)
    near = DCGLearn(K=10).fit(pairs)
    far = DCGLearn(K=10).fit(cut(pairs, tmp_path / "files"))
    assert near.path_ is not None
    assert far.path_ is not None
    assert far.path_.accuracies.shape == near.path_.accuracies.shape
    apart = np.abs(far.path_.means - near.path_.means)
    assert (apart < 4 * np.hypot(far.path_.errors, near.path_.errors)).all()
    judged = DCGLearn(K=10).fit(tmp_path / "files", valid=pairs)
    assert judged.path_.means == pytest.approx(DCGLearn(K=10).fit(pairs, valid=pairs).path_.means)


def test_a_file_by_its_name_is_read(tmp_path: Path) -> None:
    write_preferences(given(), tmp_path / "prefs.jsonl")
    assert same_bits(DCGLearn(C=1.0).fit(tmp_path / "prefs.jsonl"), DCGLearn(C=1.0).fit(given()))


def test_files_that_are_listed(tmp_path: Path) -> None:
    folder = cut(given(), tmp_path / "files")
    listed = PreferenceFiles.from_paths(sorted(folder.iterdir()))
    assert same_bits(DCGLearn(C=1.0).fit(listed), DCGLearn(C=1.0).fit(folder))


def test_segments_are_said_not_to_be_learned(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "a.jsonl").write_text(
        '{"left": [1, 0], "right": [0, 1], "outcome": 1, "segment": "news"}\n'
        '{"left": [1, 1], "right": [0, 1], "outcome": 1}\n'
    )
    with pytest.warns(FirstpageWarning, match="segments are learned from pairs in memory only"):
        found = DCGLearn(K=2, C=1.0).fit(tmp_path / "f")
    assert not found.segments_


def test_what_needs_the_pairs_says_that_they_are_not_held(tmp_path: Path) -> None:
    found = DCGLearn(C=1.0).fit(cut(given(), tmp_path / "files"))
    with pytest.raises(AttributeError, match="learned over files, and has no pairs_"):
        found.along()
    again = found.fit(given())
    assert len(again.pairs_)
    assert again.along((1.0,))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({}, "contains no file of preferences"),
        ({"notes.md": "x"}, r"notes\.md is not a file of preferences"),
        ({"a.jsonl": '{"left": [1], "right": [1], "outcome": 1}\n'}, "no pair has both a weight"),
        ({"a.jsonl": '{"left": [1], "right": [0], "outcome": 0}\n'}, "all pairs are ties"),
        ({"a.jsonl": '{"left": [1], "right": [0], "outcome": 7}\n'}, r"a\.jsonl:1: an outcome must be"),
        ({"a.jsonl": ""}, r"a\.jsonl: contains no pairs"),
    ],
)  # fmt: skip
def test_folders_that_cannot_be_learned_from(
    made: dict[str, str], said: str, tmp_path: Path
) -> None:
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=said) as error:
        DCGLearn(K=2, C=1.0).fit(tmp_path)
    assert "\n" not in str(error.value)


def test_an_engine_goes_with_a_folder() -> None:
    with pytest.raises(DataError, match="engine goes with a folder of files"):
        DCGLearn().fit(given(), engine="threads")

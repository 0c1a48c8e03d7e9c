"""Losses and rankers of a user's own: registered, or named as module:Name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import firstpage as fp
from firstpage.core.registry import _DEFINED, ParameterError
from firstpage.core.types import Floats
from firstpage.learning.losses.registry import LOSSES
from firstpage.learning.rankers.fit.composition import Composition
from firstpage.learning.rankers.methods import METHODS
from firstpage.learning.rankers.registry import RANKERS
from firstpage.learning.solvers import objective
from tests.learning.rankers.own_module import LabelSquares, SquaresRanker, label_squares
from tests.learning.rankers.test_networks import INEXACT
from tests.narrow import instance

DATA = fp.Synthetic(queries=12, docs=8, features=4, grades=3, seed=1).dataset()
OWN = "tests.learning.rankers.own_module"
REFERENCE = fp.extend.loss("SquaredError", average=False)


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    tables: list[dict[str, Any]] = [LOSSES, METHODS, RANKERS, _DEFINED]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


def scores() -> Floats:
    return np.random.default_rng(0).normal(size=len(DATA.y))


@pytest.mark.parametrize(
    "loss",
    [LabelSquares(), label_squares, f"{OWN}:LabelSquares", f"{OWN}:label_squares"],
    ids=["class", "function", "named class", "named function"],
)
def test_value_and_gradient_are_those_of_the_same_loss(loss: Any) -> None:
    expected = REFERENCE.value_grad(scores(), DATA.truth)
    for got, want in zip(
        fp.extend.loss(loss).value_grad(scores(), DATA.truth), expected, strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("loss", [LabelSquares(), f"{OWN}:LabelSquares"], ids=str)
@pytest.mark.parametrize("scorer", ["linear", "trees(count=5)"])
def test_a_fit_is_that_of_the_same_loss(loss: Any, scorer: str) -> None:
    fits = [fp.LossRanker(loss=each, scorer=scorer).fit(DATA) for each in (loss, REFERENCE)]
    own, reference = (fit.predict(DATA) for fit in fits)
    if scorer == "linear":
        np.testing.assert_allclose(own, reference, atol=1e-4)
    else:  # the curvature is another one
        assert np.corrcoef(own, reference)[0, 1] > 0.9


NETWORK = fp.LossRanker(
    loss=f"{OWN}:LabelSquares(scale=2.0)",
    scorer="network(layers=(6,), dropout=0.1)",
    solver="adam(rate=0.01, max_iter=5)",
    threads=1,
)


@pytest.mark.torch
def test_a_network_is_fitted_tuned_and_cross_validated_as_by_the_same_loss() -> None:
    unscaled = clone(NETWORK).set_params(loss=LabelSquares())
    reference = clone(NETWORK).set_params(loss=REFERENCE)
    own, same = (
        ranker.fit(DATA[:8], valid=DATA[8:]).predict(DATA) for ranker in (unscaled, reference)
    )
    np.testing.assert_allclose(own, same, atol=1e-5)
    folds = [fp.Fold(1, datasets={"train": DATA[:8], "valid": DATA[8:], "test": DATA[8:]})]
    named = {"own": unscaled, "reference": reference}
    values = fp.cross_validate(named, folds, "NDCG@5").values
    np.testing.assert_allclose(values["own"]["NDCG@5"], values["reference"]["NDCG@5"])
    tuned = fp.tune(NETWORK, DATA[:8], DATA[8:], {"loss": [LabelSquares(0.5), LabelSquares()]})
    assert [trial.parameters["loss"].scale for trial in tuned.trials] == [0.5, 1.0]


@pytest.mark.torch
def test_scikit_learn_estimator_checks_pass_for_a_network() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(clone(NETWORK), on_skip=None, expected_failed_checks=INEXACT)
    assert len(results) > 40


def test_threads_do_not_change_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objective, "SINGLE_THREAD_BYTES", 0)  # these data are small
    monkeypatch.setattr(objective, "BLOCK_BYTES", 1)
    first, second = (fp.LossRanker(loss=LabelSquares(), threads=n).fit(DATA).coef_ for n in (1, 2))
    np.testing.assert_array_equal(first, second)


def test_a_function_is_said_to_be_slow() -> None:
    with pytest.warns(fp.FirstpageWarning, match="is a Python function that is called for every"):
        fitted = fp.LossRanker(loss=label_squares, l2=0.1).fit(DATA)
    expected = fp.LossRanker(loss=REFERENCE, l2=0.1).fit(DATA)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-4)


def test_own_losses_have_no_certificate() -> None:
    @dataclass(frozen=True)
    class Convex(LabelSquares):
        traits = fp.extend.Traits(convex=True)

    assert np.isnan(fp.LossRanker(loss=LabelSquares()).fit(DATA).gap_)
    convex = fp.LossRanker(loss=Convex()).fit(DATA)
    assert np.isnan(convex.gap_)
    assert convex.gap_note_ == "gap_ is NaN: the Hessian of the loss has no known bound."
    assert fp.LossRanker(loss=REFERENCE).fit(DATA).gap_ < 1e-3


def test_document_weights() -> None:
    weight = np.random.default_rng(1).integers(1, 3, len(DATA.y)).astype(float)
    own, reference = (
        fp.LossRanker(loss=loss, l2=0.1).fit(DATA, sample_weight=weight).coef_
        for loss in (LabelSquares(), REFERENCE)
    )
    np.testing.assert_allclose(own, reference, atol=1e-4)

    @dataclass(frozen=True)
    class Unweighted(fp.extend.Loss):
        def value_grad(self, scores: Floats, truth: fp.Truth) -> Any:  # type: ignore[override]
            return LabelSquares().value_grad(scores, truth)

    with pytest.raises(fp.DataError, match="takes no document weights"):
        fp.LossRanker(loss=Unweighted()).fit(DATA, sample_weight=weight)


def test_k_goes_to_a_loss_that_has_it() -> None:
    short, named = fp.LossRanker(k=2).fit(DATA), fp.ListMLE(k=2).fit(DATA)
    np.testing.assert_array_equal(short.coef_, named.coef_)
    with pytest.raises(fp.DataError, match="has no parameter k; leave k out"):
        fp.LossRanker(k=2, loss=LabelSquares()).fit(DATA)


# --- registration


def test_a_registered_loss_is_found_by_name() -> None:
    fp.extend.register_loss(LabelSquares, "MySquares")
    assert fp.extend.loss("my-squares(scale=3)") == LabelSquares(3)
    assert (
        fp.extend.register_loss(LabelSquares, "MySquares") is LabelSquares
    )  # again: nothing to refuse


def test_a_registered_ranker_is_found_by_name() -> None:
    fp.extend.register_ranker(SquaresRanker)
    ranker = fp.ranker("squaresranker(l2=0.5)")
    assert type(ranker) is SquaresRanker
    assert ranker.get_params()["l2"] == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fp.extend.register_loss(LabelSquares, "Cosine"),
            "there is already a loss 'Cosine'",
        ),
        (
            lambda: fp.extend.register_loss(LabelSquares, "co_sine"),
            "there is already a loss 'Cosine'",
        ),
        (lambda: fp.extend.register_ranker(SquaresRanker, "ListMLE"), "already a ranker 'ListMLE'"),
        (lambda: fp.extend.register_ranker(SquaresRanker, "TopRank"), "already a ranker 'TopRank'"),
        (
            lambda: fp.extend.register_ranker(SquaresRanker, "AdaRankMAP"),
            "AdaRank(maximize='AP'); register",
        ),
        (lambda: fp.extend.register_ranker(SquaresRanker, "TopK_PLRank"), "'TopK_PLRank': PLRank("),
        (
            lambda: fp.extend.register_ranker(SquaresRanker, "_"),
            "'_' cannot be the name of a ranker",
        ),
        (
            lambda: fp.extend.register_loss(LabelSquares, "a b"),
            "'a b' cannot be the name of a loss",
        ),
        (lambda: fp.extend.register_loss(int), "takes a class derived from fp.extend.Loss"),  # type: ignore[arg-type]
        (lambda: fp.extend.register_ranker(LabelSquares), "derived from fp.Ranker"),  # type: ignore[arg-type]
        (lambda: fp.extend.loss(f"{OWN}:Absent"), f"the module '{OWN}' has no loss 'Absent'"),
        (lambda: fp.extend.loss(f"{OWN}:ABSENT"), f"the module '{OWN}' has no loss 'ABSENT'"),
        (
            lambda: fp.extend.loss("no_such_module:X"),
            "the module 'no_such_module' cannot be imported",
        ),
        (lambda: fp.extend.loss(":X"), "cannot read ':X'"),
        (lambda: fp.extend.loss("a/b:X"), "cannot read"),
        (
            lambda: fp.extend.loss(f"{OWN}:SquaresRanker"),
            "is not a loss: it is not a subclass of Loss",
        ),
        (lambda: fp.ranker(f"{OWN}:LabelSquares"), "is not a ranker: it is not a subclass of"),
        (lambda: fp.extend.loss(3), "a loss must be its name"),  # type: ignore[arg-type]
        (lambda: fp.extend.loss(partial(max, 1)), "must be defined with def"),
        (lambda: fp.extend.loss(f"{OWN}:LabelSquares(size=2)"), "has no parameter 'size'"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        call()


def broken(result: Any) -> fp.extend.Loss:
    class Broken(fp.extend.Loss):
        def value_grad(self, scores: Floats, truth: fp.Truth, weights: Any = None) -> Any:
            return result(len(truth), len(scores))

    return Broken()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda q, n: 1.0, "the loss Broken() failed (TypeError"),
        (lambda q, n: (np.zeros(q + 1), np.zeros(n)), "must return one value per query, 1 here"),
        (
            lambda q, n: (np.zeros(q), np.zeros(3)),
            "must return one derivative per document, 8 here",
        ),
        (lambda q, n: (np.zeros(q), np.full(n, np.nan)), "returned NaN as a derivative"),
        (lambda q, n: 1 / 0, "failed (ZeroDivisionError: division by zero, test_own.py:"),
    ],
)
def test_a_broken_loss_is_one_line(result: Any, message: str) -> None:
    with pytest.raises(fp.DataError, match=re.escape(message)) as raised:
        fp.LossRanker(loss=broken(result)).fit(DATA)
    assert "\n" not in str(raised.value)


@dataclass(frozen=True)
class Wrong(LabelSquares):
    """A gradient multiplied by a factor, or without that of the first document of a query."""

    factor: float = 1.0
    first: float = 1.0

    def value_grad(self, *arguments: Any) -> Any:
        values, gradient = super().value_grad(*arguments)
        gradient = self.factor * gradient
        gradient[arguments[1].offsets[:-1]] *= self.first
        return values, gradient


def negative_squares(scores: Floats, labels: Floats) -> tuple[float, Floats]:
    return label_squares(scores, labels)[0], labels - scores


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Wrong(factor=-1.0), r"in query '1' .* is 3\.394, .* give -3\.394; reverse its sign\.$"),
        (Wrong(factor=2.0), "gradient of the loss .*Wrong.* is wrong.*correct value_grad"),
        (Wrong(factor=0.0), "is wrong"),
        (Wrong(first=0.0), "is wrong"),
        (negative_squares, "negative_squares is wrong.*reverse its sign"),
    ],
    ids=["sign", "factor", "zero", "first document", "function"],
)
@pytest.mark.parametrize(
    "options", [{}, {"scorer": "trees(count=2)"}, {"solver": "adam(max_iter=2)"}], ids=str
)
@pytest.mark.filterwarnings("ignore:the loss .* is a Python function")
def test_a_wrong_gradient_is_an_error(loss: Any, message: str, options: Any) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.LossRanker(loss=loss, **options).fit(DATA)


def test_a_wrong_gradient_of_shards_or_of_a_part_is_an_error(tmp_path: Path) -> None:
    fp.write_shards(DATA, tmp_path / "shards", rows=20)
    with pytest.raises(fp.DataError, match="reverse its sign"):
        fp.LossRanker(loss=Wrong(factor=-1.0)).fit(fp.read_shards(tmp_path / "shards"))
    focused = fp.extend.loss("Focused(k=3, beta=0.5)", pairwise=Wrong(factor=-1.0))
    with pytest.raises(fp.DataError, match="reverse its sign"):
        fp.LossRanker(loss=focused).fit(DATA)


@dataclass(frozen=True)
class Rounded(fp.extend.Loss):
    """A loss of one's own with the values of another one, perhaps in single precision."""

    name: str
    single: bool = False
    traits = fp.extend.Traits(smooth=False)

    def value_grad(
        self, scores: Floats, truth: fp.Truth, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        if self.single:
            scores = scores.astype(np.float32).astype(float)
        values, gradient = fp.extend.loss(self.name).value_grad(scores, truth)
        if self.single:
            return values.astype(np.float32), gradient.astype(np.float32)
        return values, gradient


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(
    "name", ["PairwiseHinge", "StructuralHinge", "AveragePrecisionHinge", "PlackettLuce",
             "PairwiseExponential", "Cosine", "ListNet", "SquaredError"]
)  # fmt: skip
def test_correct_gradients_of_hinges_and_of_single_precision_pass(name: str, single: bool) -> None:
    name = {"ListNet": "SoftmaxCrossEntropy"}.get(name, name)
    for seed in range(6):
        recipe = fp.Synthetic(queries=9, docs=[3, 20, 150][seed % 3], features=2, seed=seed)
        truth = recipe.dataset().truth
        Rounded(name, single).target(truth).check_derivatives()


def test_values_in_steps_need_a_loss_that_is_not_smooth() -> None:
    @dataclass(frozen=True)
    class Steps(LabelSquares):
        def value_grad(self, *arguments: Any) -> Any:
            values, gradient = super().value_grad(*arguments)
            return np.round(values / 100), gradient

    @dataclass(frozen=True)
    class Declared(Steps):
        traits = fp.extend.Traits(smooth=False, convex=False)

    @dataclass(frozen=True)
    class Random(Wrong):
        traits = fp.extend.Traits(deterministic=False)

    with pytest.raises(fp.DataError, match="is wrong"):
        Steps().target(DATA.truth).check_derivatives()
    Declared().target(DATA.truth).check_derivatives()
    Random(factor=-1.0).target(DATA.truth).check_derivatives()


@dataclass(frozen=True)
class WeightedByRank(fp.extend.Loss):
    """Pairs with weights by the current ranks, which the gradient takes as constant."""

    sign: float = 1.0
    single: bool = False

    def value_grad(self, scores: Floats, truth: fp.Truth) -> tuple[Floats, Floats]:  # type: ignore[override]
        values, gradient = np.zeros(len(truth)), np.zeros(len(scores))
        if self.single:
            scores = scores.astype(np.float32)
        for q in range(len(truth)):
            rows = slice(truth.offsets[q], truth.offsets[q + 1])
            s, gain = scores[rows], 2.0 ** truth.labels[rows]
            discount = 1 / np.log2(2 + np.argsort(np.argsort(-s, kind="stable")))
            weight = np.maximum(gain[:, None] - gain, 0) * abs(discount[:, None] - discount)
            margin = s[:, None] - s
            values[q] = (weight * np.logaddexp(0, -margin)).sum(dtype=s.dtype)
            pull = -weight / (1 + np.exp(margin))
            gradient[rows] = self.sign * (pull.sum(1) - pull.sum(0))
        return values, gradient


@pytest.mark.parametrize(("n", "seeds"), [(20, 2), (500, 2), (1000, 1)])
def test_weights_by_rank_are_constant_between_swaps(n: int, seeds: int) -> None:
    for seed in range(seeds):
        recipe = fp.Synthetic(queries=2, docs=n, features=2, grades=3, seed=seed)
        truth = recipe.dataset().truth
        WeightedByRank().target(truth).check_derivatives()
        for single in (False, True):
            with pytest.raises(fp.DataError, match="is wrong"):
                WeightedByRank(-1.0, single).target(truth).check_derivatives()


@dataclass(frozen=True)
class ApproxNDCG(fp.extend.Loss):
    """NDCG by ranks that are sums of steep sigmoids."""

    temperature: float = 1e-4

    def value_grad(self, scores: Floats, truth: fp.Truth) -> tuple[Floats, Floats]:  # type: ignore[override]
        values, gradient = np.zeros(len(truth)), np.zeros(len(scores))
        for q in range(len(truth)):
            rows = slice(truth.offsets[q], truth.offsets[q + 1])
            s, gain = scores[rows], 2.0 ** truth.labels[rows] - 1
            above = 1 / (1 + np.exp(np.clip((s[:, None] - s) / self.temperature, -500, 500)))
            np.fill_diagonal(above, 0)
            rank = 1 + above.sum(1)
            values[q] = -(gain / np.log2(1 + rank)).sum()
            by_rank = gain * np.log(2) / ((1 + rank) * np.log(1 + rank) ** 2)
            by_margin = -by_rank[:, None] * above * (1 - above) / self.temperature
            gradient[rows] = by_margin.sum(1) - by_margin.sum(0)
        return values, gradient


@pytest.mark.parametrize("n", [5, 20, 50, 200])
def test_steep_losses_pass(n: int) -> None:
    for seed in range(3):
        recipe = fp.Synthetic(queries=3, docs=n, features=2, grades=3, seed=seed)
        ApproxNDCG().target(recipe.dataset().truth).check_derivatives()


@dataclass(frozen=True)
class ConstantWeight(fp.extend.Loss):
    """A focal loss whose weight the gradient takes as constant."""

    sign: float = 1.0

    def value_grad(self, scores: Floats, truth: fp.Truth) -> tuple[Floats, Floats]:  # type: ignore[override]
        values, gradient = np.zeros(len(truth)), np.zeros(len(scores))
        for q in range(len(truth)):
            rows = slice(truth.offsets[q], truth.offsets[q + 1])
            p = np.exp(scores[rows]) / np.exp(scores[rows]).sum()
            target = truth.labels[rows] / max(truth.labels[rows].sum(), 1)
            weight = (1 - (target * p).sum()) ** 2
            values[q] = -weight * (target * np.log(p)).sum()
            gradient[rows] = self.sign * weight * (p * target.sum() - target)
        return values, gradient


def test_a_weight_taken_as_constant_needs_a_loss_that_is_not_smooth() -> None:
    @dataclass(frozen=True)
    class Declared(ConstantWeight):
        traits = fp.extend.Traits(convex=False, smooth=False)

    with pytest.raises(
        fp.DataError, match=r"declare traits = fp\.extend\.Traits\(.*smooth=False\)"
    ):
        ConstantWeight().target(DATA.truth).check_derivatives()
    with pytest.warns(fp.FirstpageWarning, match="is not that of its value") as raised:
        Declared().target(DATA.truth).check_derivatives()
    assert len(raised) == 1
    with pytest.raises(fp.DataError, match="reverse its sign"):
        Declared(-1.0).target(DATA.truth).check_derivatives()


@pytest.mark.parametrize(
    ("curvature", "message"),
    [(0.5, "that of document 1 is 0.5, and finite differences of the gradient give 1;"),
     (-1.0, "numbers of at least 0"), (np.nan, "numbers of at least 0"), (1.0, ""), (3.0, "")],
)  # fmt: skip
def test_a_curvature_that_is_too_small_is_an_error(curvature: float, message: str) -> None:
    @dataclass(frozen=True)
    class Curved(LabelSquares):
        def curvature(self, scores: Floats, *arguments: Any) -> Floats:
            return np.full(len(scores), curvature)

    ranker = fp.LossRanker(loss=Curved(), scorer="trees(count=2)")
    if not message:
        ranker.fit(DATA)
        return
    with pytest.raises(fp.DataError, match=message):
        ranker.fit(DATA)


def test_a_loss_without_a_value_is_refused() -> None:
    @dataclass(frozen=True)
    class Empty(fp.extend.Loss):
        pass

    with pytest.raises(fp.DataError, match="has no method value_grad"):
        fp.LossRanker(loss=Empty()).fit(DATA)


# --- model files


@pytest.mark.parametrize(
    "ranker",
    [
        fp.LossRanker(loss=LabelSquares(2.0)),
        fp.LossRanker(loss=f"{OWN}:LabelSquares(scale=2.0)"),
        SquaresRanker(),
        pytest.param(NETWORK, marks=pytest.mark.torch),
    ],
    ids=["loss", "text", "ranker", "network"],
)
def test_a_model_file_loads_again(ranker: fp.Ranker, tmp_path: Path) -> None:
    fitted = ranker.fit(DATA)
    fitted.save(tmp_path / "model.json")
    loaded = fp.load(tmp_path / "model.json")
    assert type(loaded) is type(fitted)
    np.testing.assert_array_equal(loaded.predict(DATA), fitted.predict(DATA))
    np.testing.assert_array_equal(loaded.fit(DATA).predict(DATA), fitted.predict(DATA))


def test_a_registered_local_class_loads_again(tmp_path: Path) -> None:
    @fp.extend.register_loss
    @dataclass(frozen=True)
    class Local(LabelSquares):
        pass

    fp.LossRanker(loss=Local(3.0)).fit(DATA).save(tmp_path / "model.json")
    loaded = fp.load(tmp_path / "model.json")
    assert instance(Composition, loaded.compose()).loss == Local(3.0)


def test_a_missing_module_is_one_line_and_scores_do_not_need_it(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    fitted = fp.LossRanker(loss=LabelSquares(2.0)).fit(DATA)
    absent = replace(fitted.loss)
    fitted.loss = f"gone.losses:{absent}"
    fitted.save(path)
    with pytest.raises(fp.DataError, match=r"'gone\.losses' cannot be imported") as raised:
        fp.load(path)
    assert "`firstpage rank` and `serve` do not need it" in str(raised.value)
    from firstpage.learning.models.model_files import read_model

    np.testing.assert_array_equal(read_model(path).predict(DATA), fitted.predict(DATA))

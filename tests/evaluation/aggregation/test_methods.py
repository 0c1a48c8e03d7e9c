"""Every method against its plain reference, on full and partial lists of small queries."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.core.registry import ParameterError
from firstpage.core.types import Ints
from firstpage.evaluation.aggregation.fusion import RRF, Borda, Fusion
from firstpage.evaluation.aggregation.methods import METHODS, method
from tests.evaluation.aggregation import reference as ref
from tests.evaluation.aggregation.cases import Query, ballots_of, random_query, some_weights, split

# text -> the order of one query (ballots, weights, n, ignore)
CASES = {
    "skr(partial=equal)": lambda b, w, n, s: ref.supervised_kemeny(b, w, n, ignore=s),
    "skr(credit=paper)": lambda b, w, n, s: ref.supervised_kemeny(b, w, n, "paper"),
    "skr(k_agg=2, partial=equal)": lambda b, w, n, s: ref.supervised_kemeny(b, w, n, k=2, ignore=s),
    "skr(credit=paper, k_agg=3)": lambda b, w, n, s: ref.supervised_kemeny(b, w, n, "paper", 3),
    "Kemeny": lambda b, w, n, s: ref.kemeny(b, w, n, s),
    "Borda": lambda b, w, n, s: ref.borda(b, w, n, s),
    "RRF": lambda b, w, n, s: ref.rrf(b, w, n),
    "RRF(c=0)": lambda b, w, n, s: ref.rrf(b, w, n, 0),
    "Copeland": lambda b, w, n, s: ref.copeland(b, w, n, s),
    "LocalKemeny": lambda b, w, n, s: ref.local_kemeny(
        ref.borda(b, w, n, s), ref.votes(b, w, n, ignore=s)
    ),
    "LocalKemeny(start=RRF)": lambda b, w, n, s: ref.local_kemeny(
        ref.rrf(b, w, n), ref.votes(b, w, n, ignore=s)
    ),
}


def random_queries(
    rng, rankers: int, partial: bool, count: int = 60, max_docs: int = 9
) -> list[Query]:
    return [
        random_query(rng, rankers, int(rng.integers(0, max_docs)), partial) for _ in range(count)
    ]


@pytest.mark.parametrize("missing", ["last", "ignore"])
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("text", CASES)
def test_orders_match_the_reference(text: str, partial: bool, missing: str) -> None:
    rng = np.random.default_rng(len(text))
    for rankers in (1, 2, 3, 5):
        queries = random_queries(rng, rankers, partial)
        ballots = ballots_of(queries, missing)
        weights = some_weights(rng, rankers)
        orders = split(ballots, method(text).order(ballots, weights))
        for query, order in zip(queries, orders, strict=True):
            expected = CASES[text](query.lists, weights.tolist(), query.n, missing == "ignore")
            assert order == expected, (query, weights)


def test_supervised_kemeny_matches_algorithm_2() -> None:
    rng = np.random.default_rng(12)
    compared = 0
    for rankers in (1, 2, 3, 4, 7):
        queries = [random_query(rng, rankers, int(rng.integers(1, 16))) for _ in range(120)]
        ballots, weights = ballots_of(queries), some_weights(rng, rankers)
        for credit in ("extended", "paper"):
            for k in (None, 1, 5):
                chosen = supervised_kemeny(credit, k)
                for query, order in zip(
                    queries, split(ballots, chosen.order(ballots, weights)), strict=True
                ):
                    w = weights.tolist()
                    assert order == ref.supervised_kemeny(query.lists, w, query.n, credit, k)
                    compared += 1
    assert compared == 3600


def supervised_kemeny(credit: str, k: int | None):
    return method("skr", credit=credit, k_agg=k)


def test_credit_modes_agree_only_with_credit_for_the_full_list() -> None:
    rng = np.random.default_rng(1)
    queries = [random_query(rng, 3, 8) for _ in range(200)]
    ballots = ballots_of(queries)
    full = [supervised_kemeny(credit, 8).order(ballots) for credit in ("extended", "paper")]
    assert (full[0] == full[1]).all()
    assert (full[0] == method("Kemeny").order(ballots)).all()
    half = [supervised_kemeny(credit, None).order(ballots) for credit in ("extended", "paper")]
    assert (half[0] != half[1]).any()


def test_printed_credit_keeps_an_uncredited_document_first() -> None:
    lists = [[1, 2, 3, 4, 5, 0], [2, 1, 3, 5, 4, 0], [1, 3, 2, 4, 5, 0]]
    ballots, weights = ballots_of([Query(6, lists)]), [0.4, 0.3, 0.3]
    assert supervised_kemeny("paper", None).order(ballots, weights)[0] == 0
    assert supervised_kemeny("extended", None).order(ballots, weights).tolist()[0] == 1


def test_supervised_kemeny_costs_at_most_twice_the_optimum() -> None:
    rng = np.random.default_rng(5)
    queries = [random_query(rng, 3, 6) for _ in range(200)]
    ballots = ballots_of(queries)
    ratio = fp.aggregation.kemeny_cost(method("skr", k_agg=6).order(ballots), ballots) / [
        ref.cheapest(ref.votes(q.lists, [1 / 3] * 3, q.n)) for q in queries
    ]
    assert ratio.max() <= 2
    assert 1 < ratio.mean() < 1.05  # not always optimal, but rarely far from it


@pytest.mark.parametrize("missing", ["last", "ignore"])
@pytest.mark.parametrize("partial", [False, True])
def test_exact_cost_is_the_minimum_over_permutations(partial: bool, missing: str) -> None:
    rng = np.random.default_rng(3)
    for rankers in (1, 2, 3, 4, 6):
        queries = random_queries(rng, rankers, partial, count=30, max_docs=7)
        ballots, weights = ballots_of(queries, missing), some_weights(rng, rankers)
        order = method("exact").order(ballots, weights)
        costs = fp.aggregation.kemeny_cost(order, ballots, weights)
        for query, cost in zip(queries, costs, strict=True):
            m = ref.votes(query.lists, weights.tolist(), query.n, ignore=missing == "ignore")
            assert cost == pytest.approx(ref.cheapest(m), abs=1e-9)


def majority_cycle(size: int, below: int = 0) -> Query:
    """Return a query with one majority cycle, and `below` further documents below it."""
    rotations = [[*range(i, size), *range(i)] for i in range(size)]
    return Query(size + below, [[*r, *range(size, size + below)] for r in rotations])


def test_exact_orders_cycles_up_to_the_limit() -> None:
    for size in (3, 9, 16):
        query = majority_cycle(size, below=70)  # more than 64 documents: more than one word of bits
        ballots = ballots_of([query])
        order = method("exact").order(ballots)
        assert order.tolist() == list(
            range(size + 70)
        )  # among equal orders the first in base order
        expected = ref.cost(order.tolist(), ref.votes(query.lists, [1 / size] * size, query.n))
        assert fp.aggregation.kemeny_cost(order, ballots)[0] == pytest.approx(expected)
    ballots = ballots_of([majority_cycle(17)])
    with pytest.raises(DataError, match="query '0': 17 documents are on common majority cycles"):
        method("exact").order(ballots)
    assert method("exact(limit=17)").order(ballots).tolist() == list(range(17))


def test_exact_searches_large_cycles_on_request() -> None:
    rng = np.random.default_rng(8)
    queries = [random_query(rng, 3, 30), majority_cycle(3), random_query(rng, 3, 7)]
    ballots = ballots_of(queries)
    chosen = method("exact(limit=8, larger=search)")
    cost = fp.aggregation.kemeny_cost(chosen.order(ballots), ballots)
    searched = fp.aggregation.kemeny_cost(method("best-insertion").order(ballots), ballots)
    assert (cost <= searched + 1e-9).all()
    small = ref.votes(queries[2].lists, [1 / 3] * 3, 7)
    assert cost[2] == pytest.approx(ref.cheapest(small))
    with pytest.raises(DataError, match="cycles"):
        method("exact(limit=8)").order(ballots)


@pytest.mark.parametrize("partial", [False, True])
def test_best_insertion_is_a_local_optimum(partial: bool) -> None:
    rng = np.random.default_rng(4)
    for rankers in (1, 3, 4):
        queries = random_queries(rng, rankers, partial, count=25)
        ballots, weights = ballots_of(queries), some_weights(rng, rankers)
        w = weights.tolist()
        order = method("BestInsertion").order(ballots, weights)
        costs = fp.aggregation.kemeny_cost(order, ballots, weights)
        for query, ordered, cost in zip(queries, split(ballots, order), costs, strict=True):
            m = ref.votes(query.lists, w, query.n)
            assert cost == pytest.approx(ref.cost(ordered, m), abs=1e-9)
            better = [o for o in ref.insertions(ordered) if ref.cost(o, m) < cost - 1e-9]
            assert not better
            completed = [[*b, *(d for d in range(query.n) if d not in b)] for b in query.lists]
            starts = [ref.borda(query.lists, w, query.n), ref.kemeny(query.lists, w, query.n)]
            if query.n:
                assert cost <= min(ref.cost(o, m) for o in [*starts, *completed]) + 1e-9


def test_best_insertion_finds_the_optimum_of_small_queries() -> None:
    rng = np.random.default_rng(6)
    queries = [random_query(rng, 3, 7) for _ in range(100)]
    ballots = ballots_of(queries)
    costs = fp.aggregation.kemeny_cost(method("BestInsertion").order(ballots), ballots)
    best = fp.aggregation.kemeny_cost(method("exact").order(ballots), ballots)
    assert np.isclose(costs, best).mean() > 0.9
    assert (costs >= best - 1e-9).all()


def test_kwik_sort_returns_the_best_repeat_and_is_seeded() -> None:
    rng = np.random.default_rng(7)
    queries = [random_query(rng, 3, 12) for _ in range(40)]
    ballots = ballots_of(queries)

    def costs(**parameters) -> np.ndarray:
        return fp.aggregation.kemeny_cost(method("KwikSort", **parameters).order(ballots), ballots)

    once, often = costs(repeats=1), costs(repeats=30)
    assert (often <= once + 1e-9).all()
    assert (often < once - 1e-9).any()
    orders = [method("kwik-sort", seed=s).order(ballots) for s in (1, 1, 2)]
    assert (orders[0] == orders[1]).all()
    assert (orders[0] != orders[2]).any()
    subset = ballots_of(queries[:5])  # a query's order does not depend on the other queries
    assert (method("KwikSort").order(subset) == method("KwikSort").order(ballots)[:60]).all()


def test_kwik_sort_orders_neighbors_by_majority() -> None:
    rng = np.random.default_rng(9)
    queries = [random_query(rng, 3, 10) for _ in range(50)]
    ballots = ballots_of(queries)
    for query, order in zip(
        queries, split(ballots, method("KwikSort(repeats=1)").order(ballots)), strict=True
    ):
        m = ref.votes(query.lists, [1 / 3] * 3, query.n)
        assert all(m[x][y] > m[y][x] for x, y in itertools.pairwise(order))


BY_VOTES = [
    name for name, cls in METHODS.items() if not issubclass(cls, Fusion) or cls in (Borda, RRF)
]  # `test_fusion` has the other ones, most of which need scores


def order_of_partial_queries(name: str) -> Ints:
    rng = np.random.default_rng(2)
    queries = [random_query(rng, 3, n, partial=True) for n in (1, 5, 7)]
    return method(name).order(ballots_of(queries), [0.5, 0.3, 0.2])


@pytest.mark.parametrize("name", BY_VOTES)
class TestEveryMethod:
    def test_one_ranker_decides_alone(self, name: str) -> None:
        rng = np.random.default_rng(2)
        queries = [random_query(rng, 1, n) for n in (1, 2, 9)]
        ballots = ballots_of(queries)
        chosen = method(name, k_agg=9) if name == "SupervisedKemeny" else method(name)
        assert split(ballots, chosen.order(ballots)) == [q.lists[0] for q in queries]

    def test_weight_on_one_ranker_alone_is_its_list(self, name: str) -> None:
        rng = np.random.default_rng(2)
        queries = [random_query(rng, 3, 8) for _ in range(5)]
        ballots = ballots_of(queries)
        chosen = method(name, k_agg=8) if name == "SupervisedKemeny" else method(name)
        assert split(ballots, chosen.order(ballots, [0, 2, 0])) == [q.lists[1] for q in queries]

    def test_empty_lists_give_base_order(self, name: str) -> None:
        ballots = ballots_of([Query(4, [[], []]), Query(0, [[], []]), Query(1, [[0], []])])
        assert method(name).order(ballots).tolist() == [0, 1, 2, 3, 0]

    def test_ballots_without_queries(self, name: str) -> None:
        ballots = fp.aggregation.Ballots.from_scores(np.zeros((2, 0)), [0])
        assert method(name).order(ballots).tolist() == []

    def test_opposite_rankers_leave_base_order(self, name: str) -> None:
        ballots = ballots_of([Query(4, [[0, 1, 2, 3], [3, 2, 1, 0]])])
        cost = fp.aggregation.kemeny_cost(method(name).order(ballots), ballots)
        assert cost[0] == pytest.approx(3.0)  # every order contradicts half of the votes
        if name not in (
            "SupervisedKemeny",
            "RRF",
        ):  # these treat the ends and the middle differently
            assert method(name).order(ballots).tolist() in ([0, 1, 2, 3], [3, 2, 1, 0])

    @pytest.fixture
    def compiled_order(self, name: str) -> Ints:
        return order_of_partial_queries(name)

    def test_interpreted_and_compiled_code_agree(
        self, name: str, compiled_order: Ints, interpreted: None
    ) -> None:
        assert (order_of_partial_queries(name) == compiled_order).all()

    def test_name_and_text_denote_the_method(self, name: str) -> None:
        assert method(name.lower()) == method(name) == method(str(method(name)))


def test_method_text_round_trips() -> None:
    for text in (
        "RRF(c=20)",
        "SupervisedKemeny(credit=paper, k_agg=5)",
        "KwikSort(seed=3)",
        "LocalKemeny(start=RRF(c=20))",
        "ExactKemeny(limit=4, larger=search)",
    ):
        assert str(method(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Bordo", "Did you mean 'Borda'"),
        ("rrf(c=-1)", "c of RRF must be a number of at least 0"),
        ("rrf(d=1)", "RRF has no parameter 'd'"),
        ("skr(credit=full)", "extended or paper"),
        ("skr(k_agg=0)", "k_agg of SupervisedKemeny must be an integer of at least 1"),
        ("exact(limit=30)", "at most 22"),
        ("exact(larger=guess)", "refuse or search"),
        ("kwiksort(repeats=0)", "repeats of KwikSort"),
        ("LocalKemeny(start=unknown)", "there is no aggregation method"),
    ],
)
def test_invalid_methods_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        method(text)


# --- Supervised Kemeny on partial lists


def test_complete_lists_vote_as_in_the_paper() -> None:
    rng = np.random.default_rng(5)
    queries = [random_query(rng, 4, n) for n in (1, 2, 7, 12, 12)]
    ballots = ballots_of(queries)
    for weights in (None, [0.4, 0.3, 0.2, 0.1]):
        order = method("skr").order(ballots, weights)
        assert (order == method("skr(partial=equal)").order(ballots, weights)).all()
        expected = [ref.supervised_kemeny(q.lists, weights or [0.25] * 4, q.n) for q in queries]
        assert split(ballots, order) == expected


@pytest.mark.parametrize("k_agg", [None, 3])
def test_partial_lists_vote_by_rank(k_agg: int | None) -> None:
    rng = np.random.default_rng(6)
    queries = [random_query(rng, 3, n, partial=True) for n in (1, 4, 8, 9, 9, 9)]
    queries[2].lists[0] = rng.permutation(8).tolist()  # one complete list among partial ones
    ballots, weights = ballots_of(queries), [0.5, 0.3, 0.2]
    order = method("skr", k_agg=k_agg, c=5).order(ballots, weights)
    expected = [
        ref.majority_sort(list(range(q.n)), ref.partial_votes(q.lists, weights, q.n, k_agg, 5))
        for q in queries
    ]
    assert split(ballots, order) == expected
    for options in ({"credit": "paper"}, {}):
        ignoring = ballots_of(queries, "ignore" if not options else "last")
        equal = method("skr", partial="equal", **options).order(ignoring)
        assert (method("skr", **options).order(ignoring) == equal).all()


def test_being_listed_outweighs_small_differences_of_rank() -> None:
    lists = [["x", "y"], ["y", "x"], ["y"], ["y"], ["x", "z", "y"], ["x", "y"], ["x", "y"]]
    ballots = fp.aggregation.Ballots.from_lists([{"q": ballot} for ballot in lists])
    assert fp.aggregation.aggregate(ballots, "skr(partial=equal)").run.docids[0] == "x"
    assert list(fp.aggregation.aggregate(ballots, "skr").run.docids) == ["y", "x", "z"]

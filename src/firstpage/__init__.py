"""Firstpage: learning to rank for the results that people see.

    import firstpage as fp

    data = fp.read_letor("test.txt")
    fp.evaluate(scores, data, measures=["NDCG@10", "kERR"])

Importing this loads nothing: every name below is fetched from its module when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from firstpage.aggregation.aggregate import Aggregation as Aggregation
    from firstpage.aggregation.aggregate import aggregate as aggregate
    from firstpage.aggregation.ballots import Ballots as Ballots
    from firstpage.aggregation.costs import kemeny_cost as kemeny_cost
    from firstpage.aggregation.costs import lower_bound as lower_bound
    from firstpage.aggregation.weights import supervised_weights as supervised_weights
    from firstpage.data.dataset import Dataset as Dataset
    from firstpage.data.describe import describe as describe
    from firstpage.data.folds import Fold as Fold
    from firstpage.data.folds import read_folds as read_folds
    from firstpage.data.folds import write_folds as write_folds
    from firstpage.data.formats.letor import read_letor as read_letor
    from firstpage.data.formats.letor import read_scores as read_scores
    from firstpage.data.formats.letor import write_letor as write_letor
    from firstpage.data.formats.letor import write_scores as write_scores
    from firstpage.data.formats.registry import read as read
    from firstpage.data.formats.registry import write as write
    from firstpage.data.formats.trec import Qrels as Qrels
    from firstpage.data.formats.trec import Run as Run
    from firstpage.data.formats.trec import read_qrels as read_qrels
    from firstpage.data.formats.trec import read_run as read_run
    from firstpage.data.formats.trec import write_qrels as write_qrels
    from firstpage.data.formats.trec import write_run as write_run
    from firstpage.data.joins import intersect as intersect
    from firstpage.data.preferences.files import PreferenceFiles as PreferenceFiles
    from firstpage.data.preferences.files import read_preferences as read_preferences
    from firstpage.data.preferences.files import write_preferences as write_preferences
    from firstpage.data.preferences.preferences import Preferences as Preferences
    from firstpage.data.preferences.utility import Utility as Utility
    from firstpage.data.preferences.utility import read_utility as read_utility
    from firstpage.data.shards.shards import Shards as Shards
    from firstpage.data.shards.shards import read_shards as read_shards
    from firstpage.data.shards.writer import write_shards as write_shards
    from firstpage.data.synthetic import Synthetic as Synthetic
    from firstpage.data.transforms import MinMax as MinMax
    from firstpage.data.transforms import Standardize as Standardize
    from firstpage.data.transforms import transform_from_dict as transform_from_dict
    from firstpage.data.truth import Truth as Truth
    from firstpage.dcglearn.active import choose as choose
    from firstpage.dcglearn.advice import advice as advice
    from firstpage.dcglearn.certificates.verdicts import verdicts as verdicts
    from firstpage.dcglearn.coherence import coherence as coherence
    from firstpage.dcglearn.intervals import intervals as intervals
    from firstpage.dcglearn.intervals import position_test as position_test
    from firstpage.dcglearn.learn import DCGLearn as DCGLearn
    from firstpage.demo.collection import stdlib_collection as stdlib_collection
    from firstpage.errors import DataError as DataError
    from firstpage.errors import FirstpageError as FirstpageError
    from firstpage.errors import FirstpageWarning as FirstpageWarning
    from firstpage.errors import MeasureError as MeasureError
    from firstpage.interop.export.export import Export as Export
    from firstpage.interop.export.export import export as export
    from firstpage.interop.read.feature_log import read_feature_log as read_feature_log
    from firstpage.interop.read.judgments import read_clicks as read_clicks
    from firstpage.interop.read.judgments import read_quepid as read_quepid
    from firstpage.interop.read.ranklib import read_ranklib as read_ranklib
    from firstpage.labeling.assessors import Chat as Chat
    from firstpage.labeling.assessors import Function as Function
    from firstpage.labeling.assessors import label as label
    from firstpage.labeling.planning.assignment import make_assignment as make_assignment
    from firstpage.labeling.session.events import Setting as Setting
    from firstpage.labeling.session.session import Session as Session
    from firstpage.labeling.statistics.study import study as study
    from firstpage.losses.registry import loss as loss
    from firstpage.measures.compare import Comparison as Comparison
    from firstpage.measures.compare import compare as compare
    from firstpage.measures.evaluate import Evaluation as Evaluation
    from firstpage.measures.evaluate import evaluate as evaluate
    from firstpage.measures.measure import Convention as Convention
    from firstpage.measures.measure import Measure as Measure
    from firstpage.measures.registry import measure as measure
    from firstpage.papers.theory.consistency import consistency as consistency
    from firstpage.papers.theory.sensitivity import order_sensitive as order_sensitive
    from firstpage.rankers.boosted import AdaRank as AdaRank
    from firstpage.rankers.boosted import FocusedBoost as FocusedBoost
    from firstpage.rankers.boosted import RankBoost as RankBoost
    from firstpage.rankers.explain import explain as explain
    from firstpage.rankers.registry import load as load
    from firstpage.rankers.registry import ranker as ranker
    from firstpage.rankers.selection.cross_validation import CrossValidation as CrossValidation
    from firstpage.rankers.selection.cross_validation import cross_validate as cross_validate
    from firstpage.rankers.selection.tuning import tune as tune
    from firstpage.rankers.smooth import FocusedNet as FocusedNet
    from firstpage.rankers.smooth import ListMLE as ListMLE
    from firstpage.rankers.smooth import ListNet as ListNet
    from firstpage.rankers.smooth import RankCosine as RankCosine
    from firstpage.rankers.smooth import RankNet as RankNet
    from firstpage.rankers.smooth import Regression as Regression
    from firstpage.rankers.svm import SVMMAP as SVMMAP
    from firstpage.rankers.svm import FocusedSVM as FocusedSVM
    from firstpage.rankers.svm import RankSVM as RankSVM
    from firstpage.rankers.svm import TopMargin as TopMargin
    from firstpage.rankers.svm import TopSlack as TopSlack
    from firstpage.rankers.toprank import TopRank as TopRank
    from firstpage.rankers.trees.lambdamart import LambdaMART as LambdaMART
    from firstpage.rankers.trees.library_objectives import metric as metric
    from firstpage.rankers.trees.library_objectives import objective as objective

_MODULES = {
    "aggregation.aggregate": ["Aggregation", "aggregate"],
    "aggregation.ballots": ["Ballots"],
    "aggregation.costs": ["kemeny_cost", "lower_bound"],
    "aggregation.weights": ["supervised_weights"],
    "data.dataset": ["Dataset"],
    "data.describe": ["describe"],
    "data.folds": ["Fold", "read_folds", "write_folds"],
    "data.formats.letor": ["read_letor", "read_scores", "write_letor", "write_scores"],
    "data.formats.registry": ["read", "write"],
    "data.formats.trec": ["Qrels", "Run", "read_qrels", "read_run", "write_qrels", "write_run"],
    "data.joins": ["intersect"],
    "data.preferences.files": ["PreferenceFiles", "read_preferences", "write_preferences"],
    "data.preferences.preferences": ["Preferences"],
    "data.preferences.utility": ["Utility", "read_utility"],
    "data.shards.shards": ["Shards", "read_shards"],
    "data.shards.writer": ["write_shards"],
    "data.synthetic": ["Synthetic"],
    "data.transforms": ["MinMax", "Standardize", "transform_from_dict"],
    "data.truth": ["Truth"],
    "dcglearn.active": ["choose"],
    "dcglearn.advice": ["advice"],
    "dcglearn.certificates.verdicts": ["verdicts"],
    "dcglearn.coherence": ["coherence"],
    "dcglearn.intervals": ["intervals", "position_test"],
    "dcglearn.learn": ["DCGLearn"],
    "demo.collection": ["stdlib_collection"],
    "errors": ["DataError", "FirstpageError", "FirstpageWarning", "MeasureError"],
    "interop.export.export": ["Export", "export"],
    "interop.read.feature_log": ["read_feature_log"],
    "interop.read.judgments": ["read_clicks", "read_quepid"],
    "interop.read.ranklib": ["read_ranklib"],
    "labeling.assessors": ["Chat", "Function", "label"],
    "labeling.planning.assignment": ["make_assignment"],
    "labeling.session.events": ["Setting"],
    "labeling.session.session": ["Session"],
    "labeling.statistics.study": ["study"],
    "losses.registry": ["loss"],
    "measures.compare": ["Comparison", "compare"],
    "measures.evaluate": ["Evaluation", "evaluate"],
    "measures.measure": ["Convention", "Measure"],
    "measures.registry": ["measure"],
    "papers.theory.consistency": ["consistency"],
    "papers.theory.sensitivity": ["order_sensitive"],
    "rankers.boosted": ["AdaRank", "FocusedBoost", "RankBoost"],
    "rankers.explain": ["explain"],
    "rankers.registry": ["load", "ranker"],
    "rankers.selection.cross_validation": ["CrossValidation", "cross_validate"],
    "rankers.selection.tuning": ["tune"],
    "rankers.smooth": ["FocusedNet", "ListMLE", "ListNet", "RankCosine", "RankNet", "Regression"],
    "rankers.svm": ["FocusedSVM", "RankSVM", "SVMMAP", "TopMargin", "TopSlack"],
    "rankers.toprank": ["TopRank"],
    "rankers.trees.lambdamart": ["LambdaMART"],
    "rankers.trees.library_objectives": ["metric", "objective"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*_MODULE_OF, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'firstpage' has no attribute {name!r}")
    value = getattr(import_module(f"firstpage.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})

from firstpage.clicks.counterfactual import ClickEvaluation as ClickEvaluation
from firstpage.clicks.counterfactual import ClickLog as ClickLog
from firstpage.clicks.counterfactual import evaluate_clicks as evaluate_clicks
from firstpage.clicks.description import LogDescription as LogDescription
from firstpage.clicks.description import describe as describe
from firstpage.clicks.experiments import ExperimentAnalysis as ExperimentAnalysis
from firstpage.clicks.experiments import analyze as analyze
from firstpage.clicks.formats.registry import FORMS as FORMS
from firstpage.clicks.formats.registry import read_sessions as read_sessions
from firstpage.clicks.formats.tables import write_sessions as write_sessions
from firstpage.clicks.interleaving import Interleaved as Interleaved
from firstpage.clicks.interleaving import interleave as interleave
from firstpage.clicks.judgments.agreement import ClickAgreement as ClickAgreement
from firstpage.clicks.judgments.counts import COUNTED as COUNTED
from firstpage.clicks.judgments.judging import judge as judge
from firstpage.clicks.judgments.result import ClickJudgments as ClickJudgments
from firstpage.clicks.judgments.shrinkage import PoissonRate as PoissonRate
from firstpage.clicks.judgments.shrinkage import shrink as shrink
from firstpage.clicks.models import CCM as CCM
from firstpage.clicks.models import DBN as DBN
from firstpage.clicks.models import DCM as DCM
from firstpage.clicks.models import PBM as PBM
from firstpage.clicks.models import UBM as UBM
from firstpage.clicks.models import Cascade as Cascade
from firstpage.clicks.models import ClickModel as ClickModel
from firstpage.clicks.models import ClickModelComparison as ClickModelComparison
from firstpage.clicks.models import ClickModelDifference as ClickModelDifference
from firstpage.clicks.models import ClickModelScore as ClickModelScore
from firstpage.clicks.models import DocumentCTR as DocumentCTR
from firstpage.clicks.models import GlobalCTR as GlobalCTR
from firstpage.clicks.models import PairValues as PairValues
from firstpage.clicks.models import RankCTR as RankCTR
from firstpage.clicks.models import SimplifiedDBN as SimplifiedDBN
from firstpage.clicks.models import click_model as click_model
from firstpage.clicks.models import compare_models as compare_models
from firstpage.clicks.models import load_model as load_model
from firstpage.clicks.models import save_model as save_model
from firstpage.clicks.page_preferences import preferences as preferences
from firstpage.clicks.policies import PolicyEstimate as PolicyEstimate
from firstpage.clicks.policies import off_policy as off_policy
from firstpage.clicks.position_bias.propensities import BY_FEATURES as BY_FEATURES
from firstpage.clicks.position_bias.propensities import METHODS as METHODS
from firstpage.clicks.position_bias.propensities import Propensities as Propensities
from firstpage.clicks.position_bias.propensities import bias_by_rank as bias_by_rank
from firstpage.clicks.position_bias.propensities import (
    estimate_propensities as estimate_propensities,
)
from firstpage.clicks.position_bias.swaps import SwapGraph as SwapGraph
from firstpage.clicks.position_bias.swaps import position_overlap as position_overlap
from firstpage.clicks.position_bias.swaps import swap_graph as swap_graph
from firstpage.clicks.position_bias.trust import TrustBias as TrustBias
from firstpage.clicks.position_bias.trust import trust_bias as trust_bias
from firstpage.clicks.safety import SafeRanking as SafeRanking
from firstpage.clicks.safety import safe_ranking as safe_ranking
from firstpage.clicks.sensitivity import ExperimentPlan as ExperimentPlan
from firstpage.clicks.sensitivity import plan_experiment as plan_experiment
from firstpage.clicks.sequences import mean_sequence as mean_sequence
from firstpage.clicks.sequences import ratio_mismatch as ratio_mismatch
from firstpage.clicks.sequences import win_sequence as win_sequence
from firstpage.clicks.sessions import Sessions as Sessions
from firstpage.clicks.sessions import concatenate as concatenate
from firstpage.clicks.sessions import grouped_ids as grouped_ids
from firstpage.clicks.simulation import SimulatedUsers as SimulatedUsers
from firstpage.clicks.simulation import simulate as simulate

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "CCM",
    "Cascade",
    "ClickAgreement",
    "ClickEvaluation",
    "ClickJudgments",
    "ClickLog",
    "ClickModel",
    "ClickModelComparison",
    "ClickModelDifference",
    "ClickModelScore",
    "DBN",
    "DCM",
    "DocumentCTR",
    "ExperimentAnalysis",
    "ExperimentPlan",
    "GlobalCTR",
    "Interleaved",
    "LogDescription",
    "PBM",
    "PairValues",
    "PolicyEstimate",
    "Propensities",
    "RankCTR",
    "SafeRanking",
    "SimplifiedDBN",
    "SimulatedUsers",
    "SwapGraph",
    "TrustBias",
    "UBM",
    "analyze",
    "click_model",
    "compare_models",
    "concatenate",
    "describe",
    "estimate_propensities",
    "evaluate_clicks",
    "interleave",
    "judge",
    "load_model",
    "mean_sequence",
    "off_policy",
    "plan_experiment",
    "position_overlap",
    "preferences",
    "ratio_mismatch",
    "safe_ranking",
    "save_model",
    "simulate",
    "swap_graph",
    "trust_bias",
    "win_sequence",
    "write_sessions",
]

from firstpage.evaluation.aggregation.aggregation import Aggregation as Aggregation
from firstpage.evaluation.aggregation.aggregation import aggregate as aggregate
from firstpage.evaluation.aggregation.aggregation import as_runs as as_runs
from firstpage.evaluation.aggregation.aggregation import default_depth as default_depth
from firstpage.evaluation.aggregation.aggregation import default_method as default_method
from firstpage.evaluation.aggregation.ballots import Ballots as Ballots
from firstpage.evaluation.aggregation.costs import kemeny_cost as kemeny_cost
from firstpage.evaluation.aggregation.costs import lower_bound as lower_bound
from firstpage.evaluation.aggregation.features import FAMILIES as FAMILIES
from firstpage.evaluation.aggregation.features import check_families as check_families
from firstpage.evaluation.aggregation.features import fusion_features as fusion_features
from firstpage.evaluation.aggregation.fusion_tuning import TunedFusion as TunedFusion
from firstpage.evaluation.aggregation.fusion_tuning import candidate_fusions as candidate_fusions
from firstpage.evaluation.aggregation.fusion_tuning import tune_fusion as tune_fusion
from firstpage.evaluation.aggregation.fusion_tuning import weight_drawing as weight_drawing
from firstpage.evaluation.aggregation.methods import METHODS as METHODS
from firstpage.evaluation.aggregation.methods import Credit as Credit
from firstpage.evaluation.aggregation.methods import SupervisedKemeny as SupervisedKemeny
from firstpage.evaluation.aggregation.methods import method as method
from firstpage.evaluation.aggregation.methods import with_normalization as with_normalization
from firstpage.evaluation.aggregation.stage_fusion import StageFusion as StageFusion
from firstpage.evaluation.aggregation.tuning import HeldOut as HeldOut
from firstpage.evaluation.aggregation.tuning import TunedMethod as TunedMethod
from firstpage.evaluation.aggregation.tuning import check_tuned_measure as check_tuned_measure
from firstpage.evaluation.aggregation.tuning import fold_of_query as fold_of_query
from firstpage.evaluation.aggregation.tuning import query_values as query_values
from firstpage.evaluation.aggregation.tuning import tune_method as tune_method
from firstpage.evaluation.aggregation.weights import MeasuredWeights as MeasuredWeights
from firstpage.evaluation.aggregation.weights import normalize_weights as normalize_weights
from firstpage.evaluation.aggregation.weights import supervised_weights as supervised_weights

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "Aggregation",
    "Ballots",
    "HeldOut",
    "StageFusion",
    "TunedFusion",
    "TunedMethod",
    "aggregate",
    "candidate_fusions",
    "kemeny_cost",
    "lower_bound",
    "supervised_weights",
    "tune_fusion",
    "tune_method",
]

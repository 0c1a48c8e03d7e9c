from firstpage.evaluation.planning.baseline import Baseline as Baseline
from firstpage.evaluation.planning.baseline import fingerprint as fingerprint
from firstpage.evaluation.planning.bounded_mean import BoundedSample as BoundedSample
from firstpage.evaluation.planning.combination import Combination as Combination
from firstpage.evaluation.planning.combination import SourceWeight as SourceWeight
from firstpage.evaluation.planning.combination import combine as combine
from firstpage.evaluation.planning.document_sample import DocumentSample as DocumentSample
from firstpage.evaluation.planning.document_sample import document_mean as document_mean
from firstpage.evaluation.planning.estimates import Estimate as Estimate
from firstpage.evaluation.planning.estimates import Estimates as Estimates
from firstpage.evaluation.planning.estimates import estimate as estimate
from firstpage.evaluation.planning.pool import PoolReport as PoolReport
from firstpage.evaluation.planning.pool import check_pool as check_pool
from firstpage.evaluation.planning.prediction_powered import powered_mean as powered_mean
from firstpage.evaluation.planning.query_plan import DEFAULT_DIFFERENCES as DEFAULT_DIFFERENCES
from firstpage.evaluation.planning.query_plan import Plan as Plan
from firstpage.evaluation.planning.query_plan import plan as plan
from firstpage.evaluation.planning.query_sample import QuerySample as QuerySample
from firstpage.evaluation.planning.release_gate import Gate as Gate
from firstpage.evaluation.planning.release_gate import gate as gate
from firstpage.evaluation.planning.undecided import UnjudgedEffect as UnjudgedEffect
from firstpage.evaluation.planning.undecided import unjudged_effect as unjudged_effect

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "Baseline",
    "Combination",
    "DocumentSample",
    "Estimate",
    "Estimates",
    "Gate",
    "Plan",
    "PoolReport",
    "QuerySample",
    "SourceWeight",
    "UnjudgedEffect",
    "check_pool",
    "combine",
    "estimate",
    "gate",
    "plan",
    "unjudged_effect",
]

from firstpage.data.preferences.files import read_preferences as read_preferences
from firstpage.data.preferences.files import write_preferences as write_preferences
from firstpage.data.preferences.preferences import Preferences as Preferences
from firstpage.data.preferences.utility import Utility as Utility
from firstpage.data.preferences.utility import read_utility as read_utility
from firstpage.evaluation.dcglearn.active import Strategy as Strategy
from firstpage.evaluation.dcglearn.active import choose as choose
from firstpage.evaluation.dcglearn.advisor import MIN_ADAPTIVE_PAIRS as MIN_ADAPTIVE_PAIRS
from firstpage.evaluation.dcglearn.advisor import DCGComparison as DCGComparison
from firstpage.evaluation.dcglearn.advisor import LearningCurve as LearningCurve
from firstpage.evaluation.dcglearn.advisor import advice as advice
from firstpage.evaluation.dcglearn.advisor import compare_with_dcg as compare_with_dcg
from firstpage.evaluation.dcglearn.certificates.verdicts import Certificate as Certificate
from firstpage.evaluation.dcglearn.certificates.verdicts import Verdict as Verdict
from firstpage.evaluation.dcglearn.certificates.verdicts import Witness as Witness
from firstpage.evaluation.dcglearn.certificates.verdicts import verdicts as verdicts
from firstpage.evaluation.dcglearn.certificates.verdicts import (
    verdicts_of_rankings as verdicts_of_rankings,
)
from firstpage.evaluation.dcglearn.confidence import Intervals as Intervals
from firstpage.evaluation.dcglearn.confidence import intervals as intervals
from firstpage.evaluation.dcglearn.confidence import position_test as position_test
from firstpage.evaluation.dcglearn.learn import DEFAULT_C as DEFAULT_C
from firstpage.evaluation.dcglearn.learn import DCGLearn as DCGLearn
from firstpage.evaluation.dcglearn.measure_coherence import Coherence as Coherence
from firstpage.evaluation.dcglearn.measure_coherence import coherence as coherence
from firstpage.evaluation.dcglearn.measure_coherence import (
    coherence_of_rankings as coherence_of_rankings,
)
from firstpage.evaluation.dcglearn.measure_coherence import list_agreement as list_agreement
from firstpage.evaluation.dcglearn.measure_coherence import list_values as list_values
from firstpage.evaluation.dcglearn.pairs import Pairs as Pairs
from firstpage.evaluation.dcglearn.pairs import encode as encode
from firstpage.evaluation.dcglearn.pairs import truncation_notes as truncation_notes
from firstpage.evaluation.dcglearn.pairs import unjudged_notes as unjudged_notes
from firstpage.evaluation.dcglearn.simulation import DIFFERENCE_TOLERANCE as DIFFERENCE_TOLERANCE
from firstpage.evaluation.dcglearn.simulation import GRADES as GRADES
from firstpage.evaluation.dcglearn.simulation import OTHER_LIST as OTHER_LIST
from firstpage.evaluation.dcglearn.simulation import TEST_PAIRS as TEST_PAIRS
from firstpage.evaluation.dcglearn.simulation import VALID_PAIRS as VALID_PAIRS
from firstpage.evaluation.dcglearn.simulation import PreferenceSimulator as PreferenceSimulator
from firstpage.evaluation.dcglearn.simulation import fit_learner as fit_learner
from firstpage.evaluation.dcglearn.simulation import randomize_grades as randomize_grades
from firstpage.evaluation.dcglearn.simulation import reverse_pairs as reverse_pairs
from firstpage.evaluation.dcglearn.simulation import simulate as simulate
from firstpage.evaluation.dcglearn.simulation import utility_accuracy as utility_accuracy
from firstpage.evaluation.dcglearn.simulation import zhou_simulator as zhou_simulator
from firstpage.evaluation.dcglearn.solver import Optimum as Optimum
from firstpage.evaluation.dcglearn.solver import solve as solve
from firstpage.evaluation.dcglearn.sums import PairSums as PairSums
from firstpage.evaluation.dcglearn.system_rankings import SystemRankings as SystemRankings
from firstpage.evaluation.dcglearn.system_rankings import parse_dcg as parse_dcg
from firstpage.evaluation.dcglearn.validation import differences as differences
from firstpage.evaluation.dcglearn.weights import similarity as similarity
from firstpage.evaluation.dcglearn.weights import weight_cone as weight_cone

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "LearningCurve",
    "Coherence",
    "DCGLearn",
    "Intervals",
    "Preferences",
    "Utility",
    "Verdict",
    "advice",
    "choose",
    "coherence",
    "intervals",
    "position_test",
    "read_preferences",
    "read_utility",
    "similarity",
    "verdicts",
    "write_preferences",
]

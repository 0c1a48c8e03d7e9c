from firstpage.core.http import RateLimiter as RateLimiter
from firstpage.labeling.assessors import Assessor as Assessor
from firstpage.labeling.assessors import AssessorAnswer as AssessorAnswer
from firstpage.labeling.assessors import DocumentText as DocumentText
from firstpage.labeling.assessors import Function as Function
from firstpage.labeling.assessors import QueryText as QueryText
from firstpage.labeling.assessors import label as label
from firstpage.labeling.belief import utilities as utilities
from firstpage.labeling.belief.choice import pair_gains as pair_gains
from firstpage.labeling.belief.utilities import Utilities as Utilities
from firstpage.labeling.belief.utilities import bradley_terry as bradley_terry
from firstpage.labeling.machines.calibration import calibrate as calibrate
from firstpage.labeling.machines.calibration_result import MachineCalibration as MachineCalibration
from firstpage.labeling.machines.chat import Chat as Chat
from firstpage.labeling.machines.chat import Conflicts as Conflicts
from firstpage.labeling.machines.limits import Budget as Budget
from firstpage.labeling.machines.prompts import DEFAULT_RUBRIC as DEFAULT_RUBRIC
from firstpage.labeling.machines.prompts import Example as Example
from firstpage.labeling.machines.prompts import Rubric as Rubric
from firstpage.labeling.planning.assignment import Assignment as Assignment
from firstpage.labeling.planning.assignment import make_assignment as make_assignment
from firstpage.labeling.pooling import pool as pool
from firstpage.labeling.report import simulation_page as simulation_page
from firstpage.labeling.report import study_page as study_page
from firstpage.labeling.rerank.list_assessors import ChatListAssessor as ChatListAssessor
from firstpage.labeling.rerank.list_assessors import FunctionListAssessor as FunctionListAssessor
from firstpage.labeling.rerank.list_assessors import ListAssessor as ListAssessor
from firstpage.labeling.rerank.list_assessors import document_text as document_text
from firstpage.labeling.rerank.list_assessors import load_list_assessor as load_list_assessor
from firstpage.labeling.rerank.reranker import SIZES as SIZES
from firstpage.labeling.rerank.reranker import Reranker as Reranker
from firstpage.labeling.rerank.reranker import Reranking as Reranking
from firstpage.labeling.session.events import DEFAULT_STRATEGY as DEFAULT_STRATEGY
from firstpage.labeling.session.events import RATES as RATES
from firstpage.labeling.session.events import Setting as Setting
from firstpage.labeling.session.session import Session as Session
from firstpage.labeling.simulation.simulate import Responder as Responder
from firstpage.labeling.simulation.simulate import SimulatedQueries as SimulatedQueries
from firstpage.labeling.simulation.simulate import Simulation as Simulation
from firstpage.labeling.simulation.simulate import run_strategy as run_strategy
from firstpage.labeling.simulation.simulate import simulate as simulate
from firstpage.labeling.simulation.votes import Votes as Votes
from firstpage.labeling.simulation.votes import read_votes as read_votes
from firstpage.labeling.statistics.agreement import Agreement as Agreement
from firstpage.labeling.statistics.agreement import ChiSquared as ChiSquared
from firstpage.labeling.statistics.agreement import by_query as by_query
from firstpage.labeling.statistics.agreement import chi_squared as chi_squared
from firstpage.labeling.statistics.agreement import compare_methods as compare_methods
from firstpage.labeling.statistics.agreement import result_overlaps as result_overlaps
from firstpage.labeling.statistics.agreement import total as total
from firstpage.labeling.statistics.consistency import position_bias as position_bias
from firstpage.labeling.statistics.consistency import self_consistency as self_consistency
from firstpage.labeling.statistics.effort import SECONDS_PER_JUDGMENT as SECONDS_PER_JUDGMENT
from firstpage.labeling.statistics.kappa import fleiss_kappa as fleiss_kappa
from firstpage.labeling.statistics.kappa import krippendorff_alpha as krippendorff_alpha
from firstpage.labeling.statistics.profiles import AssessorProfile as AssessorProfile
from firstpage.labeling.statistics.profiles import assessor_profiles as assessor_profiles
from firstpage.labeling.statistics.records import Labels as Labels
from firstpage.labeling.statistics.records import Record as Record
from firstpage.labeling.statistics.records import read_records as read_records
from firstpage.labeling.statistics.records import read_results as read_results
from firstpage.labeling.statistics.relations import top_labels as top_labels
from firstpage.labeling.statistics.study import Study as Study
from firstpage.labeling.statistics.study import study as study
from firstpage.labeling.strategies.adaptive import Adaptive as Adaptive
from firstpage.labeling.strategies.adaptive import Refined as Refined
from firstpage.labeling.strategies.registry import strategy as strategy
from firstpage.labeling.strategies.strategy import Answer as Answer
from firstpage.labeling.strategies.strategy import Compare as Compare
from firstpage.labeling.strategies.strategy import Grade as Grade
from firstpage.labeling.strategies.strategy import Question as Question
from firstpage.labeling.strategies.strategy import TopKTask as TopKTask

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "Agreement",
    "Assignment",
    "Chat",
    "ChatListAssessor",
    "ChiSquared",
    "Function",
    "FunctionListAssessor",
    "MachineCalibration",
    "Record",
    "Reranker",
    "Reranking",
    "Rubric",
    "Session",
    "Setting",
    "Simulation",
    "Study",
    "Votes",
    "calibrate",
    "chi_squared",
    "compare_methods",
    "fleiss_kappa",
    "krippendorff_alpha",
    "label",
    "load_list_assessor",
    "make_assignment",
    "pool",
    "position_bias",
    "read_records",
    "read_results",
    "read_votes",
    "self_consistency",
    "simulate",
    "strategy",
    "study",
]

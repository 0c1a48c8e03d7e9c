from firstpage.evaluation.comparison.compare_systems import compare as compare
from firstpage.evaluation.comparison.comparison import TIE_TOLERANCE as TIE_TOLERANCE
from firstpage.evaluation.comparison.comparison import Comparison as Comparison
from firstpage.evaluation.comparison.comparison import Difference as Difference
from firstpage.evaluation.comparison.comparison import (
    differences_of_systems as differences_of_systems,
)
from firstpage.evaluation.comparison.ranking import SystemRanks as SystemRanks
from firstpage.evaluation.comparison.ranking import rank_systems as rank_systems
from firstpage.evaluation.comparison.segments import Segments as Segments
from firstpage.evaluation.comparison.segments import compare_segments as compare_segments
from firstpage.evaluation.comparison.wins import WinsAndLosses as WinsAndLosses
from firstpage.evaluation.comparison.wins import wins_and_losses as wins_and_losses

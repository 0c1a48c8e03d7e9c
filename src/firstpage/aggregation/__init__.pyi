from firstpage.aggregation.aggregation import Aggregation as Aggregation
from firstpage.aggregation.aggregation import aggregate as aggregate
from firstpage.aggregation.ballots import Ballots as Ballots
from firstpage.aggregation.costs import kemeny_cost as kemeny_cost
from firstpage.aggregation.costs import lower_bound as lower_bound
from firstpage.aggregation.weights import supervised_weights as supervised_weights

from firstpage.evaluation import aggregation as aggregation
from firstpage.evaluation import dcglearn as dcglearn

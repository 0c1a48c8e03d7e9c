from firstpage.core.kernels.parsing import letor as letor
from firstpage.core.kernels.parsing import trec as trec
from firstpage.core.kernels.parsing.letor import scatter as scatter
from firstpage.core.kernels.parsing.numbers import fallback_number as fallback_number
from firstpage.core.kernels.parsing.numbers import number_tables as number_tables

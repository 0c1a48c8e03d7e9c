from firstpage.learning.clicks.relevance import CORRECTIONS as CORRECTIONS
from firstpage.learning.clicks.relevance import DISPLAYS as DISPLAYS
from firstpage.learning.clicks.training import ClickTraining as ClickTraining
from firstpage.learning.clicks.training import from_clicks as from_clicks

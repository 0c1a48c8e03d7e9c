"""Model files: what reads them, scores and explains, without rankers and scikit-learn.

    file ──read_model──▶ Model ──stage_for(data)──▶ Stage (columns, scaling, scoring) ──▶ scores

`model_files.py` has the format, `scorings.py` stages and cascades of them, `finite_values.py` the
checks of features and scores, `distributions.py` those of the training data, and `explanation.py`
the importance of each feature.
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)

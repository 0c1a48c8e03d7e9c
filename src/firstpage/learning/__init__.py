"""Rankers, and what they are made of: losses, scorers and solvers; on CPUs, GPUs and clusters.

::

    X ──scorer──▶ scores ──loss──▶ one value per query ──solver──▶ parameters ──▶ a model
    parameters ◀──vjp── gradient ◀────┘        Truth ──▲

A loss depends on scores and truth, never on features; a scorer on features, never on truth.  A
ranker is an estimator of scikit-learn: it declares its parameters, and `compose` returns the loss,
scorer, solver, penalty and device that they mean.  Validation of the arguments, training data and
fits are functions.  What scores with a model file (models/) needs no ranker and no scikit-learn.

To change                                   open
------------------------------------------  -----------------------------------------------------
a ranker                                    rankers/smooth.py, rankers/svm.py, rankers/direct.py, ..
how a ranker learns                         rankers/fit/composition.py, rankers/fit/fit.py
what `fit` accepts and checks               rankers/fit/inputs.py, rankers/fit/preparation.py
model files, scores and explanations        models/
choice of parameters, cross-validation      rankers/selection/
trees of LightGBM and XGBoost               rankers/trees/
training on shards and clusters             rankers/sharded/
training data from clicks                   clicks/
a loss                                      losses/
a function of features                      scorers/
a minimization algorithm                    solvers/
losses and measures in PyTorch              torch/
kernels of GPUs                             gpu/
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)

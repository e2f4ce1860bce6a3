"""What others would do under the same protocol, with scikit-learn: mixtures, clusters, closed and open sets.

Those that know no labels cluster all rows; a cluster then takes the name of the class that most of its labelled rows
have, if at least a tenth of its rows are labelled (half the share that was labelled); else it is a new class.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.semi_supervised import LabelSpreading

from gibbsite.experiments.protocol import LABELLED_SHARE, NO_LABEL, NOTHING, Task
from gibbsite.experiments.table import Integers

MOST_COMPONENTS = 30
REJECTED = 0.02
"""Share of the labelled rows that an open-set classifier may take for something new."""

Peer = Callable[[Task, int], Integers]


def bayesian_mixture(task: Task, seed: int) -> Integers:
    """Variational Dirichlet process mixture: each component is a class, as in igmm."""
    mixture = BayesianGaussianMixture(n_components=MOST_COMPONENTS, max_iter=300, random_state=seed)
    return name_clusters(mixture.fit_predict(task.table.x), task.label)


def mixture_by_bic(task: Task, seed: int) -> Integers:
    """The Gaussian mixture of up to 30 components with the lowest BIC."""
    x = task.table.x
    numbers = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, MOST_COMPONENTS]
    tried = [GaussianMixture(n, random_state=seed).fit(x) for n in numbers if n < len(x)]
    return name_clusters(min(tried, key=lambda mixture: mixture.bic(x)).predict(x), task.label)


def hdbscan(task: Task, seed: int) -> Integers:  # noqa: ARG001 - nothing is random in it
    """Density clusters of at least 1 % of the rows; what they leave is in no class."""
    x = task.table.x
    found = HDBSCAN(min_cluster_size=max(5, len(x) // 100), copy=True).fit_predict(x)
    return np.where(found < 0, NOTHING, name_clusters(found, task.label))


def lda(task: Task, seed: int) -> Integers:  # noqa: ARG001 - nothing is random in it
    """Closed set: linear discriminant analysis."""
    return np.asarray(_fit(LinearDiscriminantAnalysis(), task).predict(task.table.x))


def forest(task: Task, seed: int) -> Integers:
    """Closed set: random forest."""
    return np.asarray(_fit(RandomForestClassifier(300, random_state=seed), task).predict(task.table.x))


def label_spreading(task: Task, seed: int) -> Integers:  # noqa: ARG001 - nothing is random in it
    """Closed set: labels spread over the graph of the 10 nearest neighbours."""
    spread = LabelSpreading(kernel="knn", n_neighbors=10, max_iter=200)
    return np.asarray(spread.fit(task.table.x, task.label).transduction_)


def lda_distance(task: Task, seed: int) -> Integers:  # noqa: ARG001 - nothing is random in it
    """Open set: linear discriminant analysis; rows far from every class mean are one new class.

    Far: in the pooled covariance, farther than 98 % of the labelled rows are from their own.
    """
    x, is_known = task.table.x, task.label != NO_LABEL
    model = _fit(LinearDiscriminantAnalysis(store_covariance=True), task)
    root = np.linalg.cholesky(model.covariance_ + 1e-9 * np.eye(x.shape[1]))
    whiten = np.linalg.inv(root).T
    away = np.stack([(((x - mean) @ whiten) ** 2).sum(1) for mean in model.means_], 1)
    own = away[is_known, np.searchsorted(model.classes_, task.label[is_known])]
    return np.where(away.min(1) > np.quantile(own, 1 - REJECTED), len(task.table.names), model.predict(x))


def forest_threshold(task: Task, seed: int) -> Integers:
    """Open set: random forest; rows it is unsure of are one new class.

    Unsure: the likeliest class is less likely than for 98 % of the labelled rows by the trees that did not see them.
    """
    model = _fit(RandomForestClassifier(300, oob_score=True, random_state=seed), task)
    probability = model.predict_proba(task.table.x)
    limit = np.quantile(model.oob_decision_function_.max(1), REJECTED)
    likeliest = model.classes_[probability.argmax(1)]
    return np.where(probability.max(1) < limit, len(task.table.names), likeliest)


UNSUPERVISED: dict[str, Peer] = {
    "bayesian-mixture": bayesian_mixture,
    "mixture-bic": mixture_by_bic,
    "hdbscan": hdbscan,
}
SUPERVISED: dict[str, Peer] = {
    "lda": lda,
    "forest": forest,
    "label-spreading": label_spreading,
    "lda-distance": lda_distance,
    "forest-threshold": forest_threshold,
}
PEERS = UNSUPERVISED | SUPERVISED
TITLES = {
    "bayesian-mixture": "BayesianGaussianMixture",
    "mixture-bic": "GaussianMixture by BIC",
    "hdbscan": "HDBSCAN",
    "lda": "LDA (closed set)",
    "forest": "random forest (closed set)",
    "label-spreading": "LabelSpreading (closed set)",
    "lda-distance": "LDA, far rows rejected (open set)",
    "forest-threshold": "random forest, unsure rows rejected (open set)",
}


def name_clusters(found: NDArray[np.integer], label: Integers) -> Integers:
    """Clusters (n_rows) under the names of the classes that their labelled rows have; new ones above all labels."""
    named = np.asarray(found, np.int64) + int(label.max(initial=NO_LABEL)) + 1
    for cluster in np.unique(found[found >= 0]):
        mine = found == cluster
        known = label[mine & (label != NO_LABEL)]
        if len(known) >= max(1.0, LABELLED_SHARE / 2 * mine.sum()):
            named[mine] = np.bincount(known).argmax()
    return named


def _fit(model: LinearDiscriminantAnalysis | RandomForestClassifier, task: Task) -> Any:
    is_known = task.label != NO_LABEL
    return model.fit(task.table.x[is_known], task.label[is_known])

"""A scikit-learn style front for tables: cells, spectra, anything with rows.

    from gibbsite import NonExhaustiveClassifier
    labels = NonExhaustiveClassifier(random_state=1).fit(X, y).labels_     # y == -1: unlabelled

Known classes keep their ids; classes nobody labelled get new ids above them, by size.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data
from threadpoolctl import threadpool_limits

from gibbsite import cluster, features, maps, plan, sampling, start
from gibbsite.sampling import Chain
from gibbsite.settings import Cluster, Fit
from gibbsite.start import Pins
from gibbsite.tiles import Tile

UNLABELLED = -1


class NonExhaustiveClassifier(ClassifierMixin, BaseEstimator):
    """Classifies what is labelled and discovers what is not, by one of igmm, i2gmm and ai2gmm.

    Features are standardised and held as fixed point within ±32 standard deviations; nothing is projected, so whiten
    or reduce them first if there are many. Parameters are those of the `fit` settings; `settings` takes further ones
    (kappa1, alpha, ...) as a mapping.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name
        self,
        model: str = "ai2gmm",
        *,
        sweeps: int = 200,
        chains: int = 1,
        class_rule: str = "reach",
        polish_sweeps: int = 10,
        settings: dict[str, Any] | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.sweeps = sweeps
        self.chains = chains
        self.class_rule = class_rule
        self.polish_sweeps = polish_sweeps
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> "NonExhaustiveClassifier":
        """Fit to rows X (n_rows, n_features) and labels y (n_rows,), -1 for unlabelled; without y all are."""
        table = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        label = self._check_labels(y, len(table))
        self._mean, deviation = table.mean(0), table.std(0)
        self._scale = np.where(deviation > 0.0, deviation, 1.0)
        known = np.unique(label[label != UNLABELLED])
        index = np.where(label == UNLABELLED, -1, np.searchsorted(known, label)).astype(np.int16)
        rows = Tile(0, self._quantise(table), index)
        chosen = Fit.model_validate(
            {"model": self.model, "sweeps": self.sweeps, "chains": self.chains, "class_rule": self.class_rule}
            | (self.settings or {})
        )
        # Matrices are small: threaded linear algebra is slower, and rounds differently on different machines.
        with threadpool_limits(1):
            self._adopt(*self._best_chain(rows, chosen, len(known)), known)
        self.labels_ = self.predict(table)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The likeliest class of each row."""
        check_is_fitted(self, "classes_")
        return self.classes_[self.predict_proba(X).argmax(1)]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """(n_rows, n_classes) probability of each class of `classes_`."""
        check_is_fitted(self, "classes_")
        table = validate_data(self, X, dtype=np.float64, reset=False)
        return maps.class_probabilities(self._quantise(table), self._draws, features.FIXED_STEP)[:, self._order]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _check_labels(self, y: ArrayLike | None, n_rows: int) -> NDArray[np.int64]:
        if y is None:
            return np.full(n_rows, UNLABELLED)
        label = column_or_1d(y, warn=True)
        check_consistent_length(label, np.empty(n_rows))
        check_classification_targets(label)
        whole = label.astype(np.int64) if np.issubdtype(label.dtype, np.number) else np.empty(0, np.int64)
        if not np.array_equal(whole, label) or whole.min() < UNLABELLED:
            raise ValueError(f"labels must be whole numbers from 0 on, or {UNLABELLED} for rows without label")
        return whole

    def _quantise(self, table: NDArray[np.float64]) -> NDArray[np.int16]:
        return features.quantise((table - self._mean) / self._scale)

    def _best_chain(self, rows: Tile, chosen: Fit, n_known: int) -> tuple[Chain, list[Chain], list[Any]]:
        """The chain of the highest joint, all chains, and the draws of the best one's polish."""
        n_rows, n_features = rows.feature.shape
        prior = plan.first_prior(chosen, n_features)
        n_threads = max(0, self.n_jobs)
        # Large tiles sum faster; two for each thread even out their work.
        n_tiles = 2 * (n_threads or os.cpu_count() or 1)
        where = Cluster(kind="none", threads=n_threads, tile_pixels=min(65536, max(4096, -(-n_rows // n_tiles))))
        found: list[tuple[Chain, Pins | None]] = []
        for number in range(1, chosen.chains + 1):
            seed = plan.chain_seed(self.random_state, number)
            rules = plan.chain_rules(chosen, seed, (n_rows, n_features, n_known), features.FIXED_STEP)
            learnt, pins = None, None
            if n_known:
                is_known = rows.known >= 0
                labelled = Tile(0, rows.feature[is_known], rows.known[is_known])
                learnt = start.learn(labelled, rules, prior, chosen.pre_sweeps, chosen.outlier_fraction)
                pins = learnt.pins
            pinned = rows if pins is None else pins.apply(rows)
            with cluster.holding_tiles(pinned.part, n_rows, where) as reduce_tiles:
                reads = (reduce_tiles, pinned.part)
                n_cells = (chosen.start_components, chosen.label_components)
                state = start.first_state(learnt, rules, prior, n_cells, reads)
                n_sweeps = (int(chosen.burn_in * (chosen.sweeps - 1)), chosen.sweeps)
                found.append((sampling.sample(state, rules, n_sweeps, reads, lambda *_: None), pins))
        best, pins = max(found, key=lambda pair: pair[0].log_joint)
        pinned = rows if pins is None else pins.apply(rows)
        with cluster.holding_tiles(pinned.part, n_rows, where) as reduce_tiles:
            _, draws = sampling.polish(best.best, rules, self.polish_sweeps, reduce_tiles)
        return best, [chain for chain, _ in found], draws

    def _adopt(self, best: Chain, chains: list[Chain], draws: list[Any], known: NDArray[np.int64]) -> None:
        """Take the names of the classes, and what people want to know, from the best chain."""
        state, n_known = best.best, len(known)
        size = np.bincount(state.class_of, weights=state.statistics.n, minlength=len(state.class_id))
        self._order = np.append(np.arange(n_known), n_known + np.argsort(-size[n_known:], kind="stable"))
        self._draws = draws
        first_new = int(known.max(initial=-1)) + 1
        self.classes_ = np.append(known, first_new + np.arange(len(size) - n_known))
        self.is_known_ = np.arange(len(size)) < n_known
        self.n_components_ = np.bincount(state.class_of, minlength=len(size))[self._order]
        self.log_joint_ = best.log_joint
        self.trace_ = [np.array([info.log_joint for info in chain.trace]) for chain in chains]

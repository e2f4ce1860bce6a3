"""A scikit-learn style front for tables: cells, spectra, anything with rows.

    from gibbsite import NonExhaustiveClassifier
    labels = NonExhaustiveClassifier(random_state=1).fit(X, y).labels_     # y == -1: unlabelled

Known classes keep their ids; classes nobody labelled get new ids above them, by size.
"""

from collections import deque
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data
from threadpoolctl import threadpool_limits

from gibbsite import cluster, features, maps, plan, sampling, start, streams, threads
from gibbsite.components import Components, draw_components
from gibbsite.sampling import Chain
from gibbsite.settings import Cluster, Fit
from gibbsite.state import Rules, State
from gibbsite.statistics import Integers
from gibbsite.streams import Purpose
from gibbsite.tiles import Tile

UNLABELLED = -1
MATCHED_ROWS = 20_000
"""At most so many rows tell which classes of two sweeps are the same."""


@dataclass(frozen=True)
class Run:
    """A chain, and what is averaged of it."""

    chain: Chain
    rules: Rules
    recent: list[State]
    """Of the last sweeps."""

    @property
    def log_joint(self) -> float:
        """The collapsed joint of the chain's best state."""
        return self.chain.log_joint

    def draws(self) -> list[Components]:
        """A draw of the best state, and of each recent one."""
        generator = streams.generator(self.rules.seed, 0, Purpose.POLISH)
        return [draw_components(state, self.rules, generator) for state in (self.chain.best, *self.recent)]


def match_draws(runs: list[Run], feature: NDArray[np.int16], n_known: int) -> list[tuple[Components, Integers]]:
    """Draws of all chains, the best one first, and for which class of its best state each of their classes stands.

    One sweep is a matter of chance where classes overlap, and so is where one chain has settled: the mean over many is
    right more often.
    """
    some = feature[:: -(-len(feature) // MATCHED_ROWS)]
    found: list[tuple[Components, Integers]] = []
    reference = None
    for run in sorted(runs, key=lambda run: -run.log_joint):
        for drawn in run.draws():
            probability = maps.class_probabilities(some, [drawn], run.rules.step)
            if reference is None:
                reference = probability
                found.append((drawn, np.arange(probability.shape[1])))
            else:
                found.append((drawn, maps.match_classes(probability, reference, n_known)))
    return found


class NonExhaustiveClassifier(ClassifierMixin, BaseEstimator):
    """Classifies what is labelled and discovers what is not, by one of igmm, i2gmm and ai2gmm.

    Features are standardised and held as fixed point within ±32 standard deviations; nothing is projected, so whiten
    or reduce them first if there are many. Parameters are those of the `fit` settings; `settings` takes further ones
    (kappa1, alpha, ...) as a mapping. The classes are those of the sweep with the highest joint in all chains, their
    probabilities the mean over the best sweep and the last `averaged_sweeps` of each chain.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name
        self,
        model: str = "ai2gmm",
        *,
        sweeps: int = 100,
        chains: int = 4,
        class_rule: str = "reach",
        averaged_sweeps: int = 20,
        settings: dict[str, Any] | None = None,
        n_jobs: int | None = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.model = model
        self.sweeps = sweeps
        self.chains = chains
        self.class_rule = class_rule
        self.averaged_sweeps = averaged_sweeps
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> "NonExhaustiveClassifier":
        """Fit to rows X (n_rows, n_features) and labels y (n_rows,), -1 for unlabelled; without y all are."""
        table = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, ensure_all_finite=False)
        _check_finite(table)
        label = self._check_labels(y, len(table))
        with np.errstate(over="ignore", invalid="ignore"):
            self._mean, deviation = table.mean(0), table.std(0)
        is_small = np.isfinite(deviation)
        if not is_small.all():
            raise ValueError(f"column {int(np.argmin(is_small))} is too large to be scaled; divide it first")
        # A column of 0.1 alone has a standard deviation of 1e-17: what is left of rounding.
        is_constant = deviation <= 1e-12 * np.abs(table).max(0)
        self._scale = np.where(is_constant, 1.0, deviation)
        known = np.unique(label[label != UNLABELLED])
        index = np.where(label == UNLABELLED, -1, np.searchsorted(known, label)).astype(np.int16)
        rows = Tile(0, self._quantise(table), index)
        chosen = Fit.model_validate(
            {"model": self.model, "sweeps": int(self.sweeps), "chains": int(self.chains), "class_rule": self.class_rule}
            | (self.settings or {})
        )
        # As in `cluster.holding_tiles`, but for the labelled rows too.
        with threadpool_limits(1):
            first = self._seed()
            seeds = [plan.chain_seed(first, number) for number in range(1, chosen.chains + 1)]
            runs = [self._run(rows, chosen, len(known), seed) for seed in seeds]
        self._draws = match_draws(runs, rows.feature, len(known))
        self._adopt(max(runs, key=lambda run: run.log_joint).chain, known)
        self.trace_ = [np.array([info.log_joint for info in run.chain.trace]) for run in runs]
        self.labels_ = self.classes_[self._probabilities(table).argmax(1)]
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The likeliest class of each row."""
        check_is_fitted(self, "classes_")
        return self.classes_[self.predict_proba(X).argmax(1)]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """(n_rows, n_classes) probability of each class of `classes_`."""
        check_is_fitted(self, "classes_")
        table = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False)
        _check_finite(table)
        return self._probabilities(table)

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        feature, total = self._quantise(table), np.zeros((len(table), len(self.classes_)))
        for drawn, stands_for in self._draws:
            is_matched = stands_for >= 0
            probability = maps.class_probabilities(feature, [drawn], features.FIXED_STEP)
            total[:, stands_for[is_matched]] += probability[:, is_matched]
        return total[:, self._order] / total.sum(1, keepdims=True)

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

    def _seed(self) -> int:
        """The random state as a number."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _quantise(self, table: NDArray[np.float64]) -> NDArray[np.int16]:
        return features.quantise((table - self._mean) / self._scale)

    def _run(self, rows: Tile, chosen: Fit, n_known: int, seed: int) -> Run:
        """One chain from its start to its end."""
        n_rows, n_features = rows.feature.shape
        prior = plan.first_prior(chosen, n_features)
        rules = plan.chain_rules(chosen, seed, (n_rows, n_features, n_known), features.FIXED_STEP)
        learnt, pinned = None, rows
        if n_known:
            is_known = rows.known >= 0
            labelled = Tile(0, rows.feature[is_known], rows.known[is_known])
            learnt = start.learn(labelled, rules, prior, chosen.pre_sweeps, chosen.outlier_fraction)
            pinned = rows if learnt.pins is None else learnt.pins.apply(rows)
        burn_in, sweeps = plan.n_sweeps(chosen)
        recent: deque[State] = deque(maxlen=min(self.averaged_sweeps, sweeps - burn_in))
        n_threads = 1 if self.n_jobs is None else max(0, self.n_jobs)
        # Large tiles sum faster; two for each thread even out their work.
        n_tiles = 2 * (n_threads or threads.n_threads())
        where = Cluster(kind="none", threads=n_threads, tile_pixels=min(65536, max(4096, -(-n_rows // n_tiles))))
        with cluster.holding_tiles(pinned.part, n_rows, where) as reduce_tiles:
            reads = (reduce_tiles, pinned.part)
            state = start.first_state(learnt, rules, prior, (chosen.start_components, chosen.label_components), reads)
            chain = sampling.sample(
                sampling.begin(state), rules, (burn_in, sweeps), reads, lambda chain: recent.append(chain.last)
            )
        return Run(chain, rules, list(recent))

    def _adopt(self, best: Chain, known: NDArray[np.int64]) -> None:
        """Take the names of the classes, and what people want to know, from the best chain."""
        state, n_known = best.best, len(known)
        size = np.bincount(state.class_of, weights=state.statistics.n, minlength=len(state.class_id))
        self._order = np.append(np.arange(n_known), n_known + np.argsort(-size[n_known:], kind="stable"))
        first_new = int(known.max(initial=-1)) + 1
        self.classes_ = np.append(known, first_new + np.arange(len(size) - n_known))
        self.is_known_ = np.arange(len(size)) < n_known
        self.n_components_ = np.bincount(state.class_of, minlength=len(size))[self._order]
        self.log_joint_ = best.log_joint


def _check_finite(table: NDArray[np.float64]) -> None:
    """Refuse NaN and infinity, and say where the first one is; scikit-learn's own check does not."""
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        what = "NaN" if np.isnan(table[row, column]) else "infinity"
        more = f", and {len(bad) - 1} more such values" if len(bad) > 1 else ""
        raise ValueError(f"Input X contains {what} in row {row}, column {column}{more}; fill them in or leave rows out")

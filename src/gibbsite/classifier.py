"""A scikit-learn style front for tables: cells, spectra, anything with rows.

    from gibbsite import NonExhaustiveClassifier
    labels = NonExhaustiveClassifier(random_state=1).fit(X, y).labels_     # y == -1: unlabelled

Known classes keep their ids; classes nobody labelled get new ids above them, by size.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from gibbsite import (
    cluster,
    coarse_columns,
    column_residuals,
    column_scale,
    consensus,
    features,
    plan,
    sampling,
    start,
    streams,
    threads,
)
from gibbsite.components import Components, draw_components
from gibbsite.consensus import Consensus
from gibbsite.row_order import sampling_order
from gibbsite.sampling import Chain
from gibbsite.settings import Cluster, Fit
from gibbsite.state import Rules, State
from gibbsite.statistics import Integers
from gibbsite.streams import Purpose
from gibbsite.table_checks import UNLABELLED, check_finite, check_labels, warn_of_far_values
from gibbsite.tiles import Tile

MOST_KNOWN = 2**15 - 1
"""Known classes that a tile can number."""


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


def chain_rules(chosen: Fit, seed: int, chain: int, sizes: tuple[int, int, int]) -> Rules:
    """The rules of a chain, by its number from 0, over (n_rows, n_features, n_known).

    Chains begin in two ways by turns, so that what they agree on is not due to how they began.
    """
    rules = plan.chain_rules(chosen, plan.chain_seed(seed, chain + 1), sizes, features.FIXED_STEP)
    return replace(rules, is_grouped=chain % 2 == 1)


class NonExhaustiveClassifier(ClassifierMixin, BaseEstimator):
    """Classifies what is labelled and discovers what is not, by one of igmm, i2gmm and ai2gmm.

    Features are standardised (by values that do not stray far from all others) and held as fixed point within ±32
    standard deviations. A column that others tell nearly is replaced by what it says beyond them; otherwise nothing is
    projected, so whiten or reduce them first if there are many. Parameters are those of the `fit` settings; `settings`
    takes further ones (kappa1, alpha, ...) as a mapping. Probabilities are the mean over the best sweep and the last
    `averaged_sweeps` of each chain, and classes those that are the likeliest one of some row; discovered ones that are
    better one Gaussian than two are one.
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
        check_finite(table)
        self._check_parameters()
        label = check_labels(y, len(table))
        self._scale = column_scale.measure(table)
        warn_of_far_values(table, self._scale)
        known = np.unique(label[label != UNLABELLED])
        if len(known) > MOST_KNOWN:
            raise ValueError(f"found {len(known)} known classes, expected {MOST_KNOWN} at most; label fewer of them")
        index = np.where(label == UNLABELLED, -1, np.searchsorted(known, label)).astype(np.int16)
        seed = self._seed()
        spread = coarse_columns.spread(table, seed)
        standard = self._standardise(spread)
        with threadpool_limits(1):
            self._axes = column_residuals.find_axes(standard)
        sampled = features.quantise(column_residuals.project(standard, self._axes))
        feature = sampled if spread is table else self._quantise(table)
        order = sampling_order(feature, seed)
        rows = Tile(0, sampled[order], index[order])
        chosen = Fit.model_validate(
            {"model": self.model, "sweeps": int(self.sweeps), "chains": int(self.chains), "class_rule": self.class_rule}
            | dict(self.settings or {})
        )
        # As in `cluster.holding_tiles`, but for the labelled rows too.
        with threadpool_limits(1):
            sizes = (*rows.feature.shape, len(known))
            runs = [self._run(rows, chosen, chain_rules(chosen, seed, n, sizes)) for n in range(chosen.chains)]
            ranked = sorted(runs, key=lambda run: -run.log_joint)
            apart = consensus.match([run.draws() for run in ranked], rows.feature, len(known))
            probability = apart.probability(feature)
            found = apart.joined(sampled, probability, len(known), ranked[0].chain.best.prior)
            if found.n_classes < apart.n_classes:
                # Averaged anew, not summed up: `predict` must say the same to the last bit.
                probability = found.probability(feature)
        self.labels_ = self._adopt(found, probability.argmax(1), known)
        self.trace_ = [np.array([info.log_joint for info in run.chain.trace]) for run in runs]
        self.log_joint_ = max(run.log_joint for run in runs)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The likeliest class of each row."""
        check_is_fitted(self, "classes_")
        # Of classes that are as likely the first that was found, as in `labels_`.
        return self.classes_[self._found[self.predict_proba(X)[:, self._found].argmax(1)]]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """(n_rows, n_classes) probability of each class of `classes_`."""
        check_is_fitted(self, "classes_")
        table = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False)
        check_finite(table)
        return self._consensus.probability(self._quantise(table))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _check_parameters(self) -> None:
        """Refuse what is no number, and settings that are no mapping; their values are checked with the settings."""
        least = {"sweeps": 1, "chains": 1, "averaged_sweeps": 0}
        for name, value in {name: getattr(self, name) for name in least}.items():
            if not isinstance(value, Integral) or value < least[name]:
                raise ValueError(f"{name}: found {value!r}, expected a whole number from {least[name]} on")
        if self.n_jobs is not None and not isinstance(self.n_jobs, Integral):
            raise ValueError(f"n_jobs: found {self.n_jobs!r}, expected a number of threads, -1 for all, or None")
        if self.settings is not None and not isinstance(self.settings, Mapping):
            raise ValueError(f"settings: found {self.settings!r}, expected a mapping such as {{'kappa1': 0.5}}")

    def _seed(self) -> int:
        """The random state as a number."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _quantise(self, table: NDArray[np.float64]) -> NDArray[np.int16]:
        return features.quantise(column_residuals.project(self._standardise(table), self._axes))

    def _standardise(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(self._scale.apply(table), -features.FIXED_CLIP, features.FIXED_CLIP)

    def _run(self, rows: Tile, chosen: Fit, rules: Rules) -> Run:
        """One chain from its start to its end."""
        n_rows, n_features = rows.feature.shape
        prior = plan.first_prior(chosen, n_features)
        learnt, pinned = None, rows
        if rules.n_known:
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

    def _adopt(self, found: Consensus, winner: Integers, known: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows' labels, from the likeliest class of each: known classes, and new ones by size."""
        n_known = len(known)
        size = np.bincount(winner, minlength=found.n_classes)
        new = n_known + np.argsort(-size[n_known:], kind="stable")
        order = np.append(np.arange(n_known), new[size[new] > 0])
        place = np.full(found.n_classes, -1)
        place[order] = np.arange(len(order))
        self._consensus, self._found = found.moved(place), np.argsort(order)
        self.classes_ = np.append(known, int(known.max(initial=-1)) + 1 + np.arange(len(order) - n_known))
        self.is_known_ = np.arange(len(order)) < n_known
        self.n_components_ = self._consensus.n_components()
        return self.classes_[place[winner]]

"""Drawn components: what the client tells every tile, a few kilobytes."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels, statistics
from gibbsite.statistics import Floats, Integers

if TYPE_CHECKING:
    from gibbsite.state import Rules, State


@dataclass(frozen=True)
class Components:
    """One draw of all weights, means and covariances. Components of a class stand together."""

    class_of: Integers
    """(n_components,) class index, never falling."""
    log_weight: Floats
    """(n_components,) log π_l."""
    mean: Floats
    """(n_components, n_features) μ_l."""
    centre: Floats
    """(n_classes, n_features) μ_k."""
    whiten: Floats
    """(n_classes, n_features, n_features) upper triangular U_k with U_kᵀU_k = Σ_k⁻¹."""
    log_tail: float
    """log π_*: weight of all components that do not exist yet."""

    @cached_property
    def whitened_mean(self) -> Floats:
        """(n_components, n_features) U_k (μ_l − μ_k)."""
        away = self.mean - self.centre[self.class_of]
        return np.einsum("cab,cb->ca", self.whiten[self.class_of], away)

    @cached_property
    def log_det_whiten(self) -> Floats:
        """(n_classes,) log |U_k|."""
        return np.log(np.diagonal(self.whiten, axis1=1, axis2=2)).sum(1)

    def __getstate__(self) -> dict[str, object]:
        """What travels to the tiles: only what they ask for, and made here, so that all of them have the same bits."""
        return {"class_of": self.class_of, "_lanes": self._lanes}

    def lanes(self) -> tuple[np.ndarray, ...]:
        """The arrays the kernels take: class_start, and in float32 whiten, shift, offset, direction.

        log2 π_l N(x; μ_l, Σ_k) = offset_l + direction_l·y − |y|² with y = whiten_k x + shift_k, which is U_k (x − μ_k)
        times √(log2(e)/2). Seen from its class |y| is small for the pixels that matter, so that float32 is enough.
        whiten (n_classes, d, d) and direction (d, n_components) are transposed: kernels take the coefficients of one
        feature together.
        """
        return self._lanes

    @cached_property
    def _lanes(self) -> tuple[np.ndarray, ...]:
        class_start = np.searchsorted(self.class_of, np.arange(len(self.centre) + 1))
        log_peak = self.log_weight + self.log_det_whiten[self.class_of] - 0.5 * (self.whitened_mean**2).sum(1)
        bits = 1.0 / np.log(2.0)
        whiten = np.sqrt(bits / 2.0) * self.whiten
        shift = -np.einsum("kab,kb->ka", whiten, self.centre)
        direction = np.sqrt(bits * 2.0) * self.whitened_mean
        double = (whiten.swapaxes(1, 2), shift, bits * log_peak, direction.T)
        return (class_start, *(array.astype(np.float32, order="C") for array in double))


def draw_components(
    state: "State", rules: "Rules", generator: np.random.Generator, shown: NDArray[np.bool_] | None = None
) -> Components:
    """The shown components (all, or the explicit ones), drawn given the whole partition.

    Σ_k ~ IW(Ψ_k, ν_k), μ_k ~ N(μ̄_k, Σ_k/κ_k), μ_l ~ N((κ1 μ_k + n_l x̄_l)/(κ1 + n_l), Σ_k/(κ1 + n_l)), and the weights
    ~ Dirichlet(n_1 .. n_L, α + n_tail), where the tail is what is not shown: the components that live in the block
    alone, and those that do not exist yet.
    """
    moments, prior = statistics.moments(state.statistics, rules.step), state.prior
    degrees = prior.degrees + np.bincount(state.class_of, moments.n, len(state.class_id)).astype(np.float64)
    bartlett = draw_bartlett(degrees, len(prior.mean), generator)
    centre = generator.standard_normal(bartlett.shape[:2])
    mean = generator.standard_normal(moments.mean.shape)
    given = (prior.mean, np.ascontiguousarray(prior.scale), prior.kappa0, prior.spread)
    whiten = kernels.draw_classes(
        moments.n, moments.mean, moments.scatter, state.class_of, given, bartlett, centre, mean
    )
    shown = np.ones(len(moments.n), bool) if shown is None else shown
    n_tail = moments.n[~shown].sum()
    weight = generator.dirichlet(np.append(moments.n[shown], prior.alpha + n_tail))
    log_weight = np.log(np.maximum(weight, 1e-300))
    return Components(state.class_of[shown], log_weight[:-1], mean[shown], centre, whiten, float(log_weight[-1]))


def draw_bartlett(degrees: Floats, n_features: int, generator: np.random.Generator) -> Floats:
    """(n_classes, n_features, n_features) lower triangular A with AAᵀ ~ Wishart(ν, I), by Bartlett's decomposition."""
    root = np.tril(generator.standard_normal((len(degrees), n_features, n_features)), -1)
    diagonal = np.arange(n_features)
    root[:, diagonal, diagonal] = np.sqrt(generator.chisquare(degrees[:, None] - diagonal))
    return root

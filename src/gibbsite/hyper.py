"""The paper's point estimates of the hyper-parameters (ai2gmm): eqs. hyper_estimation and hyper_estimation_hidden.

Each class pulls with its share of the pixels, so that small spurious classes hardly move what all classes share. Two
readings of the paper: the exponent of a component in p(Σ_k|·) is N_kl/N_k, as its own Σ̂_k demands; and Σ0 = I/(c2 − d),
which starts Ψ̂0 at I.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gibbsite.niw import Prior, add_by_class
from gibbsite.statistics import Floats, Moments

SCALE_FLOOR = 1e-5
"""Smallest eigenvalue of Ψ0, in units of the features' variance; the fixed-point step squared is 1e-6."""


@dataclass(frozen=True)
class HyperPrior:
    """The constants of the priors over μ0, Ψ0, κ0 and κ1."""

    c1: float
    """Pull of μ0 towards the data mean."""
    c2: float
    """Degrees of freedom of the Wishart prior of Ψ0."""
    alpha0: float
    """Shape of the gamma prior of κ0."""
    beta0: float
    """Rate of the gamma prior of κ0."""
    alpha1: float
    """Shape of the gamma prior of κ1."""
    beta1: float
    """Rate of the gamma prior of κ1."""
    is_ordered: bool = False
    """Keep κ1 ≥ κ0: components scatter less about their class than classes about the whole."""
    floor: float = 1e-4
    """κ0 and κ1 never fall below this: at κ1 → 0 one class swallows everything."""
    rounds: int = 3
    """Fixed-point rounds per sweep."""


@dataclass(frozen=True)
class _Hidden:
    """Point estimates of what the data does not show."""

    component_mean: Floats
    class_mean: Floats
    precision: Floats
    """(n_classes, n_features, n_features) Σ̂_k⁻¹."""


def estimate(moments: Moments, class_of: NDArray[np.integer], prior: Prior, constants: HyperPrior) -> Prior:
    """The prior with μ0, Ψ0, κ0 and κ1 re-estimated from the current components and classes."""
    hidden = _start(moments, class_of)
    for _ in range(constants.rounds):
        hidden = _estimate_hidden(moments, class_of, prior, hidden)
        prior = _estimate_prior(moments, class_of, prior, hidden, constants)
    return prior


def _class_total(values: Floats, class_of: NDArray[np.integer]) -> Floats:
    return add_by_class(values, class_of, int(class_of.max()) + 1)


def _start(moments: Moments, class_of: NDArray[np.integer]) -> _Hidden:
    share = _share_within_class(moments, class_of)
    class_mean = _class_total(share[:, None] * moments.mean, class_of)
    return _Hidden(moments.mean, class_mean, np.empty(0))


def _share_within_class(moments: Moments, class_of: NDArray[np.integer]) -> Floats:
    return moments.n / _class_total(moments.n, class_of)[class_of]


def _outer(values: Floats) -> Floats:
    return values[:, :, None] * values[:, None, :]


def _estimate_hidden(moments: Moments, class_of: NDArray[np.integer], prior: Prior, hidden: _Hidden) -> _Hidden:
    """μ̂_kl, μ̂_k and Σ̂_k given the hyper-parameters."""
    kappa1 = 1.0 / prior.spread
    n = moments.n[:, None]
    component_mean = (kappa1 * hidden.class_mean[class_of] + n * moments.mean) / (kappa1 + n)
    share = _share_within_class(moments, class_of)
    pooled = _class_total(share[:, None] * component_mean, class_of)
    class_mean = (prior.kappa0 * prior.mean + kappa1 * pooled) / (prior.kappa0 + kappa1)
    within = kappa1 * _outer(component_mean - class_mean[class_of]) + moments.scatter
    numerator = prior.scale + prior.kappa0 * _outer(class_mean - prior.mean)
    numerator = numerator + _class_total(share[:, None, None] * within, class_of)
    denominator = prior.degrees + len(prior.mean) + 2.0 + _class_total(share * moments.n, class_of)
    precision = np.linalg.inv(numerator / denominator[:, None, None]).astype(np.float64)
    return _Hidden(component_mean, class_mean, precision)


def _estimate_prior(
    moments: Moments, class_of: NDArray[np.integer], prior: Prior, hidden: _Hidden, constants: HyperPrior
) -> Prior:
    """μ̂0, Ψ̂0, κ̂0 and κ̂1 given the hidden variables; the data mean μ_p is the origin."""
    n_features = len(prior.mean)
    share = moments.n / moments.n.sum()
    class_share = _class_total(share, class_of)
    precision = np.einsum("k,kab->ab", class_share, hidden.precision)
    pulled = np.einsum("k,kab,kb->a", class_share, hidden.precision, hidden.class_mean)
    mean = np.linalg.solve(constants.c1 * prior.scale + prior.kappa0 * precision, prior.kappa0 * pulled)
    inverse_scale = (constants.c2 - n_features) * np.eye(n_features) + constants.c1 * np.outer(mean, mean) + precision
    scale = (constants.c2 - n_features + prior.degrees) * np.linalg.inv(inverse_scale)
    kappa0 = _kappa(hidden.class_mean - mean, hidden.precision, class_share, constants.alpha0, constants.beta0)
    away = hidden.component_mean - hidden.class_mean[class_of]
    kappa1 = _kappa(away, hidden.precision[class_of], share, constants.alpha1, constants.beta1)
    kappa0, kappa1 = max(kappa0, constants.floor), max(kappa1, constants.floor)
    if constants.is_ordered:
        kappa1 = max(kappa1, kappa0)
    return replace(prior, mean=mean, scale=_keep_positive(scale), kappa0=kappa0, spread=1.0 / kappa1)


def _keep_positive(scale: Floats) -> Floats:
    """The matrix with eigenvalues of SCALE_FLOOR at least: classes without scatter would shrink it to nothing."""
    value, vector = np.linalg.eigh(0.5 * (scale + scale.T))
    if value[0] >= SCALE_FLOOR:
        return 0.5 * (scale + scale.T)
    return np.asarray((vector * np.maximum(value, SCALE_FLOOR)) @ vector.T)


def _kappa(away: Floats, precision: Floats, share: Floats, shape: float, rate: float) -> float:
    distance = np.einsum("k,ka,kab,kb->", share, away, precision, away)
    return float((2.0 * (shape - 1.0) + away.shape[1]) / (2.0 * rate + distance))

"""The paper's point estimates of the hyper-parameters (ai2gmm): eqs. hyper_estimation and hyper_estimation_hidden.

Each class pulls with its share of the pixels, so that small spurious classes hardly move what all classes share. Two
readings of the paper: the exponent of a component in p(Σ_k|·) is N_kl/N_k, as its own Σ̂_k demands; and Σ0 = I/(c2 − d),
which starts Ψ̂0 at I.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gibbsite.niw import Prior
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
class _Shares:
    """How components and classes share the pixels, and what does not change from round to round."""

    is_member: Floats
    """(n_classes, n_components) 1 where a component is of a class."""
    of_all: Floats
    """(n_components,) share of all pixels."""
    of_class: Floats
    """(n_components,) share of the class's pixels."""
    scatter: Floats
    """(n_classes, n_features, n_features) components' scatters, weighted by their share of the class."""
    n: Floats
    """(n_classes,) components' pixels, weighted so."""

    def total(self, values: Floats) -> Floats:
        """(n_classes, ...) sums over the components of each class."""
        n_classes, n_components = self.is_member.shape
        return (self.is_member @ values.reshape(n_components, -1)).reshape(n_classes, *values.shape[1:])


@dataclass(frozen=True)
class _Hidden:
    """Point estimates of what the data does not show."""

    component_mean: Floats
    class_mean: Floats
    precision: Floats
    """(n_classes, n_features, n_features) Σ̂_k⁻¹."""


def estimate(moments: Moments, class_of: NDArray[np.integer], prior: Prior, constants: HyperPrior) -> Prior:
    """The prior with μ0, Ψ0, κ0 and κ1 re-estimated from the current components and classes."""
    shares = _share_out(moments, class_of)
    class_mean = shares.total(shares.of_class[:, None] * moments.mean)
    for _ in range(constants.rounds):
        hidden = _estimate_hidden(moments, class_of, prior, shares, class_mean)
        prior = _estimate_prior(class_of, prior, shares, hidden, constants)
        class_mean = hidden.class_mean
    return prior


def _share_out(moments: Moments, class_of: NDArray[np.integer]) -> _Shares:
    is_member = (class_of == np.arange(int(class_of.max()) + 1)[:, None]).astype(np.float64)
    of_class = moments.n / (is_member @ moments.n)[class_of]
    weighted = is_member * of_class
    scatter = np.tensordot(weighted, moments.scatter, 1)
    return _Shares(is_member, moments.n / moments.n.sum(), of_class, scatter, weighted @ moments.n)


def _outer(values: Floats) -> Floats:
    return values[:, :, None] * values[:, None, :]


def _estimate_hidden(
    moments: Moments, class_of: NDArray[np.integer], prior: Prior, shares: _Shares, class_mean: Floats
) -> _Hidden:
    """μ̂_kl, μ̂_k and Σ̂_k given the hyper-parameters."""
    kappa1 = 1.0 / prior.spread
    n, share = moments.n[:, None], shares.of_class[:, None]
    component_mean = (kappa1 * class_mean[class_of] + n * moments.mean) / (kappa1 + n)
    class_mean = (prior.kappa0 * prior.mean + kappa1 * shares.total(share * component_mean)) / (prior.kappa0 + kappa1)
    away = component_mean - class_mean[class_of]
    numerator = prior.scale + prior.kappa0 * _outer(class_mean - prior.mean)
    numerator += kappa1 * shares.total(_outer(np.sqrt(share) * away)) + shares.scatter
    denominator = prior.degrees + len(prior.mean) + 2.0 + shares.n
    precision = np.linalg.inv(numerator / denominator[:, None, None]).astype(np.float64)
    return _Hidden(component_mean, class_mean, precision)


def _estimate_prior(
    class_of: NDArray[np.integer], prior: Prior, shares: _Shares, hidden: _Hidden, constants: HyperPrior
) -> Prior:
    """μ̂0, Ψ̂0, κ̂0 and κ̂1 given the hidden variables; the data mean μ_p is the origin."""
    n_features = len(prior.mean)
    class_share = shares.is_member @ shares.of_all
    weighted = class_share[:, None, None] * hidden.precision
    precision = weighted.sum(0)
    pulled = (weighted @ hidden.class_mean[:, :, None]).sum(0)[:, 0]
    mean = np.linalg.solve(constants.c1 * prior.scale + prior.kappa0 * precision, prior.kappa0 * pulled)
    inverse_scale = (constants.c2 - n_features) * np.eye(n_features) + constants.c1 * np.outer(mean, mean) + precision
    scale = (constants.c2 - n_features + prior.degrees) * np.linalg.inv(inverse_scale)
    kappa0 = _kappa(hidden.class_mean - mean, hidden.precision, class_share, constants.alpha0, constants.beta0)
    away = hidden.component_mean - hidden.class_mean[class_of]
    kappa1 = _kappa(away, hidden.precision[class_of], shares.of_all, constants.alpha1, constants.beta1)
    kappa0, kappa1 = max(kappa0, constants.floor), max(kappa1, constants.floor)
    if constants.is_ordered:
        kappa1 = max(kappa1, kappa0)
    return replace(prior, mean=mean, scale=_keep_positive(scale), kappa0=kappa0, spread=1.0 / kappa1)


def _keep_positive(scale: Floats) -> Floats:
    """The matrix with eigenvalues of SCALE_FLOOR at least: classes without scatter would shrink it to nothing."""
    scale = 0.5 * (scale + scale.T)
    try:
        # Nearly always so, and a tenth of the time of the eigenvalues.
        np.linalg.cholesky(scale - SCALE_FLOOR * np.eye(len(scale)))
    except np.linalg.LinAlgError:
        value, vector = np.linalg.eigh(scale)
        return np.asarray((vector * np.maximum(value, SCALE_FLOOR)) @ vector.T)
    return scale


def _kappa(away: Floats, precision: Floats, share: Floats, shape: float, rate: float) -> float:
    distance = share @ ((away[:, None] @ precision)[:, 0] * away).sum(1)
    return float((2.0 * (shape - 1.0) + away.shape[1]) / (2.0 * rate + distance))

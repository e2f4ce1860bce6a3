"""The paper's point estimates of the hyper-parameters (ai2gmm): eqs. hyper_estimation and hyper_estimation_hidden.

Each class pulls with its share of the pixels, so that small spurious classes hardly move what all classes share. Two
readings of the paper: the exponent of a component in p(Σ_k|·) is N_kl/N_k, as its own Σ̂_k demands; and Σ0 = I/(c2 − d),
which starts Ψ̂0 at I.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels
from gibbsite.kernels.hidden import Believed, Groups, Members
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


def estimate(moments: Moments, class_of: NDArray[np.integer], prior: Prior, constants: HyperPrior) -> Prior:
    """The prior with μ0, Ψ0, κ0 and κ1 re-estimated from the current components and classes."""
    members, groups = _share_out(moments, class_of)
    for _ in range(constants.rounds):
        prior = _estimate_round(members, groups, prior, constants)
    return prior


def _share_out(moments: Moments, class_of: NDArray[np.integer]) -> tuple[Members, Groups]:
    """How components and classes share the pixels, and what does not change from round to round."""
    is_member = (class_of == np.arange(int(class_of.max()) + 1)[:, None]).astype(np.float64)
    n_pixels, share = is_member @ moments.n, moments.n / moments.n.sum()
    members = Members(moments.n, moments.mean, class_of, share, moments.n / n_pixels[class_of])
    weighted = is_member * members.of_class
    scatter = np.tensordot(weighted, moments.scatter, 1)
    return members, Groups(weighted @ moments.mean, scatter, weighted @ moments.n, is_member @ share)


def _estimate_round(members: Members, groups: Groups, prior: Prior, constants: HyperPrior) -> Prior:
    kappas = prior.kappa0, 1.0 / prior.spread
    given = Believed(prior.mean, np.ascontiguousarray(prior.scale), *kappas, prior.degrees, constants.c1, constants.c2)
    mean, scale, between, within = kernels.estimate_round(members, groups, given)
    kappa0 = max(_kappa(between, len(mean), constants.alpha0, constants.beta0), constants.floor)
    kappa1 = max(_kappa(within, len(mean), constants.alpha1, constants.beta1), constants.floor)
    if constants.is_ordered:
        kappa1 = max(kappa1, kappa0)
    return replace(prior, mean=mean, scale=_keep_positive(scale), kappa0=kappa0, spread=1.0 / kappa1)


def _kappa(distance: float, n_features: int, shape: float, rate: float) -> float:
    return (2.0 * (shape - 1.0) + n_features) / (2.0 * rate + distance)


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

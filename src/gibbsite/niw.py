"""The algebra of the model: classes share a covariance, components scatter about their class mean.

    (μ_k, Σ_k) ~ NIW(μ0, Ψ0, κ0, m)      μ_l ~ N(μ_k, Σ_k/κ1)      x_i ~ N(μ_l, Σ_k)

Everything integrates in closed form, and a class is known by sums over its components (`Sums`): adding a component to
a class is adding its sums. `spread` is 1/κ1, so that 0 is the model in which a class is one Gaussian (igmm).
Conjugate updates as in Murphy (2007), eqs. 217-227, with a component of n pixels weighing w = n/(1 + n/κ1).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gibbsite.statistics import Floats, Moments


@dataclass(frozen=True)
class Prior:
    """The hyper-parameters."""

    mean: Floats
    """(n_features,) μ0."""
    scale: Floats
    """(n_features, n_features) Ψ0."""
    kappa0: float
    """How tightly class means sit about μ0."""
    spread: float
    """1/κ1: how widely component means scatter about their class mean; 0 in igmm."""
    degrees: float
    """m, degrees of freedom of the covariance prior."""
    alpha: float
    """Concentration of components over pixels."""
    gamma: float
    """Concentration of classes over components."""


@dataclass(frozen=True)
class Sums:
    """What a class needs to know of its components. Leading axes are free: one entry per component or per class."""

    n: Floats
    """(...,) pixels."""
    weight: Floats
    """(...,) Σ w_l."""
    total: Floats
    """(..., n_features) Σ w_l x̄_l."""
    outer: Floats
    """(..., n_features, n_features) Σ (S_l + w_l x̄_l x̄_lᵀ)."""
    shrink: Floats
    """(...,) Σ log(κ1/(κ1 + n_l))."""

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.n + other.n,
            self.weight + other.weight,
            self.total + other.total,
            self.outer + other.outer,
            self.shrink + other.shrink,
        )

    def __getitem__(self, chosen: int | slice | NDArray[np.integer] | NDArray[np.bool_] | None) -> "Sums":
        return Sums(self.n[chosen], self.weight[chosen], self.total[chosen], self.outer[chosen], self.shrink[chosen])


@dataclass(frozen=True)
class Posterior:
    """A class given its components: NIW(mean, scale, kappa, degrees)."""

    mean: Floats
    """(..., n_features) μ̄_k."""
    scale: Floats
    """(..., n_features, n_features) Ψ_k."""
    kappa: Floats
    """(...,) κ_k."""
    degrees: Floats
    """(...,) ν_k."""


def component_sums(moments: Moments, prior: Prior) -> Sums:
    """Each component's contribution to its class."""
    weight = component_weight(moments.n, prior)
    total = weight[:, None] * moments.mean
    outer = moments.scatter + total[:, :, None] * moments.mean[:, None, :]
    return Sums(moments.n, weight, total, outer, -np.log1p(prior.spread * moments.n))


def component_weight(n: Floats, prior: Prior) -> Floats:
    """w_l of components of n pixels."""
    return n / (1.0 + prior.spread * n)


def class_sums(components: Sums, class_of: NDArray[np.integer], n_classes: int) -> Sums:
    """The sums of each class: its components' added up."""
    is_member = (class_of == np.arange(n_classes)[:, None]).astype(np.float64)
    d = components.total.shape[1]
    single = np.stack([components.n, components.weight, components.shrink], 1)
    # One product for all sums: there are many small ones in a sweep.
    outer = components.outer.reshape(len(single), d * d)
    whole = is_member @ np.concatenate([single, components.total, outer], 1)
    n, weight, shrink = np.ascontiguousarray(whole[:, :3].T)
    return Sums(n, weight, whole[:, 3 : 3 + d], whole[:, 3 + d :].reshape(n_classes, d, d), shrink)


def posterior(sums: Sums, prior: Prior) -> Posterior:
    """The posterior of classes with these sums."""
    kappa = prior.kappa0 + sums.weight
    total = prior.kappa0 * prior.mean + sums.total
    mean = total / kappa[..., None]
    prior_outer = prior.scale + prior.kappa0 * np.outer(prior.mean, prior.mean)
    scale = prior_outer + sums.outer - mean[..., :, None] * total[..., None, :]
    return Posterior(mean, 0.5 * (scale + np.swapaxes(scale, -1, -2)), kappa, prior.degrees + sums.n)


def log_evidence(sums: Sums, prior: Prior) -> Floats:
    """log M(k): the log-probability of all pixels of a class given their components, parameters integrated out."""
    n_features = len(prior.mean)
    given = posterior(sums, prior)
    return (
        -0.5 * n_features * sums.n * np.log(np.pi)
        + 0.5 * n_features * (sums.shrink + np.log(prior.kappa0 / given.kappa))
        - 0.5 * given.degrees * log_det(given.scale)
        + log_multigamma(0.5 * given.degrees, n_features)
        + log_evidence_of_prior(prior)
    )


def log_evidence_of_prior(prior: Prior) -> float:
    """What Ψ0 and m contribute to the evidence of every class."""
    log_gamma = log_multigamma(np.float64(0.5 * prior.degrees), len(prior.mean))
    return float(0.5 * prior.degrees * log_det(prior.scale) - log_gamma)


def log_joint(moments: Moments, class_of: NDArray[np.integer], prior: Prior) -> float:
    """log p(x, t, c): prior of the two-level partition times the evidence of its classes."""
    n_classes = int(class_of.max()) + 1
    sums = class_sums(component_sums(moments, prior), class_of, n_classes)
    return log_partition(moments.n, class_of, prior) + float(log_evidence(sums, prior).sum())


def log_partition(n: Floats, class_of: NDArray[np.integer], prior: Prior) -> float:
    """log p(t) + log p(c|t): pixels sit at components by CRP(α), components in classes by CRP(γ)."""
    n_components = len(n)
    pixels = n_components * np.log(prior.alpha) + _log_crp_norm(prior.alpha, n.sum()) + gammaln(n).sum()
    if prior.spread == 0.0:
        # Every class is one component: there is no second partition.
        return float(pixels)
    # A known class may be without components; it is no class of the partition then.
    per_class = np.bincount(class_of)
    per_class = per_class[per_class > 0].astype(np.float64)
    classes = len(per_class) * np.log(prior.gamma) + _log_crp_norm(prior.gamma, n_components) + gammaln(per_class).sum()
    return float(pixels + classes)


def log_multigamma(a: Floats | np.float64, n_features: int) -> Floats:
    """log Γ_d(a); scipy's own takes longer to check its arguments than to compute it."""
    terms = gammaln(np.asarray(a)[..., None] - 0.5 * np.arange(n_features))
    return np.asarray(0.25 * n_features * (n_features - 1) * np.log(np.pi) + terms.sum(-1))


def log_det(matrix: Floats) -> Floats:
    """log |A| of symmetric positive definite matrices (..., d, d)."""
    factor = np.linalg.cholesky(matrix)
    return 2.0 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)


def log_predictive(x: Floats, given: Posterior, spread: float) -> Floats:
    """log f_k(x): one new pixel in a new component of each class, as a multivariate Student t; x (..., n_features)."""
    inflation = 1.0 + spread + 1.0 / given.kappa
    wide = replace(given, scale=given.scale * inflation[..., None, None])
    difference = x - given.mean
    distance = (difference * np.linalg.solve(wide.scale, difference[..., None])[..., 0]).sum(-1)
    return np.asarray(log_student_constant(wide) - 0.5 * (given.degrees + 1.0) * np.log1p(distance))


def log_student_constant(given: Posterior) -> Floats:
    """The part of a Student t's log density that knows no pixel; ν − d + 1 degrees, scale matrix Ψ/(ν − d + 1)."""
    n_features = given.mean.shape[-1]
    half = 0.5 * (given.degrees + 1.0)
    return np.asarray(
        gammaln(half) - gammaln(half - 0.5 * n_features) - 0.5 * n_features * np.log(np.pi) - 0.5 * log_det(given.scale)
    )


def without_spread(prior: Prior) -> Prior:
    """The prior under which component means equal their class mean."""
    return replace(prior, spread=0.0)


def _log_crp_norm(concentration: float, n: float) -> float:
    return float(gammaln(concentration) - gammaln(concentration + n))

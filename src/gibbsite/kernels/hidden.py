"""One round of the paper's point estimates: means and covariances that the data does not show, and their prior."""

from typing import NamedTuple

import numpy as np
from numba import njit

from gibbsite.kernels.matrices import add_outer, factorise, invert, weigh


class Members(NamedTuple):
    """The components."""

    n: np.ndarray
    mean: np.ndarray
    class_of: np.ndarray
    of_all: np.ndarray
    """Share of all pixels."""
    of_class: np.ndarray
    """Share of the class's pixels."""


class Groups(NamedTuple):
    """The classes."""

    mean: np.ndarray
    """μ̂_k, which moves from round to round."""
    scatter: np.ndarray
    """Components' scatters, weighted by their share of the class."""
    n: np.ndarray
    """Components' pixels, weighted so."""
    share: np.ndarray
    """Of all pixels."""


class Believed(NamedTuple):
    """The hyper-parameters of the last round, and the constants of their own priors that a round needs."""

    mean: np.ndarray
    scale: np.ndarray
    kappa0: float
    kappa1: float
    degrees: float
    c1: float
    c2: float


@njit(nogil=True, cache=True)
def estimate_round(members, groups, believed):
    """μ̂0, Ψ̂0, and the squared distances of class means from μ̂0 and of component means from their class, by Σ̂_k.

    The class means are those of this round afterwards.
    """
    component_mean = _estimate_means(members, groups, believed)
    precision = _estimate_precisions(members, groups, believed, component_mean)
    mean, scale = _estimate_prior(groups, believed, precision)
    n_features = len(mean)
    away, between, within = np.empty(n_features), 0.0, 0.0
    for k in range(len(groups.n)):
        for a in range(n_features):
            away[a] = groups.mean[k, a] - mean[a]
        between += groups.share[k] * weigh(precision[k], away)
    for c in range(len(members.n)):
        k = members.class_of[c]
        for a in range(n_features):
            away[a] = component_mean[c, a] - groups.mean[k, a]
        within += members.of_all[c] * weigh(precision[k], away)
    return mean, scale, between, within


@njit(cache=True)
def _estimate_means(members, groups, believed):
    """μ̂_kl, and μ̂_k in place."""
    n_components, n_features = members.mean.shape
    kappa0, kappa1 = believed.kappa0, believed.kappa1
    component_mean, total = np.empty((n_components, n_features)), np.zeros(groups.mean.shape)
    for c in range(n_components):
        k, n = members.class_of[c], members.n[c]
        for a in range(n_features):
            component_mean[c, a] = (kappa1 * groups.mean[k, a] + n * members.mean[c, a]) / (kappa1 + n)
            total[k, a] += members.of_class[c] * component_mean[c, a]
    for k in range(len(total)):
        for a in range(n_features):
            groups.mean[k, a] = (kappa0 * believed.mean[a] + kappa1 * total[k, a]) / (kappa0 + kappa1)
    return component_mean


@njit(cache=True)
def _estimate_precisions(members, groups, believed, component_mean):
    """Σ̂_k⁻¹."""
    n_classes, n_features = groups.mean.shape
    away, precision = np.empty(n_features), np.empty((n_classes, n_features, n_features))
    numerator = groups.scatter.copy()
    for c in range(len(members.n)):
        k = members.class_of[c]
        for a in range(n_features):
            away[a] = component_mean[c, a] - groups.mean[k, a]
        add_outer(numerator[k], away, believed.kappa1 * members.of_class[c])
    for k in range(n_classes):
        denominator = believed.degrees + n_features + 2.0 + groups.n[k]
        for a in range(n_features):
            away[a] = groups.mean[k, a] - believed.mean[a]
        add_outer(numerator[k], away, believed.kappa0)
        for a in range(n_features):
            for b in range(n_features):
                numerator[k, a, b] = (numerator[k, a, b] + believed.scale[a, b]) / denominator
        factorise(numerator[k])
        invert(numerator[k], precision[k])
    return precision


@njit(cache=True)
def _estimate_prior(groups, believed, precision):
    """μ̂0 and Ψ̂0; the data mean μ_p is the origin."""
    n_classes, n_features = groups.mean.shape
    kappa0, c1, free = believed.kappa0, believed.c1, believed.c2 - n_features
    whole, pulled = np.zeros((n_features, n_features)), np.zeros(n_features)
    for k in range(n_classes):
        for a in range(n_features):
            for b in range(n_features):
                weight = groups.share[k] * precision[k, a, b]
                whole[a, b] += weight
                pulled[a] += weight * groups.mean[k, b]
    sharp, blunt = np.empty((n_features, n_features)), np.empty((n_features, n_features))
    for a in range(n_features):
        for b in range(n_features):
            sharp[a, b] = c1 * believed.scale[a, b] + kappa0 * whole[a, b]
    factorise(sharp)
    invert(sharp, blunt)
    mean = np.zeros(n_features)
    for a in range(n_features):
        for b in range(n_features):
            mean[a] += kappa0 * blunt[a, b] * pulled[b]
    add_outer(whole, mean, c1)
    for a in range(n_features):
        whole[a, a] += free
    factorise(whole)
    invert(whole, blunt)
    for a in range(n_features):
        for b in range(n_features):
            blunt[a, b] *= free + believed.degrees
    return mean, blunt

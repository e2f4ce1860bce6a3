"""Classes and component means drawn given the partition, from noise."""

import math

import numpy as np
from numba import njit

from gibbsite.kernels.matrices import add_outer, factorise_back, solve_upper


@njit(nogil=True, cache=True)
def draw_classes(n, mean, scatter, class_of, prior, bartlett, noise, component_noise):
    """U_k, μ_k and μ_l of classes with these components.

    `prior` is (μ0, Ψ0, κ0, 1/κ1); `bartlett` (n_classes, d, d) a lower triangular Wishart root each; both noises are
    standard normal, and become μ_k and μ_l.
    """
    middle, scale, kappa0, spread = prior
    n_classes, n_features = noise.shape
    weight, total = np.full(n_classes, kappa0), np.empty((n_classes, n_features))
    whole, whiten = np.empty(bartlett.shape), np.zeros(bartlett.shape)
    for k in range(n_classes):
        for a in range(n_features):
            total[k, a] = kappa0 * middle[a]
            for b in range(n_features):
                whole[k, a, b] = scale[a, b] + kappa0 * middle[a] * middle[b]
    for c in range(len(n)):
        k, share = class_of[c], n[c] / (1.0 + spread * n[c])
        weight[k] += share
        for a in range(n_features):
            pull = share * mean[c, a]
            total[k, a] += pull
            for b in range(n_features):
                whole[k, a, b] += scatter[c, a, b] + pull * mean[c, b]
    for k in range(n_classes):
        add_outer(whole[k], total[k], -1.0 / weight[k])
        factorise_back(whole[k])
        _divide(bartlett[k], whole[k], whiten[k])
        solve_upper(whiten[k], noise[k])
        for a in range(n_features):
            noise[k, a] = total[k, a] / weight[k] + noise[k, a] / math.sqrt(weight[k])
    for c in range(len(n)):
        k, shrink = class_of[c], 1.0 + spread * n[c]
        solve_upper(whiten[k], component_noise[c])
        for a in range(n_features):
            expected = (noise[k, a] + spread * n[c] * mean[c, a]) / shrink
            component_noise[c, a] = expected + component_noise[c, a] * math.sqrt(spread / shrink)
    return whiten


@njit(cache=True, fastmath={"contract"})
def _divide(bartlett, root, whiten):
    """Set U = AᵀC⁻¹: with CCᵀ = Ψ, UᵀU = C⁻ᵀ AAᵀ C⁻¹ is the Wishart draw, and U is upper triangular as it stands."""
    n_features = len(root)
    for a in range(n_features):
        for b in range(a, n_features):
            whiten[a, b] = bartlett[b, a]
        for c in range(a, n_features):
            whiten[a, c] /= root[c, c]
            weight = whiten[a, c]
            for b in range(c + 1, n_features):
                whiten[a, b] -= weight * root[c, b]

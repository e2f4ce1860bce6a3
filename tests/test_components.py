"""The draw of weights, means and covariances, against the laws of its parts.

Quadratic forms of a draw have known distributions whatever the data (chi-squared and beta). Where a class lies and how
wide it is comes from the covariance of its pixels, without any sum over components. Each law is judged by
Kolmogorov's test; the smallest p-value may raise one false alarm in a thousand runs, were seeds drawn anew.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, chi2, kstest

from gibbsite import kernels
from gibbsite.components import Components, draw_components
from gibbsite.niw import Prior
from handmade_chains import STEP, prior, rules, state_of, tile

N_DRAWS = 2000
LABEL = np.array([0, 0, 0, 1, 2, 2, 2, 2, 3, 3])
CLASS_OF = np.array([0, 0, 1, 1])
SHOWN = np.array([True, True, True, False])


def class_given(x: np.ndarray, label: np.ndarray, given: Prior) -> tuple[np.ndarray, np.ndarray, float, float]:
    """μ̄_k, Ψ_k, κ_k and ν_k of a class of these pixels, by generalised least squares."""
    about_class = np.eye(len(x)) + given.spread * np.equal.outer(label, label)
    weight = np.linalg.solve(about_class, np.ones(len(x)))
    kappa = given.kappa0 + weight.sum()
    away = x - given.mean
    scale = given.scale + away.T @ np.linalg.solve(about_class + 1.0 / given.kappa0, away)
    return (given.kappa0 * given.mean + weight @ x) / kappa, scale, kappa, given.degrees + len(x)


def squares(away: np.ndarray, whiten: np.ndarray) -> np.ndarray:
    """(n,) awayᵀ Σ⁻¹ away, of draws."""
    return (np.einsum("nab,nb->na", whiten, away) ** 2).sum(1)


def p_values(draws: list[Components], x: np.ndarray, given: Prior) -> dict[str, float]:
    """Of each law."""
    d, out = x.shape[1], {}
    for k in range(2):
        whiten, centre = (np.array([getattr(one, name)[k] for one in draws]) for name in ("whiten", "centre"))
        rows = np.flatnonzero(CLASS_OF[LABEL] == k)
        mean, scale, kappa, degrees = class_given(x[rows], LABEL[rows], given)
        precision = whiten.swapaxes(1, 2) @ whiten
        last = 1.0 / np.linalg.inv(precision)[:, -1, -1] * scale[-1, -1]
        first = precision[:, 0, 0] / np.linalg.inv(scale)[0, 0]
        out[f"precision of class {k}"] = kstest(first, chi2(degrees).cdf).pvalue
        out[f"covariance of class {k}"] = kstest(last, chi2(degrees - d + 1).cdf).pvalue
        out[f"mean of class {k}"] = kstest(kappa * squares(centre - mean, whiten), chi2(d).cdf).pvalue
        for c in np.flatnonzero((k == CLASS_OF) & SHOWN):
            mine, kappa1 = x[c == LABEL], 1.0 / given.spread
            middle = (kappa1 * centre + mine.sum(0)) / (kappa1 + len(mine))
            away = np.array([one.mean[c] for one in draws]) - middle
            form = (kappa1 + len(mine)) * squares(away, whiten)
            out[f"mean of component {c}"] = kstest(form, chi2(d).cdf).pvalue
    tail = np.exp([one.log_tail for one in draws])
    out["tail"] = kstest(tail, beta(given.alpha + 2, 8).cdf).pvalue
    out["weight"] = kstest(np.exp([one.log_weight[0] for one in draws]), beta(3, given.alpha + 7).cdf).pvalue
    return out


@pytest.mark.parametrize("spread", [0.4, 2.0])
@pytest.mark.parametrize("n_features", [1, 3])
def test_a_draw_follows_the_laws_of_its_parts(n_features: int, spread: float) -> None:
    pixels, given, chosen = tile(len(LABEL), n_features), prior(n_features, spread=spread), rules(len(LABEL))
    state, generator = state_of(pixels, LABEL, CLASS_OF, chosen, given), np.random.default_rng(1)
    draws = [draw_components(state, chosen, generator, SHOWN) for _ in range(N_DRAWS)]
    found = p_values(draws, pixels.feature * STEP, given)
    worst = min(found, key=lambda name: found[name])
    print(f"worst of {len(found)} laws: {worst}, p = {found[worst]:.4f}")
    assert found[worst] > 1e-3 / len(found), worst


def test_a_class_lies_where_all_its_pixels_say_whatever_the_prior_mean() -> None:
    generator = np.random.default_rng(4)
    x, root = generator.normal(size=(10, 3)), generator.normal(size=(3, 3))
    given = replace(prior(3), mean=np.array([2.0, -1.0, 0.5]), scale=np.eye(3) + root @ root.T)
    n = np.bincount(LABEL).astype(np.float64)
    mean = np.array([x[c == LABEL].mean(0) for c in range(4)])
    scatter = np.array([n[c] * np.cov(x[c == LABEL].T, bias=True) if n[c] > 1 else np.zeros((3, 3)) for c in range(4)])
    centre, component = np.zeros((2, 3)), np.zeros((4, 3))
    about = (given.mean, given.scale, given.kappa0, given.spread)
    bartlett = np.tile(np.eye(3), (2, 1, 1))
    whiten = kernels.draw_classes(n, mean, scatter, CLASS_OF, about, bartlett, centre, component)
    for k in range(2):
        rows = np.flatnonzero(CLASS_OF[LABEL] == k)
        middle, scale, _, _ = class_given(x[rows], LABEL[rows], given)
        np.testing.assert_allclose(centre[k], middle, rtol=1e-10)
        np.testing.assert_allclose(np.linalg.inv(whiten[k].T @ whiten[k]), scale, rtol=1e-9)
        assert (whiten[k] == np.triu(whiten[k])).all()

"""The hyper-parameter estimates against the paper's equations, written out with loops."""

import numpy as np

from gibbsite import hyper
from gibbsite.hyper import HyperPrior
from gibbsite.statistics import Moments
from handmade_chains import prior

D = 3
CONSTANTS = HyperPrior(c1=0.1, c2=D + 2.0, alpha0=0.2 * D + 1, beta0=2.0 * D, alpha1=D + 1.0, beta1=2.0 * D, rounds=2)
CLASS_OF = np.array([0, 0, 1, 2, 2, 2])


def example() -> Moments:
    generator = np.random.default_rng(3)
    n = np.array([40.0, 7.0, 120.0, 1.0, 15.0, 30.0])
    roots = generator.normal(size=(6, D, D))
    scatter = n[:, None, None] * roots @ roots.swapaxes(1, 2) * (n > 1)[:, None, None]
    return Moments(n, generator.normal(size=(6, D)), scatter)


def by_the_paper(moments: Moments) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Eqs. hyper_estimation and hyper_estimation_hidden, term by term, with the data mean as origin."""
    given = prior(D)
    mu0, psi0, kappa0, kappa1 = given.mean, given.scale, given.kappa0, 1 / given.spread
    c, total = CONSTANTS, moments.n.sum()
    classes = [np.flatnonzero(k == CLASS_OF) for k in range(3)]
    n_k = [moments.n[ls].sum() for ls in classes]
    mu_k = [sum(moments.n[i] * moments.mean[i] for i in ls) / n for ls, n in zip(classes, n_k, strict=True)]
    for _ in range(c.rounds):
        mu_kl = [
            (mu_k[k] * kappa1 + moments.mean[i] * moments.n[i]) / (kappa1 + moments.n[i])
            for i, k in enumerate(CLASS_OF)
        ]
        mu_k = [
            (mu0 * kappa0 + kappa1 / n * sum(moments.n[i] * mu_kl[i] for i in ls)) / (kappa0 + kappa1)
            for ls, n in zip(classes, n_k, strict=True)
        ]
        sigma = []
        for k, ls in enumerate(classes):
            top = psi0 + kappa0 * np.outer(mu_k[k] - mu0, mu_k[k] - mu0)
            bottom = given.degrees + D + 2
            for i in ls:
                away = mu_kl[i] - mu_k[k]
                top = top + moments.n[i] / n_k[k] * (kappa1 * np.outer(away, away) + moments.scatter[i])
                bottom += moments.n[i] ** 2 / n_k[k]
            sigma.append(top / bottom)
        inverse = [np.linalg.inv(s) for s in sigma]
        pull = sum(n / total * s for n, s in zip(n_k, inverse, strict=True))
        mu0 = np.linalg.solve(
            c.c1 * psi0 + kappa0 * pull,
            kappa0 * sum(n / total * s @ m for n, s, m in zip(n_k, inverse, mu_k, strict=True)),
        )
        sigma0_inverse = (c.c2 - D) * np.eye(D)
        psi0 = (c.c2 - D + given.degrees) * np.linalg.inv(sigma0_inverse + c.c1 * np.outer(mu0, mu0) + pull)
        distance0 = sum(n / total * (m - mu0) @ s @ (m - mu0) for n, s, m in zip(n_k, inverse, mu_k, strict=True))
        kappa0 = (2 * (c.alpha0 - 1) + D) / (2 * c.beta0 + distance0)
        distance1 = sum(
            moments.n[i] / total * (mu_kl[i] - mu_k[k]) @ inverse[k] @ (mu_kl[i] - mu_k[k])
            for i, k in enumerate(CLASS_OF)
        )
        kappa1 = (2 * (c.alpha1 - 1) + D) / (2 * c.beta1 + distance1)
    return mu0, psi0, kappa0, kappa1


def test_estimates_are_those_of_the_papers_equations() -> None:
    found = hyper.estimate(example(), CLASS_OF, prior(D), CONSTANTS)
    mu0, psi0, kappa0, kappa1 = by_the_paper(example())
    np.testing.assert_allclose(found.mean, mu0, rtol=1e-10)
    np.testing.assert_allclose(found.scale, psi0, rtol=1e-10)
    np.testing.assert_allclose([found.kappa0, found.spread], [kappa0, 1 / kappa1], rtol=1e-10)


def test_kappas_never_fall_below_the_floor_and_keep_their_order_when_asked() -> None:
    spread_out = Moments(np.full(6, 50.0), 1e4 * example().mean, example().scatter)
    assert hyper.estimate(spread_out, CLASS_OF, prior(D), CONSTANTS).spread <= 1 / CONSTANTS.floor
    ordered = HyperPrior(c1=0.1, c2=5, alpha0=9, beta0=0.1, alpha1=1.5, beta1=30, is_ordered=True)
    found = hyper.estimate(example(), CLASS_OF, prior(D), ordered)
    assert 1 / found.spread >= found.kappa0

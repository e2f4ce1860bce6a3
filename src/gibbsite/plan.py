"""From settings to what a chain needs: its rules and its first prior."""

import hashlib

import numpy as np

from gibbsite.errors import SettingsError
from gibbsite.hyper import HyperPrior
from gibbsite.moves import block_size
from gibbsite.niw import Prior
from gibbsite.settings import Fit
from gibbsite.state import Rules

WRONG_LABELS = 0.01
"""Share of the labels that may be wrong where labelled pixels vote. What matters is that it is neither so small that a
pixel far out in another class stays with its own, nor so large that a small class is lost to its neighbours."""


def chain_seed(seed: int, chain: int) -> int:
    """A seed of its own for each chain."""
    return int.from_bytes(hashlib.sha256(f"chain {chain} of {seed}".encode()).digest()[:8], "little")


def first_prior(fit: Fit, n_features: int) -> Prior:
    """The vague prior of the paper: μ0 = 0, Ψ0 = I."""
    degrees = fit.degrees or n_features + 2.0
    if degrees <= n_features - 1:
        raise SettingsError(f"fit.degrees: found {degrees}, must be above n_features - 1 = {n_features - 1}")
    return Prior(
        mean=np.zeros(n_features),
        scale=np.eye(n_features),
        kappa0=fit.kappa0,
        spread=0.0 if fit.model == "igmm" else 1.0 / fit.kappa1,
        degrees=degrees,
        alpha=fit.alpha,
        gamma=fit.gamma,
    )


def chain_rules(fit: Fit, seed: int, sizes: tuple[int, int, int], step: float) -> Rules:
    """The rules of one chain over (n_pixels, n_features, n_known)."""
    n_pixels, n_features, n_known = sizes
    return Rules(
        seed=seed,
        step=step,
        n_known=n_known,
        n_pixels=n_pixels,
        constants=_constants(fit, n_features) if fit.model == "ai2gmm" else None,
        is_single=fit.model == "igmm",
        class_rule=fit.class_rule,
        birth_block=block_size(fit.birth_block, n_pixels),
        reach_weight=fit.reach_weight,
        # In igmm a component is a class, and no step lets labels name it: they keep to their class, as in the paper.
        trust=np.inf if fit.labels == "bind" or fit.model == "igmm" else np.log(1.0 / WRONG_LABELS - 1.0),
        split_every=fit.split_every,
    )


def _constants(fit: Fit, n_features: int) -> HyperPrior:
    c2 = fit.c2 or n_features + 2.0
    if c2 <= n_features:
        raise SettingsError(f"fit.c2: found {c2}, must be above the number of features, {n_features}")
    return HyperPrior(
        c1=fit.c1,
        c2=c2,
        alpha0=fit.alpha0 or 0.2 * n_features + 1.0,
        beta0=fit.beta0 or 2.0 * n_features,
        alpha1=fit.alpha1 or n_features + 1.0,
        beta1=fit.beta1 or 2.0 * n_features,
        is_ordered=fit.kappa1_at_least_kappa0,
    )


def n_sweeps(fit: Fit) -> tuple[int, int]:
    """Sweeps before the structure may be taken, and all sweeps."""
    return int(fit.burn_in * (fit.sweeps - 1)), fit.sweeps

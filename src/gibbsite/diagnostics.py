"""Whether chains have converged, and whether they tell the same story.

R-hat and effective sample size are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis
16: ranks make them sound for heavy tails and counts, and every chain is cut in halves, so that a single chain that
drifts is seen too. Traces are arrays (n_chains, n_draws) after burn-in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from gibbsite import evaluate
from gibbsite.statistics import Floats

FEWEST_DRAWS = 4
"""Draws per chain below which nothing can be said: a half has no variance then."""
HIGHEST_R_HAT = 1000.0
"""Stands for infinity, which JSON has not: chains that never move, each at its own value."""


@dataclass(frozen=True)
class Limits:
    """Beyond these a result deserves a warning."""

    r_hat: float = 1.05
    bulk_size: float = 100.0
    rand_index: float = 0.8


@dataclass(frozen=True)
class Mixing:
    """How chains explore one traced number; None when there are too few draws to tell."""

    r_hat: float | None
    """Near 1 when all chains, and both halves of each, have the same spread and place."""
    bulk_size: float | None
    """Independent draws that the chains together are worth."""


@dataclass(frozen=True)
class Agreement:
    """How alike two classifications of the same pixels are."""

    rand_index: float
    """Adjusted Rand index of the classes: 1 equal, 0 as by chance."""
    same_verdict: float
    """Share of pixels that both call known, or both unknown."""


def align(traces: Sequence[ArrayLike]) -> Floats:
    """(n_chains, n_draws) traces cut to the length of the shortest, their last draws kept."""
    arrays = [np.asarray(trace, np.float64) for trace in traces]
    shortest = min(map(len, arrays))
    return np.stack([array[len(array) - shortest :] for array in arrays])


def mixing(values: Floats) -> Mixing:
    """R-hat and bulk effective sample size of a trace (n_chains, n_draws)."""
    if values.shape[1] < FEWEST_DRAWS:
        return Mixing(None, None)
    return Mixing(r_hat(values), bulk_size(values))


def r_hat(values: Floats) -> float:
    """Rank-normalised split R-hat: the larger one of place and spread (ranks of the distance to the median)."""
    halves = _split(values)
    folded = np.abs(halves - np.median(halves))
    return min(HIGHEST_R_HAT, max(_potential_scale(_normal_scores(halves)), _potential_scale(_normal_scores(folded))))


def bulk_size(values: Floats) -> float:
    """Effective sample size of the rank-normalised half chains."""
    return effective_size(_normal_scores(_split(values)))


def effective_size(values: Floats) -> float:
    """Independent draws that chains (n_chains, n_draws) are worth for the mean of their values.

    Autocorrelations pooled over chains, summed up in pairs by Geyer's initial monotone sequence. Chains that do not
    move are worth all their draws if they agree.
    """
    n_chains, n_draws = values.shape
    if np.ptp(values) == 0.0:
        return float(values.size)
    covariance = _autocovariance(values).mean(0)
    between = values.mean(1).var(ddof=1) if n_chains > 1 else 0.0
    total = covariance[0] + between
    within = covariance[0] * n_draws / (n_draws - 1)
    correlation = 1.0 - (within - covariance) / total
    correlation[0] = 1.0
    # Of chains that alternate the estimate may be anything; the paper's bound.
    return float(values.size / max(_correlation_time(correlation), 1.0 / np.log10(values.size)))


def acceptance(counts: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> dict[str, dict[str, int]]:
    """Proposals and acceptances of each move, added up over sweeps and chains."""
    return {
        move: {"proposed": int(np.sum(proposed)), "accepted": int(np.sum(accepted))}
        for move, (proposed, accepted) in counts.items()
    }


def agreement(
    codes: tuple[NDArray[np.integer], NDArray[np.integer]],
    are_unknown: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> Agreement:
    """Agreement of two classifications: the pixels' classes, from 0, and whether they are of no known class."""
    one, other = codes
    counts = evaluate.confusion(one, other, (int(one.max()) + 1, int(other.max()) + 1))
    return Agreement(evaluate.adjusted_rand_index(counts), float((are_unknown[0] == are_unknown[1]).mean()))


def concerns(
    traced: Mapping[str, Mixing], pairs: Mapping[tuple[int, int], Agreement], limits: Limits | None = None
) -> list[str]:
    """What a reader should be warned of, one plain sentence per kind of trouble."""
    limits = limits or Limits()
    out = []
    r_hats = {name: found.r_hat for name, found in traced.items() if found.r_hat is not None}
    sizes = {name: found.bulk_size for name, found in traced.items() if found.bulk_size is not None}
    if len(r_hats) < len(traced):
        out.append("too few sweeps after burn-in to judge convergence; run more sweeps")
    unsettled = [f"{name} {value:.2f}" for name, value in r_hats.items() if value > limits.r_hat]
    if unsettled:
        out.append(
            f"chains have not settled: R-hat of {', '.join(unsettled)}, want {limits.r_hat} or less; run more sweeps"
        )
    few = [f"{value:.0f} for the {name}" for name, value in sizes.items() if value < limits.bulk_size]
    if few:
        out.append(
            f"few independent draws after burn-in: {', '.join(few)}, want {limits.bulk_size:.0f}; "
            "run more sweeps or chains"
        )
    unlike = [
        f"{one} and {other} ({found.rand_index:.2f})"
        for (one, other), found in pairs.items()
        if found.rand_index < limits.rand_index
    ]
    if unlike:
        out.append(
            f"chains draw different maps: adjusted Rand index of {', '.join(unlike)}, want {limits.rand_index} or "
            "more; trust only what they share, or run more sweeps"
        )
    return out


def _split(values: Floats) -> Floats:
    """(2 n_chains, n_draws // 2) first and last halves; the middle draw of an odd number is left out."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _normal_scores(values: Floats) -> Floats:
    """The values' ranks, as quantiles of a standard normal (Blom's plotting positions)."""
    rank = rankdata(values, axis=None).reshape(values.shape)
    return np.asarray(ndtri((rank - 0.375) / (values.size + 0.25)))


def _potential_scale(values: Floats) -> float:
    """Gelman and Rubin's ratio of the spread of all chains to that within them; infinite if none moves."""
    if not np.ptp(values, axis=1).any():
        return 1.0 if np.ptp(values) == 0.0 else np.inf
    n_draws = values.shape[1]
    within = values.var(1, ddof=1).mean()
    between = values.mean(1).var(ddof=1)
    return float(np.sqrt((n_draws - 1.0) / n_draws + between / within))


def _correlation_time(correlation: Floats) -> float:
    """Draws that are worth one independent draw, from the autocorrelations at lags 0, 1, ...

    Sums over neighbouring lags are positive and fall in every reversible chain (Geyer 1992); after the first that is
    not positive there is only noise.
    """
    pairs = correlation[: len(correlation) // 2 * 2].reshape(-1, 2).sum(1)
    # Nil but for rounding is not positive.
    is_noise = pairs <= 1e-12
    stop = int(is_noise.argmax()) if is_noise.any() else len(pairs)
    time = 2.0 * np.minimum.accumulate(pairs[:stop]).sum() - 1.0
    if stop < len(pairs):
        time += max(0.0, correlation[2 * stop])
    return float(time)


def _autocovariance(values: Floats) -> Floats:
    """(n_chains, n_draws) autocovariance at lags 0, 1, ..., divided by the number of draws at every lag."""
    n_draws = values.shape[1]
    away = values - values.mean(1, keepdims=True)
    # Padded to twice the length, so that the end of a chain does not meet its beginning.
    transform = np.fft.rfft(away, 2 * n_draws, axis=1)
    return np.fft.irfft(np.abs(transform) ** 2, 2 * n_draws, axis=1)[:, :n_draws] / n_draws

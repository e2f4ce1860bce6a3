"""Slow, obvious twins of the fast code, under the same names."""

from collections.abc import Iterator, Sequence
from math import log, log10
from statistics import NormalDist, median
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import multigammaln


def class_scores(counts: np.ndarray, observed_column: Sequence[int], is_known: Sequence[bool]) -> list[float]:
    """F1 of each truth class, cell by cell as eq. mean_f1 of the paper is written."""
    n_truth, n_predicted = counts.shape
    scores = []
    for k in range(n_truth):
        if observed_column[k] >= 0:
            column = observed_column[k]
        else:
            column, most = -1, 0
            for j in range(n_predicted):
                if not is_known[j] and counts[k][j] > most:
                    column, most = j, counts[k][j]
        row_sum = sum(int(counts[k][j]) for j in range(n_predicted))
        if row_sum == 0:
            scores.append(float("nan"))
        elif column < 0:
            scores.append(0.0)
        else:
            column_sum = sum(int(counts[i][column]) for i in range(n_truth))
            scores.append(2 * int(counts[k][column]) / (column_sum + row_sum))
    return scores


def confusion(truth: Sequence[int], predicted: Sequence[int], shape: tuple[int, int]) -> np.ndarray:
    """Counts, one pixel at a time."""
    counts = np.zeros(shape, int)
    for row, column in zip(truth, predicted, strict=True):
        counts[row, column] += 1
    return counts


# --- the sampler: slow, obvious twins and exhaustive enumeration ---


def set_partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All partitions of the items."""
    if not items:
        yield []
        return
    first, *rest = items
    for partition in set_partitions(rest):
        yield [[first], *partition]
        for i in range(len(partition)):
            yield [*partition[:i], [first, *partition[i]], *partition[i + 1 :]]


def two_level_partitions(n: int) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """All (components of points, classes of components): 1, 3, 12, 60, 358, 2471 for 1 .. 6 points."""
    for components in set_partitions(list(range(n))):
        for classes in set_partitions(list(range(len(components)))):
            yield components, classes


def log_seating(sizes: Sequence[int], concentration: float) -> float:
    """Log probability of one partition into groups of these sizes by a Chinese restaurant process, seat by seat."""
    seated, total = 0, 0.0
    for size in sizes:
        for taken in range(size):
            total += log((taken or concentration) / (concentration + seated))
            seated += 1
    return total


def log_evidence(x: np.ndarray, components: Sequence[Sequence[int]], prior: Any) -> float:
    """Log density of a class's pixels as one matrix t, without any sum over components.

    Given Σ the pixels are normal with covariance A ⊗ Σ: every pixel has its own noise (1), shares its component's place
    (1/κ1) and its class's place (1/κ0). Integrating over Σ ~ IW(Ψ0, m) gives the matrix t.
    """
    chosen = [i for component in components for i in component]
    group = [c for c, component in enumerate(components) for _ in component]
    n, d = len(chosen), x.shape[1]
    same = np.equal.outer(group, group)
    between = np.eye(n) + prior.spread * same + 1.0 / prior.kappa0
    away = x[chosen] - prior.mean
    scale = prior.scale + away.T @ np.linalg.solve(between, away)
    return float(
        multigammaln((prior.degrees + n) / 2, d)
        - multigammaln(prior.degrees / 2, d)
        - n * d / 2 * np.log(np.pi)
        - d / 2 * np.linalg.slogdet(between)[1]
        + prior.degrees / 2 * np.linalg.slogdet(prior.scale)[1]
        - (prior.degrees + n) / 2 * np.linalg.slogdet(scale)[1]
    )


def scan_block(*arguments: Any) -> tuple[np.ndarray, np.ndarray]:
    """The block scan by densities of whole components and classes; nothing is updated, all is computed anew."""
    x, (known, trust), uniform, label, explicit, loose_class, process, prior = arguments
    class_of, log_weight, whitened_mean, centre, whiten, _ = explicit
    log_tail, alpha, gamma, is_single = process
    given = SimpleNamespace(**dict(zip(("mean", "scale", "kappa0", "spread", "degrees"), prior, strict=True)))
    covariance = np.linalg.inv(np.swapaxes(whiten, 1, 2) @ whiten)
    mean = [centre[k] + np.linalg.solve(whiten[k], away) for k, away in zip(class_of, whitened_mean, strict=True)]
    label, loose_class, n_explicit, n_classes = label.copy(), loose_class.copy(), len(class_of), len(centre)

    def log_class(k: int, components: list[list[int]]) -> float:
        """Log density of pixels in loose components of a class, given its parameters if they were drawn."""
        if k not in class_of:
            return log_evidence(x, components, given) if components else 0.0
        total = 0.0
        for members in components:
            between = np.eye(len(members)) + given.spread
            middle = np.tile(centre[k], len(members))
            total += log_gaussian(x[members].ravel(), middle, np.kron(between, covariance[k]))
        return total

    for i in range(len(x)):
        label[i] = -1
        groups = [list(np.flatnonzero(label == n_explicit + j)) for j in range(len(loose_class))]
        loose_class[[not group for group in groups]] = -1
        n_tail, n_components = sum(map(len, groups)), n_explicit + sum(map(bool, groups))
        share = log_tail - log(alpha + n_tail)
        away = [0.0 if known[i] < 0 or known[i] == k else trust for k in range(n_classes + 1)]
        score = [-np.inf] * (n_explicit + len(groups) + n_classes + 1)
        for c, k in enumerate(class_of):
            score[c] = log_weight[c] + log_gaussian(x[i], mean[c], covariance[k]) - away[k]
        for k in range(n_classes + 1):
            mine = [j for j, of in enumerate(loose_class) if of == k]
            now = [groups[j] for j in mine]
            before = log_class(k, now)
            for j in mine:
                joined = log_class(k, [[*groups[h], i] if h == j else groups[h] for h in mine])
                score[n_explicit + j] = share + log(len(groups[j])) + joined - before - away[k]
            n_members = list(class_of).count(k) + len(mine)
            is_new = n_members == 0 and k in (n_classes, known[i])
            if not (n_members or is_new) or (is_single and not is_new) or -1 not in loose_class:
                continue
            seat = 0.0 if is_single else log((n_members or gamma) / (n_components + gamma))
            score[n_explicit + len(groups) + k] = (
                share + log(alpha) + seat + log_class(k, [*now, [i]]) - before - away[k]
            )
        odds = np.cumsum(np.exp(np.array(score) - max(score)))
        chosen = int(np.searchsorted(odds, uniform[i] * odds[-1], side="right"))
        if chosen >= n_explicit + len(groups):
            k = chosen - n_explicit - len(groups)
            free = min(j for j, of in enumerate(loose_class) if of < 0)
            loose_class[free], chosen = k, n_explicit + free
            n_classes += k == n_classes
        label[i] = chosen
    return label, loose_class


def draw_groups(n: int, concentration: float, generator: np.random.Generator) -> np.ndarray:
    """(n,) groups, numbered from 0 as they open, by a Chinese restaurant process."""
    group = np.zeros(n, int)
    for i in range(1, n):
        odds = np.append(np.bincount(group[:i]), concentration)
        group[i] = generator.choice(len(odds), p=odds / odds.sum())
    return group


def log_gaussian(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """log N(x; mean, covariance)."""
    away = x - mean
    _, log_det = np.linalg.slogdet(2 * np.pi * covariance)
    return float(-0.5 * log_det - 0.5 * away @ np.linalg.solve(covariance, away))


def sum_by_label(feature: np.ndarray, label: np.ndarray, n_components: int) -> tuple[np.ndarray, ...]:
    """n, Σx and Σxxᵀ of each component, in whole numbers."""
    n = np.zeros(n_components, int)
    total = np.zeros((n_components, feature.shape[1]), int)
    outer = np.zeros((n_components, feature.shape[1], feature.shape[1]), int)
    for x, c in zip(feature.astype(int), label, strict=True):
        n[c] += 1
        total[c] += x
        outer[c] += np.outer(x, x)
    return n, total, outer


def splitmix(key: int, rank: int) -> int:
    """The number that comes `rank` steps after `key` in SplitMix64 (Steele, Lea & Flood 2014)."""
    z = (key + rank * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def component_odds(x: np.ndarray, components: Any) -> np.ndarray:
    """(n_components,) odds of the components for one pixel, the best with 1."""
    log_odds = np.empty(len(components.class_of))
    for c, k in enumerate(components.class_of):
        white = components.whiten[k] @ (x - components.mean[c])
        log_odds[c] = components.log_weight[c] + np.log(np.diagonal(components.whiten[k])).sum() - 0.5 * white @ white
    return np.exp(log_odds - log_odds.max())


def class_probabilities(x: np.ndarray, components: Any) -> np.ndarray:
    """(n_pixels, n_classes) probabilities of the classes given drawn components."""
    out = np.zeros((len(x), len(components.centre)))
    for i, pixel in enumerate(x):
        for c, k in enumerate(components.class_of):
            covariance = np.linalg.inv(components.whiten[k].T @ components.whiten[k])
            out[i, k] += np.exp(components.log_weight[c] + log_gaussian(pixel, components.mean[c], covariance))
    return out / out.sum(1, keepdims=True)


# --- diagnostics: the formulas of Vehtari et al. (2021), sum by sum ---


def normal_scores(chains: list[list[float]]) -> list[list[float]]:
    """Φ⁻¹((r − 3/8)/(S + 1/4)) of each draw, r its rank among all S, ties sharing their mean rank."""
    everything = [value for one in chains for value in one]

    def score(value: float) -> float:
        below = sum(other < value for other in everything)
        equal = sum(other == value for other in everything)
        return NormalDist().inv_cdf((below + (equal + 1) / 2 - 0.375) / (len(everything) + 0.25))

    return [[score(value) for value in one] for one in chains]


def split(chains: list[list[float]]) -> list[list[float]]:
    """Both halves of each chain."""
    half = len(chains[0]) // 2
    return [one[:half] for one in chains] + [one[-half:] for one in chains]


def potential_scale(chains: list[list[float]]) -> float:
    """√(((N−1)/N · W + B/N) / W); 1 or infinite for chains that stand still, at one value or several."""
    if all(len(set(one)) == 1 for one in chains):
        return 1.0 if len({one[0] for one in chains}) == 1 else float("inf")
    n = len(chains[0])
    means = [sum(one) / n for one in chains]
    overall = sum(means) / len(means)
    between = n * sum((mean - overall) ** 2 for mean in means) / (len(means) - 1)
    within = sum(sum((v - m) ** 2 for v in one) / (n - 1) for one, m in zip(chains, means, strict=True)) / len(means)
    return float((((n - 1) / n * within + between / n) / within) ** 0.5)


def r_hat(chains: list[list[float]]) -> float:
    """The larger R-hat of ranks and of folded ranks."""
    halves = split(chains)
    middle = median(value for one in halves for value in one)
    folded = [[abs(value - middle) for value in one] for one in halves]
    return max(potential_scale(normal_scores(halves)), potential_scale(normal_scores(folded)))


def effective_size(chains: list[list[float]]) -> float:
    """M N / τ with τ by Geyer's initial monotone sequence, lag by lag."""
    m, n = len(chains), len(chains[0])
    means = [sum(one) / n for one in chains]

    def covariance(lag: int) -> float:
        total = 0.0
        for one, mean in zip(chains, means, strict=True):
            total += sum((one[i] - mean) * (one[i + lag] - mean) for i in range(n - lag)) / n
        return total / m

    within = covariance(0) * n / (n - 1)
    overall = sum(means) / m
    total = within * (n - 1) / n
    if m > 1:
        total += sum((mean - overall) ** 2 for mean in means) / (m - 1)
    correlation = [1.0] + [1.0 - (within - covariance(lag)) / total for lag in range(1, n)]
    time, lag, last = -1.0, 0, float("inf")
    while lag + 1 < n and correlation[lag] + correlation[lag + 1] > 1e-12:
        last = min(last, correlation[lag] + correlation[lag + 1])
        time += 2.0 * last
        lag += 2
    if lag + 1 < n:
        time += max(0.0, correlation[lag])
    return m * n / max(time, 1.0 / log10(m * n))

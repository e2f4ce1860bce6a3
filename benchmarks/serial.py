"""The yardstick: the paper's scheme as a slow, serial, collapsed sampler, beside ours.

Rows choose one by one among the components of *their class*, all parameters integrated out, and may open a component of
it; then components change class one by one. Unlabelled rows first meet one common Dirichlet process, whose components
are handed to the classes, the largest first. Nothing is drawn but the partition, nothing is parallel. So a gap in F1
between this sampler and ours under the same class rule comes from the mixing of our sweep or from our start; one that
both share comes from the model or the rule.

A row opens a component with the odds α, as the paper's class-wise Dirichlet process says, or with --opening model by
the prior of docs/method.md, α m_k/(L + γ). With that and the rule `evidence` the scheme is an exact sampler of the
model (tests/test_serial.py).
Usage: python benchmarks/serial.py [--data FOLDER] [--only NAME ...] [--model ai2gmm] [--sweeps 300] [--seeds 3]
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import lgamma, log, log1p, pi
from pathlib import Path

import numpy as np
from numba import njit
from numpy.random import Generator
from quality import DATA_SETS

from gibbsite import NonExhaustiveClassifier, hyper, niw, plan
from gibbsite.experiments import catalogue, data, protocol
from gibbsite.niw import Prior, Sums
from gibbsite.settings import Fit
from gibbsite.statistics import Moments

START_SWEEPS = 20
"""Of the common Dirichlet process of the unlabelled rows."""
KEPT = 20
"""Sweeps of the second half of a chain that vote for the class of a row."""


@njit(cache=True)
def class_posterior(n, total, outer, prior):
    """μ̄_k, R with RᵀR = Ψ_k⁻¹, κ_k and ν_k of a class; n, Σx of its components, Σxxᵀ of all its rows."""
    mean0, scale0, kappa0, spread, degrees = prior
    kappa, weighted = kappa0, kappa0 * mean0
    scale = scale0 + kappa0 * np.outer(mean0, mean0) + outer
    for c in range(len(n)):
        if n[c] > 0:
            weight, centre = n[c] / (1.0 + spread * n[c]), total[c] / n[c]
            kappa += weight
            degrees += n[c]
            weighted = weighted + weight * centre
            scale += (weight - n[c]) * np.outer(centre, centre)
    mean = weighted / kappa
    root = np.linalg.cholesky(scale - kappa * np.outer(mean, mean))
    return mean, np.linalg.inv(root), kappa, degrees


@njit(cache=True)
def log_predictives(x, n, total, given, spread):
    """(n_components + 1,) log density, a Student t, of one more row in each component of a class, and in a new one."""
    mean, inverse_root, kappa, degrees = given
    d, half = len(x), 0.5 * (degrees + 1.0)
    constant = lgamma(half) - lgamma(half - 0.5 * d) + np.log(np.diag(inverse_root)).sum()
    out = np.empty(len(n) + 1)
    for c in range(len(n) + 1):
        n_c = n[c] if c < len(n) else 0.0
        shrink = 1.0 + spread * n_c
        place = (mean + spread * total[c]) / shrink if n_c > 0 else mean
        blur = 1.0 + spread / shrink + 1.0 / (shrink * shrink * kappa)
        white = inverse_root @ (x - place)
        out[c] = constant - 0.5 * d * log(pi * blur) - half * log1p((white @ white) / blur)
    return out


@njit(cache=True)
def scan_class(x, label, uniform, prior, opening):
    """(n_rows,) components after each row of a class has left its own (-1: has none yet) and chosen anew.

    opening holds α, γ, the number of components in other classes, and whether the odds of a new component are α.
    """
    alpha, gamma, n_elsewhere, is_paper = opening
    label, n_used, room = label.copy(), label.max() + 1, label.max() + 1 + len(x)
    n, total, outer = np.zeros(room), np.zeros((room, x.shape[1])), np.zeros((x.shape[1], x.shape[1]))
    for i in range(len(x)):
        if label[i] >= 0:
            n[label[i]] += 1
            total[label[i]] += x[i]
            outer += np.outer(x[i], x[i])
    for i in range(len(x)):
        if label[i] >= 0:
            n[label[i]] -= 1
            total[label[i]] -= x[i]
            outer -= np.outer(x[i], x[i])
        given = class_posterior(n[:n_used], total, outer, prior)
        score = log_predictives(x[i], n[:n_used], total, given, prior[3])
        for c in range(n_used):
            score[c] = score[c] + log(n[c]) if n[c] > 0 else -np.inf
        n_mine = (n[:n_used] > 0).sum()
        is_free = is_paper or n_mine == 0
        score[n_used] += log(alpha) + (0.0 if is_free else log(n_mine / (n_elsewhere + n_mine + gamma)))
        odds = np.cumsum(np.exp(score - score.max()))
        chosen = np.searchsorted(odds, uniform[i] * odds[-1], side="right")
        n_used = max(n_used, chosen + 1)
        label[i] = chosen
        n[chosen] += 1
        total[chosen] += x[i]
        outer += np.outer(x[i], x[i])
    return label


def plain(prior: Prior) -> tuple[np.ndarray, np.ndarray, float, float, float]:
    """What the loops take of a prior."""
    return prior.mean, prior.scale, float(prior.kappa0), float(prior.spread), float(prior.degrees)


@dataclass(frozen=True)
class Seats:
    """A two-level partition of the rows."""

    label: np.ndarray
    """(n_rows,) component."""
    class_of: np.ndarray
    """(n_components,) id of its class; -1 for a component that is in none yet."""


@dataclass(frozen=True)
class Scheme:
    """What stays fixed during a chain."""

    x: np.ndarray
    """(n_rows, n_features)."""
    pin: np.ndarray
    """(n_rows,) known class of a row that pins its component, or -1."""
    rule: str
    """How components choose a class: 'evidence' or 'predictive'."""
    is_paper: bool
    """Whether a new component has the odds α."""

    def moments(self, seats: Seats) -> Moments:
        """Of all components."""
        groups = [self.x[seats.label == c] for c in range(len(seats.class_of))]
        mean = np.array([group.mean(0) for group in groups])
        away = [group - centre for group, centre in zip(groups, mean, strict=True)]
        return Moments(np.array([float(len(g)) for g in groups]), mean, np.array([a.T @ a for a in away]))

    def scan(self, seats: Seats, prior: Prior, generator: Generator, is_first: bool = False) -> Seats:
        """Every row chooses its component anew, class by class; at first they come to empty classes one by one."""
        label, class_of = np.empty_like(seats.label), []
        for k in np.unique(seats.class_of):
            rows = np.flatnonzero(seats.class_of[seats.label] == k)
            mine = np.full(len(rows), -1) if is_first else np.unique(seats.label[rows], return_inverse=True)[1]
            n_elsewhere = len(class_of) + (seats.class_of > k).sum()
            opening = (float(prior.alpha), float(prior.gamma), float(n_elsewhere), self.is_paper)
            found = scan_class(self.x[rows], mine, generator.random(len(rows)), plain(prior), opening)
            names, index = np.unique(found, return_inverse=True)
            label[rows] = len(class_of) + index
            class_of += [k] * len(names)
        return Seats(label, np.array(class_of))

    def change_classes(self, seats: Seats, prior: Prior, generator: Generator, fresh: int) -> Seats:
        """Every component without a row that pins chooses its class anew; ids from `fresh` on are not used yet.

        Components in no class yet choose first, the largest first; the others follow in random order.
        """
        moments, class_of = self.moments(seats), seats.class_of.copy()
        component = niw.component_sums(moments, prior)
        is_pinned = np.zeros(len(class_of), bool)
        is_pinned[seats.label[self.pin >= 0]] = True
        order = generator.permutation(np.flatnonzero(~is_pinned))
        for c in order[np.argsort(np.where(class_of < 0, -moments.n, 0.0)[order], kind="stable")]:
            others = np.flatnonzero((class_of >= 0) & (np.arange(len(class_of)) != c))
            ids, index, members = np.unique(class_of[others], return_inverse=True, return_counts=True)
            sums = niw.class_sums(component[others], index, len(ids) + 1)
            score = self._log_fit(self.x[seats.label == c], component[c], sums, prior)
            odds = np.cumsum(np.append(members, prior.gamma) * np.exp(score - score.max()))
            chosen = int(np.searchsorted(odds, generator.random() * odds[-1], side="right"))
            if chosen < len(ids):
                class_of[c] = ids[chosen]
            elif class_of[c] < 0 or class_of[c] in ids:
                # A component that was alone in its class and stays alone keeps the class's name.
                class_of[c], fresh = fresh, fresh + 1
        return Seats(seats.label, class_of)

    def _log_fit(self, x: np.ndarray, component: Sums, sums: Sums, prior: Prior) -> np.ndarray:
        """(n_classes,) log density of a component, of which these are the rows, in classes of these sums."""
        if self.rule == "evidence":
            return niw.log_evidence(sums + component, prior) - niw.log_evidence(sums, prior)
        given = niw.posterior(sums, prior)
        wide = replace(given, scale=given.scale * (1.0 + prior.spread + 1.0 / given.kappa)[:, None, None])
        away = x - given.mean[:, None]
        distance = ((away @ np.linalg.inv(wide.scale)) * away).sum(-1)
        return len(x) * niw.log_student_constant(wide) - 0.5 * (given.degrees + 1.0) * np.log1p(distance).sum(1)


def find_outliers(scheme: Scheme, seats: Seats, prior: Prior) -> np.ndarray:
    """(n_rows,) whether a labelled row is among the least likely fifth of its class."""
    is_outlier = np.zeros(len(scheme.x), bool)
    for k in np.unique(scheme.pin[scheme.pin >= 0]):
        rows = np.flatnonzero(scheme.pin == k)
        x, mine = scheme.x[rows], np.unique(seats.label[rows], return_inverse=True)[1]
        n = np.bincount(mine).astype(float)
        total = np.array([x[mine == c].sum(0) for c in range(len(n))])
        given = class_posterior(n, total, x.T @ x, plain(prior))
        density = [np.exp(log_predictives(row, n, total, given, prior.spread)) @ np.append(n, prior.alpha) for row in x]
        is_outlier[rows[np.argsort(density)[: len(rows) // 5]]] = True
    return is_outlier


def first_seats(scheme: Scheme, label: np.ndarray, prior: Prior, generator: Generator) -> tuple[Scheme, Seats]:
    """Labelled rows in components of their class, unlabelled ones in components of no class; outliers do not pin."""
    unlabelled, parts = label < 0, []
    for rows, sweeps in ((~unlabelled, 100), (unlabelled, START_SWEEPS)):
        own = replace(scheme, x=scheme.x[rows], pin=scheme.pin[rows])
        names, group = np.unique(label[rows], return_inverse=True)
        seats = Seats(group, names)
        for sweep in range(sweeps if rows.any() else 0):
            seats = own.scan(seats, prior, generator, is_first=sweep == 0)
        parts.append((own, seats))
    (own, known), (_, free) = parts
    seat, pin = np.empty(len(label), np.int64), label.copy()
    pin[np.flatnonzero(~unlabelled)[find_outliers(own, known, prior)]] = -1
    seat[~unlabelled], seat[unlabelled] = known.label, len(known.class_of) + free.label
    return replace(scheme, pin=pin), Seats(seat, np.append(known.class_of, free.class_of))


Found = tuple[np.ndarray, int, float, float]
"""Class of each row, known ones by their label; numbers of classes and components; highest joint of the second half."""


def run(x: np.ndarray, label: np.ndarray, fit: Fit, is_paper: bool, seed: int) -> Found:
    """One chain of the serial sampler on standardised rows."""
    generator = np.random.default_rng([5, seed])
    x = (x - x.mean(0)) / x.std(0)
    first = plan.first_prior(fit, x.shape[1])
    n_known = len(np.unique(label[label >= 0]))
    constants = plan.chain_rules(fit, seed, (len(x), x.shape[1], n_known), 1.0).constants
    scheme, seats = first_seats(Scheme(x, label, fit.class_rule, is_paper), label, first, generator)
    fresh = label.max() + 1
    seats, prior = scheme.change_classes(seats, first, generator, fresh), first
    kept, sizes, highest = [], [], -np.inf
    for sweep in range(1, fit.sweeps + 1):
        if constants is not None:
            index = np.unique(seats.class_of, return_inverse=True)[1]
            prior = hyper.estimate(scheme.moments(seats), index, prior, constants)
        seats = scheme.scan(seats, prior, generator)
        fresh = max(fresh, seats.class_of.max() + 1)
        seats = scheme.change_classes(seats, prior, generator, fresh)
        if sweep > fit.sweeps // 2:
            index = np.unique(seats.class_of, return_inverse=True)[1]
            highest = max(highest, niw.log_joint(scheme.moments(seats), index, prior))
            kept.append(seats.class_of[seats.label])
            sizes.append(len(seats.class_of))
    kept = np.array(kept[:: max(1, len(kept) // KEPT)])
    ids = np.unique(kept)
    labels = ids[np.argmax([(kept == k).sum(0) for k in ids], 0)]
    return labels, len(np.unique(labels)), float(np.mean(sizes)), highest


def ours(x: np.ndarray, label: np.ndarray, fit: Fit, seed: int) -> Found:
    """One chain of our sampler."""
    settings = {"class_rule": fit.class_rule, "labels": fit.labels}
    found = NonExhaustiveClassifier(fit.model, sweeps=fit.sweeps, chains=1, settings=settings, random_state=seed).fit(
        x, label
    )
    return found.labels_, len(found.classes_), float(found.n_components_.sum()), found.log_joint_


def main() -> None:
    """Print one table row per data set and number of observed classes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="*", default=["simulated", "vowel"])
    parser.add_argument("--observed", type=int, nargs="*", help="numbers of observed classes, if not the usual ones")
    parser.add_argument("--model", default="ai2gmm", choices=["i2gmm", "ai2gmm"])
    parser.add_argument("--opening", default="paper", choices=["paper", "model"])
    parser.add_argument("--sweeps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    fit = Fit(model=args.model, sweeps=args.sweeps)
    columns: dict[str, Callable[[np.ndarray, np.ndarray, int], Found]] = {}
    for rule in ("predictive", "evidence"):
        chosen = fit.model_copy(update={"class_rule": rule, "labels": "bind"})
        columns[f"serial {rule}"] = lambda x, y, seed, own=chosen: run(x, y, own, args.opening == "paper", seed)
        columns[f"ours {rule} bind"] = lambda x, y, seed, own=chosen: ours(x, y, own, seed)
    columns[f"ours {fit.class_rule} {fit.labels}"] = lambda x, y, seed: ours(x, y, fit, seed)
    jobs = {"simulated": ("simulated-1", (0, 4, 8))}
    jobs |= {name: (table, catalogue.observed_numbers(table)) for name, table in DATA_SETS.items()}
    print(f"| data | observed | {' | '.join(columns)} |\n|---|---|" + "---|" * len(columns), flush=True)
    for name in args.only:
        known_as, numbers = jobs[name]
        table = data.load(known_as, args.data or Path())
        for case in protocol.most_abundant(table, args.observed or numbers):
            print(f"| {name} | {len(case.observed)} |", end="", flush=True)
            for find in columns.values():
                cell = []
                for seed in range(1, args.seeds + 1):
                    task = protocol.pose(table, case, seed)
                    found = find(task.table.x, task.label, seed)
                    cell.append((float(np.nanmean(protocol.score(task, found[0]).f1)), *found[1:]))
                (f1, *sizes), (spread, *_) = np.mean(cell, 0), np.std(cell, 0)
                numbers_found = "{:.0f}, {:.0f}; {:.0f}".format(*sizes)
                print(f" {f1:.2f} ± {spread:.2f} ({numbers_found}) |", end="", flush=True)
            print(flush=True)


if __name__ == "__main__":
    main()

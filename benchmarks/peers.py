"""Time and quality beside scikit-learn's BayesianGaussianMixture on a simulated table.

(1) Time per sweep at N = 69,500, d = 12, 10 classes of 43 components: the difference of a long and a short run, so that
the start does not count. (2) Time to a solution, with the start, beside the variational Dirichlet process mixture of
scikit-learn with 60 components on the same rows: adjusted Rand index and normalised mutual information with the true
classes. The search for rare classes is one of the experiments (docs/experiments.md).
Usage: python benchmarks/peers.py [--threads 2] [--sweeps 100]
"""

import argparse
import time
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import BayesianGaussianMixture

from gibbsite import NonExhaustiveClassifier

Table = tuple[np.ndarray, np.ndarray]


def many_components(n: int = 69_500, d: int = 12, n_classes: int = 10, n_components: int = 43) -> Table:
    """Rows of classes with several components each, and their class."""
    generator = np.random.default_rng(1)
    class_of = np.sort(np.append(np.arange(n_classes), generator.integers(0, n_classes, n_components - n_classes)))
    size = generator.multinomial(n, generator.dirichlet(np.full(n_components, 2.0)))
    rows = []
    for k in range(n_classes):
        root = generator.normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
        centre = 6.0 * generator.normal(size=d)
        for c in np.flatnonzero(class_of == k):
            mean = centre + 1.5 * root @ generator.normal(size=d)
            rows.append(mean + generator.normal(size=(size[c], d)) @ root.T)
    order = generator.permutation(n)
    return np.concatenate(rows)[order], np.repeat(class_of, size)[order]


def seconds_to_fit(classifier: Any, rows: np.ndarray) -> float:
    """Wall time of a fit."""
    started = time.perf_counter()
    classifier.fit(rows)
    return time.perf_counter() - started


def time_sweeps(rows: np.ndarray, sweeps: int, threads: int) -> None:
    """Print the time per sweep of each model."""
    for model in ("ai2gmm", "i2gmm", "igmm"):
        short, long = (
            NonExhaustiveClassifier(model, sweeps=n, chains=1, n_jobs=threads) for n in (sweeps // 5, sweeps)
        )
        spent = [seconds_to_fit(classifier, rows) for classifier in (short, long)]
        per_sweep = (spent[1] - spent[0]) / (long.sweeps - short.sweeps)
        print(
            f"{model}, {threads} thread(s): {1e3 * per_sweep:.1f} ms per sweep; "
            f"{len(long.classes_)} classes, {long.n_components_.sum()} components",
            flush=True,
        )


def compare(rows: np.ndarray, truth: np.ndarray, sweeps: int, threads: int) -> None:
    """Print time to a solution and its quality, ours and scikit-learn's."""
    for name, classifier in (
        (f"ai2gmm, {sweeps} sweeps", NonExhaustiveClassifier(sweeps=sweeps, chains=1, n_jobs=threads)),
        (f"i2gmm, {sweeps} sweeps", NonExhaustiveClassifier("i2gmm", sweeps=sweeps, chains=1, n_jobs=threads)),
        (
            "BayesianGaussianMixture, 60 components",
            BayesianGaussianMixture(n_components=60, max_iter=200, random_state=1),
        ),
    ):
        seconds = seconds_to_fit(classifier, rows)
        label = classifier.predict(rows)
        rand, mutual = adjusted_rand_score(truth, label), normalized_mutual_info_score(truth, label)
        print(f"{name}: {seconds:.1f} s, {len(set(label))} classes, ARI {rand:.3f}, NMI {mutual:.3f}", flush=True)


def main() -> None:
    """Print all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=100)
    args = parser.parse_args()
    rows, truth = many_components()
    NonExhaustiveClassifier(sweeps=12).fit(rows[:500])  # compiles
    time_sweeps(rows, args.sweeps, args.threads)
    compare(rows, truth, args.sweeps, args.threads)


if __name__ == "__main__":
    main()

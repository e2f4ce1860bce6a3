"""Time and quality beside scikit-learn's BayesianGaussianMixture, and a rare-class search, on simulated tables.

(1) Seconds per sweep of ai2gmm and time to a solution at N = 69,500, d = 12, 10 classes of 43 components, beside the
variational Dirichlet process mixture of scikit-learn with 60 components on the same rows: adjusted Rand index and
normalised mutual information with the true classes. (2) Two classes of 0.1 % each beside one known class of 280,000
rows in 8-D, as in the paper's cytometry experiment. Usage: python benchmarks/peers.py [--threads 2] [--sweeps 100]
"""

import argparse
import time

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


def rare_classes(n: int = 280_000, d: int = 8, share: float = 0.001) -> Table:
    """One class of several components, known, and two rare ones apart from it."""
    generator = np.random.default_rng(2)
    n_rare = int(n * share)
    centre = generator.normal(size=(6, d))
    common = centre[generator.integers(0, 6, n)] + 0.7 * generator.normal(size=(n, d))
    places = centre[:2] + 5.0 * np.array([[1.0] + [0.0] * (d - 1), [0.0, -1.0] + [0.0] * (d - 2)])
    rare = [place + 0.5 * generator.normal(size=(n_rare, d)) for place in places]
    truth = np.repeat([0, 1, 2], [n, n_rare, n_rare])
    order = generator.permutation(len(truth))
    return np.concatenate([common, *rare])[order], truth[order]


def f1(truth: np.ndarray, found: np.ndarray, k: int, candidates: np.ndarray) -> float:
    """F1 of class k with the candidate that holds most of it."""
    mine = truth == k
    count = [(mine & (found == c)).sum() for c in candidates]
    best = candidates[int(np.argmax(count))]
    return float(2 * max(count) / (mine.sum() + (found == best).sum()))


def main() -> None:
    """Print both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=100)
    args = parser.parse_args()
    rows, truth = many_components()
    NonExhaustiveClassifier(sweeps=2).fit(rows[:500])  # compiles
    for name, classifier in (
        (f"ai2gmm, {args.sweeps} sweeps", NonExhaustiveClassifier(sweeps=args.sweeps, n_jobs=args.threads)),
        (f"i2gmm, {args.sweeps} sweeps", NonExhaustiveClassifier("i2gmm", sweeps=args.sweeps, n_jobs=args.threads)),
        (
            "BayesianGaussianMixture, 60 components",
            BayesianGaussianMixture(n_components=60, max_iter=200, random_state=1),
        ),
    ):
        started = time.perf_counter()
        label = classifier.fit(rows).predict(rows)
        seconds = time.perf_counter() - started
        rand, mutual = adjusted_rand_score(truth, label), normalized_mutual_info_score(truth, label)
        per_sweep = f", {1e3 * seconds / args.sweeps:.0f} ms per sweep" if "sweeps" in name else ""
        print(
            f"{name}: {seconds:.1f} s{per_sweep}, {len(set(label))} classes, ARI {rand:.3f}, NMI {mutual:.3f}",
            flush=True,
        )
    rows, truth = rare_classes()
    given = np.where((truth == 0) & (np.arange(len(truth)) % 5 == 0), 0, -1)
    for seed in (1, 2, 3):
        started = time.perf_counter()
        model = NonExhaustiveClassifier(sweeps=args.sweeps, n_jobs=args.threads, random_state=seed).fit(rows, given)
        hidden = given < 0
        found, new = model.labels_[hidden], model.classes_[~model.is_known_]
        scores = [f1(truth[hidden], found, 0, np.array([0])), *(f1(truth[hidden], found, k, new) for k in (1, 2))]
        spoken = ", ".join(f"{score:.2f}" for score in scores)
        seconds = time.perf_counter() - started
        print(f"rare, seed {seed}: F1 of known and rare {spoken}; {len(new)} new classes; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()

"""Mean F1 under the paper's protocol: a fifth of the observed classes labelled, all other rows scored.

Data: tables simulated as in the paper's appendix (2-D, 10 classes, 70 components, 3000 rows), and the real tables in a
folder given by --data (salinasA.npz, uci_*.npz, gvhd.npz as in its README). Columns without variance are dropped, the
rest standardised and projected on whitened principal components; rows are permuted by the seed, every fifth row of an
observed class is labelled, observed classes are the most abundant ones.
Usage: python benchmarks/quality.py [--data FOLDER] [--seeds 3] [--sets 10] [--sweeps 100] [--only NAME ...]
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import invwishart

from gibbsite import NonExhaustiveClassifier
from gibbsite.evaluate import class_scores

Table = tuple[np.ndarray, np.ndarray]
Configuration = tuple[str, str, str]
"""Model, class rule, what labels do."""
CONFIGURATIONS: list[Configuration] = [
    ("igmm", "reach", "bind"),
    ("i2gmm", "reach", "vote"),
    ("ai2gmm", "reach", "vote"),
    ("ai2gmm", "predictive", "bind"),
]


def simulated(seed: int) -> Table:
    """A table drawn as the paper's appendix says."""
    generator = np.random.default_rng(seed)
    while True:
        per_class = 1 + generator.multinomial(60, generator.dirichlet(np.ones(10)))
        class_of = np.repeat(np.arange(10), per_class)
        sizes = generator.multinomial(3000, generator.dirichlet(np.ones(70)))
        if np.bincount(class_of, weights=sizes).min() >= 5:
            break
    rows, labels = [], []
    for k in range(10):
        covariance = invwishart(4, np.eye(2)).rvs(random_state=generator)
        centre = generator.multivariate_normal(np.zeros(2), covariance / 0.01)
        for c in np.flatnonzero(class_of == k):
            mean = generator.multivariate_normal(centre, covariance / 0.3)
            rows.append(generator.multivariate_normal(mean, covariance, sizes[c]))
            labels += [k] * int(sizes[c])
    return np.concatenate(rows), np.array(labels)


def whitened(x: np.ndarray, n_features: int) -> np.ndarray:
    """Whitened principal components of the standardised columns that vary."""
    x = x[:, x.std(0) > 0].astype(float)
    left, _, _ = np.linalg.svd((x - x.mean(0)) / x.std(0), full_matrices=False)
    return left[:, :n_features] * np.sqrt(len(x))


def salinas(folder: Path) -> Table:
    """The labelled pixels of Salinas-A, 10 components."""
    scene = np.load(folder / "scenes" / "salinasA.npz")
    label = scene["gt"].ravel()
    cube = scene["cube"].reshape(len(label), -1)
    return whitened(cube[label > 0], 10), label[label > 0]


def uci(name: str, n_features: int, folder: Path) -> Table:
    """A UCI table."""
    table = np.load(folder / "tables" / f"uci_{name}.npz")
    x = table["X"][:, 3:] if name == "vowel" else table["X"]
    return whitened(x, n_features), table["y"]


def gvhd(folder: Path) -> Table:
    """The gated cells of the first GvHD sample."""
    table = np.load(folder / "tables" / "gvhd.npz")
    mine = (table["sample"] == np.unique(table["sample"])[0]) & (table["y"] > 0)
    return whitened(table["X"][mine], 6), table["y"][mine]


REAL: dict[str, tuple[Callable[[Path], Table], tuple[int, ...]]] = {
    "Salinas-A": (salinas, (0, 3, 6)),
    "segment": (partial(uci, "segment", 8), (0, 3, 7)),
    "vowel": (partial(uci, "vowel", 10), (0, 5, 11)),
    "satimage": (partial(uci, "satimage", 10), (0, 3, 6)),
    "GvHD 1": (gvhd, (0, 2, 4)),
}


def protocol(table: Table, n_observed: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in the seed's order, their true classes, and their labels: every fifth row of the observed classes."""
    order = np.random.default_rng(seed).permutation(len(table[1]))
    x, truth = table[0][order], np.unique(table[1][order], return_inverse=True)[1]
    label = np.full(len(x), -1)
    for k in np.argsort(-np.bincount(truth), kind="stable")[:n_observed]:
        label[np.flatnonzero(truth == k)[::5]] = k
    return x, truth, label


def mean_f1(truth: np.ndarray, label: np.ndarray, found: np.ndarray) -> float:
    """Of the rows without label: known classes keep their label in what was found, other ids are discovered classes."""
    observed, rows = np.unique(label[label >= 0]), label < 0
    classes = np.union1d(observed, found)
    counts = np.zeros((truth.max() + 1, len(classes)), np.int64)
    np.add.at(counts, (truth[rows], np.searchsorted(classes, found[rows])), 1)
    column = np.array([np.searchsorted(classes, k) if k in observed else -1 for k in range(len(counts))])
    return float(np.nanmean(class_scores(counts, column, np.isin(classes, observed)).f1))


def score(
    table: Table, n_observed: int, configuration: Configuration, sweeps: int, seed: int
) -> tuple[float, int, int]:
    """Mean F1 over the rows not labelled, and the numbers of classes and components found."""
    x, truth, label = protocol(table, n_observed, seed)
    model, rule, labels = configuration
    settings = {"labels": labels}
    classifier = NonExhaustiveClassifier(model, sweeps=sweeps, class_rule=rule, settings=settings, random_state=seed)
    found = classifier.fit(x, label)
    return mean_f1(truth, label, found.labels_), len(found.classes_), int(found.n_components_.sum())


def main() -> None:
    """Print one table row per data set and number of observed classes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3, help="of each real table")
    parser.add_argument("--sets", type=int, default=10, help="simulated tables")
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    jobs = {"simulated": ([simulated(1000 + seed) for seed in range(args.sets)], (0, 2, 4, 6, 8, 10))}
    if args.data:
        jobs |= {name: ([load(args.data)] * args.seeds, observed) for name, (load, observed) in REAL.items()}
    titles = " | ".join(" ".join(one) for one in CONFIGURATIONS)
    print(f"| data | observed | {titles} |\n|---|---|" + "---|" * len(CONFIGURATIONS), flush=True)
    with ProcessPoolExecutor(2) as pool:
        for name, (tables, numbers) in jobs.items():
            if args.only and name not in args.only:
                continue
            for n_observed in numbers:
                cells = []
                for configuration in CONFIGURATIONS:
                    run = partial(score, n_observed=n_observed, configuration=configuration, sweeps=args.sweeps)
                    pending = [pool.submit(run, table, seed=seed) for seed, table in enumerate(tables, 1)]
                    f1, classes, components = np.array([task.result() for task in pending]).T
                    cells.append(f"{f1.mean():.2f} ± {f1.std():.2f} ({classes.mean():.0f}, {components.mean():.0f})")
                print(f"| {name} | {n_observed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

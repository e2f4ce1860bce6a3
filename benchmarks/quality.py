"""Mean F1 under the paper's protocol: a fifth of the observed classes labelled, all other rows scored.

Data: tables simulated as in the paper's appendix (2-D, 10 classes, 70 components, 3000 rows), and the real tables in a
folder given by --data (salinasA.npz, uci_*.npz, gvhd.npz as in its README). Columns without variance are dropped, the
rest standardised and projected on whitened principal components; rows are permuted by the seed, every fifth row of an
observed class is labelled, observed classes are the most abundant ones.
Usage: python benchmarks/quality.py [--data FOLDER] [--seeds 3] [--sets 10] [--sweeps 100] [--only NAME ...]
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from gibbsite import NonExhaustiveClassifier
from gibbsite.experiments import catalogue, data, protocol
from gibbsite.experiments.table import Table

Configuration = tuple[str, str, str]
"""Model, class rule, what labels do."""
CONFIGURATIONS: list[Configuration] = [
    ("igmm", "reach", "bind"),
    ("i2gmm", "reach", "vote"),
    ("ai2gmm", "reach", "vote"),
    ("ai2gmm", "predictive", "bind"),
]


DATA_SETS = {"Salinas-A": "salinas", "segment": "segment", "vowel": "vowel", "satimage": "satimage", "GvHD 1": "gvhd-1"}


def score(
    table: Table, n_observed: int, configuration: Configuration, sweeps: int, seed: int
) -> tuple[float, int, int]:
    """Mean F1 over the rows not labelled, and the numbers of classes and components found."""
    (case,) = protocol.most_abundant(table, [n_observed])
    task = protocol.pose(table, case, seed)
    model, rule, labels = configuration
    settings = {"labels": labels}
    classifier = NonExhaustiveClassifier(model, sweeps=sweeps, class_rule=rule, settings=settings, random_state=seed)
    found = classifier.fit(task.table.x, task.label)
    mean_f1 = float(np.nanmean(protocol.score(task, found.labels_).f1))
    return mean_f1, len(found.classes_), int(found.n_components_.sum())


def main() -> None:
    """Print one table row per data set and number of observed classes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3, help="of each real table")
    parser.add_argument("--sets", type=int, default=10, help="simulated tables")
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    sets = [data.load(f"simulated-{number}", Path()) for number in range(1, args.sets + 1)]
    jobs = {"simulated": (sets, catalogue.observed_numbers("simulated"))}
    for name, table in DATA_SETS.items() if args.data else ():
        jobs[name] = ([data.load(table, args.data)] * args.seeds, catalogue.observed_numbers(table))
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

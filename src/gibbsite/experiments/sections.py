"""What the page says of each experiment: its tables, figures and a few words. Files are written on the way."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from gibbsite import store
from gibbsite.experiments import crism, figures, peers, simulated, summary
from gibbsite.experiments.crism import Mapped
from gibbsite.experiments.data import SIMULATED_FROM
from gibbsite.experiments.figures import MODEL_TITLES
from gibbsite.experiments.page import Section, short
from gibbsite.experiments.plan import MODELS

Frame = pd.DataFrame
TITLES = MODEL_TITLES | peers.TITLES


def write_table(folder: Path, name: str, found: Frame) -> Frame:
    """The table, after writing it as tables/NAME.csv."""
    store.write_text(folder / "tables" / f"{name}.csv", found.to_csv(index=False, lineterminator="\n"))
    return found


def of_simulated(scores: Mapping[str, Frame], folder: Path) -> Section:
    """The paper's figure of simulated data."""
    found = write_table(folder, "simulated", summary.simulated(scores["simulated"]))
    figures.scatter(folder / "figures" / "simulated_scatter", simulated.two_layers(SIMULATED_FROM + 1))
    figures.observed_curves(folder / "figures" / "simulated_f1", found)
    n_tables = scores["simulated"]["table"].nunique()
    return Section(
        "Simulated data",
        f"2-D, 10 classes, 70 components, 3000 rows, drawn as the paper's appendix says. {n_tables} tables.",
        (
            (
                "figures/simulated_scatter",
                "The first table. Solid: two standard deviations of a class; dashed: one of a component.",
            ),
            (
                "figures/simulated_f1",
                "Mean F1 by the number of observed classes, with the standard deviation over tables.",
            ),
        ),
        (("Mean F1 ± standard deviation over tables, and the authors' program on three other tables", beside(found)),),
    )


def of_benchmarks(scores: Mapping[str, Frame], folder: Path) -> Section:
    """The paper's table of benchmarks."""
    found = write_table(folder, "benchmarks", summary.benchmarks(scores["benchmarks"]))
    whole = write_table(folder, "benchmarks_overall", summary.overall(found))
    speed = write_table(folder, "convergence", summary.convergence(scores["benchmarks"]))
    figures.benchmark_dots(folder / "figures" / "benchmarks", found)
    return Section(
        "Benchmarks",
        "Real tables; columns standardised and projected on whitened principal components. The paper's three tables "
        "are read when they are brought; the others stand in for them.",
        (("figures/benchmarks", "Mean F1; rings: the authors' program."),),
        (
            ("Mean F1 ± standard deviation over seeds; paper and program as IGMM / I²GMM / AI²GMM", beside(found)),
            ("Means over the lines of that table", named(whole, "model")),
            ("Sweeps after which the joint had made 99 % of its rise (median over chains and cases)", named(speed)),
        ),
    )


def of_cytometry(scores: Mapping[str, Frame], folder: Path) -> Section:
    """The paper's search for rare cells."""
    found = write_table(folder, "cytometry", summary.cytometry(scores["cytometry"]))
    return Section(
        "Cytometry",
        "Two samples of one common phenotype; the first is labelled whole, the second also holds two rare ones, 0.1 % "
        "of it together. The number of a search is how far they lie from the middle of one of the common phenotype's "
        "six Gaussians, whose standard deviation is 0.7. The paper's data are others: its figures are for orientation.",
        (),
        (("F1 of each class over the second sample", named(found, "model")),),
    )


def of_discovery(scores: Mapping[str, Frame], folder: Path) -> Section:
    """Each class hidden in turn."""
    found = write_table(folder, "discovery", summary.discovery(scores["discovery"]))
    each = write_table(folder, "hidden_classes", summary.hidden_classes(scores["discovery"]))
    total = found.groupby("method", sort=False)[["hidden", "found"]].sum()
    methods = {str(name): TITLES[str(name)] for name in total.index}
    figures.shares_found(folder / "figures" / "discovery", methods, total["found"].tolist(), total["hidden"].tolist())
    return Section(
        "Discovery of unseen classes",
        "Each class is hidden in turn while all others are observed. It counts as found when a new class matches it "
        "with an F1 above 0.5. False classes: other new classes with at least 1 % of the scored rows. Rows lost: share "
        "of the observed classes' rows that ended in new classes, or in none.",
        (("figures/discovery", "Hidden classes found, all tables together."),),
        (("By method", named(found, "method")), ("F1 of each hidden class", named(each))),
    )


def of_ablations(scores: Mapping[str, Frame], folder: Path) -> Section:
    """One thing changed at a time."""
    found = write_table(folder, "ablations", summary.ablations(scores["ablations"]))
    figures.changes(folder / "figures" / "ablations", found)
    return Section(
        "Ablations",
        "AI²GMM with one thing changed, about half of the classes observed; changes are paired by table and seed. "
        "Labelled rows are not scored, so where another share is labelled, other rows are: one and the same map then "
        "differs by up to .01 (5 %) and .03 (50 %).",
        (("figures/ablations", "Change of the mean F1 against the default."),),
        (("Mean F1 by table, and the mean change with its standard error", named(found.drop(columns="variant"))),),
    )


def of_peers(scores: Mapping[str, Frame], folder: Path) -> Section:
    """Other methods under the same protocol."""
    found = write_table(folder, "peers", summary.peers(scores))
    return Section(
        "Peers",
        "Other methods under the same protocol. Clusters are named by their labelled rows; closed-set classifiers "
        "cannot find a new class; open-set ones have a single one. Ours: the first seed of the benchmarks.",
        (),
        (
            (
                "Mean F1 over tables with no, about half and all classes observed; hidden classes found",
                named(found, "method"),
            ),
        ),
    )


def of_crism(mapped: Mapping[str, Mapped], folder: Path) -> Section:
    """The simulated scene through the whole pipeline."""
    found = write_table(folder, "crism", crism.table(mapped))
    figures.new_spectra(folder / "figures" / "crism_spectra", mapped)
    return Section(
        "CRISM",
        "A simulated observation in sensor space through the whole pipeline: six labelled minerals, one without label, "
        "one rare, and a false band at 2.1 µm in a few detector columns. A fifth of the labelled pixels is shown.",
        (
            (
                "figures/crism_spectra",
                "Ratioed mean spectra of new classes without continuum. Blue: stands for a planted class; red: flagged "
                "as a suspected artefact; grey: other new classes, the largest.",
            ),
        ),
        (("Held-out labelled pixels beside the paper's; planted classes over the whole scene", named(found, "model")),),
    )


SECTIONS: dict[str, Callable[[Mapping[str, Frame], Path], Section]] = {
    "simulated": of_simulated,
    "benchmarks": of_benchmarks,
    "cytometry": of_cytometry,
    "discovery": of_discovery,
    "ablations": of_ablations,
    "peers": of_peers,
}


def beside(found: Frame) -> Frame:
    """A table of models with mean and spread in one cell, and what others report in one cell each."""
    told = found[[name for name in ("table", "observed") if name in found]].copy()
    for model in MODELS:
        told[MODEL_TITLES[model]] = [
            short(f"{mean:.3f} ± {spread:.3f}" if n > 1 else f"{mean:.3f}")
            for mean, spread, n in zip(found[model], found[f"{model}_sd"], found["repeats"], strict=True)
        ]
    for source, digits in (("paper", 3), ("program", 2)):
        columns = found[[f"{model}_{source}" for model in MODELS]]
        if columns.notna().to_numpy().any():
            told[source] = [
                "" if row.isna().any() else short(" / ".join(f"{value:.{digits}f}" for value in row))
                for _, row in columns.iterrows()
            ]
    return told.assign(repeats=found["repeats"])


def named(found: Frame, column: str | None = None) -> Frame:
    """The table with methods and columns called as people call them."""
    told = found.rename(
        columns=MODEL_TITLES | {str(name): str(name).replace("_", " ") for name in found if name not in MODELS}
    )
    if column:
        told[column] = [TITLES.get(str(name), name) for name in found[column]]
    return told

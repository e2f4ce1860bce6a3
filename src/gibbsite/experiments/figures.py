"""Figures of the experiments, in the look of the report's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.patches
import matplotlib.ticker
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gibbsite.experiments.crism import Mapped
from gibbsite.experiments.plan import MODELS
from gibbsite.experiments.simulated import TwoLayers
from gibbsite.figures import DPI, LOOK, save
from gibbsite.palette import class_colours

MODEL_COLOURS = {"igmm": "#8a8f98", "i2gmm": "#2f7fb8", "ai2gmm": "#c2491d"}
MODEL_TITLES = {"igmm": "IGMM", "i2gmm": "I²GMM", "ai2gmm": "AI²GMM"}


def scatter(path: Path, drawn: TwoLayers) -> None:
    """The simulated rows by class, with contours of classes (solid) and of components (dashed)."""
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(7.5, 5.4), dpi=DPI, layout="constrained")
        axes = figure.subplots()
        shades = class_colours(len(drawn.covariance) // 2, len(drawn.covariance) - len(drawn.covariance) // 2)
        for k, shade in enumerate(shades):
            rows = drawn.table.x[drawn.table.truth == k]
            axes.plot(*rows.T, ".", color=shade, markersize=2.2, alpha=0.55, zorder=1)
            _ellipse(axes, (rows.mean(0), np.cov(rows.T)), 2.0, {"edgecolor": shade, "linewidth": 1.6})
            for component in np.flatnonzero((drawn.class_of == k) & (drawn.size > 0)):
                law = (drawn.mean[component], drawn.covariance[k])
                _ellipse(axes, law, 1.0, {"edgecolor": "#1d2530", "linewidth": 0.6, "linestyle": "--"})
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title(f"{len(drawn.table.x)} rows, {len(drawn.covariance)} classes, {len(drawn.class_of)} components")
        save(figure, path)


def observed_curves(path: Path, found: pd.DataFrame) -> None:
    """Mean F1 against the number of observed classes; bands of one standard deviation, the authors' program dashed."""
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(7.0, 4.6), dpi=DPI, layout="constrained")
        axes = figure.subplots()
        for model in MODELS:
            x, mean, spread = (found[name].to_numpy(float) for name in ("observed", model, f"{model}_sd"))
            shade = MODEL_COLOURS[model]
            axes.fill_between(x, mean - spread, mean + spread, color=shade, alpha=0.12, linewidth=0)
            axes.plot(x, mean, "o-", color=shade, linewidth=1.8, markersize=5, label=MODEL_TITLES[model])
            program = found[f"{model}_program"].astype(float).to_numpy()
            axes.plot(x, program, "--", color=shade, linewidth=1.1, label=f"{MODEL_TITLES[model]}, authors' program")
        axes.set_xlabel("Observed classes")
        axes.set_ylabel("Mean F1")
        axes.grid(visible=True)
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside upper center", frameon=False, fontsize=8.5, ncols=3
        )
        save(figure, path)


def benchmark_dots(path: Path, found: pd.DataFrame) -> None:
    """Mean F1 of the three models, a line per table and number of observed classes; the program's as open rings."""
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(7.5, 1.4 + 0.23 * len(found)), dpi=DPI, layout="constrained")
        axes = figure.subplots()
        y = np.arange(len(found))[::-1]
        for model in MODELS:
            shade = MODEL_COLOURS[model]
            axes.plot(found[model].astype(float), y, "o", color=shade, markersize=6, label=MODEL_TITLES[model])
            axes.plot(
                found[f"{model}_program"].astype(float), y, "o", markerfacecolor="none", markeredgecolor=shade,
                markersize=8, label=f"{MODEL_TITLES[model]}, authors' program",
            )  # fmt: skip
        axes.set_yticks(
            y, [f"{table}, {n} observed" for table, n in zip(found["table"], found["observed"], strict=True)]
        )
        axes.set_ylim(-0.8, len(found) - 0.2)
        axes.set_xlabel("Mean F1")
        axes.grid(visible=True)
        axes.set_axisbelow(True)
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside upper center", frameon=False, fontsize=8.5, ncols=3
        )
        save(figure, path)


def shares_found(path: Path, methods: Mapping[str, str], n_found: list[int], n_hidden: list[int]) -> None:
    """The share of hidden classes that each method (name -> title) found."""
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(7.5, 0.9 + 0.3 * len(methods)), dpi=DPI, layout="constrained")
        axes = figure.subplots()
        y = np.arange(len(methods))[::-1]
        share = np.divide(n_found, n_hidden)
        axes.barh(y, share, color=[MODEL_COLOURS.get(name, "#c9ced6") for name in methods], height=0.62)
        for place, value, found, hidden in zip(y, share, n_found, n_hidden, strict=True):
            axes.annotate(
                f"{found} of {hidden}", (value, place), xytext=(5, 0), textcoords="offset points", va="center",
                fontsize=8.5,
            )  # fmt: skip
        axes.set_yticks(y, list(methods.values()))
        axes.set_xlim(0, 1.12)
        axes.set_xlabel("Share of hidden classes found")
        save(figure, path)


def changes(path: Path, found: pd.DataFrame) -> None:
    """What each change does to the mean F1, with two standard errors."""
    told = found[found["variant"] != "default"]
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(8.5, 0.9 + 0.3 * len(told)), dpi=DPI, layout="constrained")
        axes = figure.subplots()
        y = np.arange(len(told))[::-1]
        error = 2 * told["standard_error"].astype(float).fillna(0.0)
        axes.axvline(0.0, color="#8a8f98", linewidth=0.8)
        axes.errorbar(
            told["change"].astype(float), y, xerr=error, fmt="o", color="#c2491d", ecolor="#c9ced6", capsize=3
        )
        axes.set_yticks(y, told["what"])
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(6))
        axes.set_xlabel("Change of the mean F1 of AI²GMM (two standard errors)")
        axes.grid(visible=True, axis="x")
        save(figure, path)


def new_spectra(path: Path, mapped: Mapping[str, Mapped]) -> None:
    """Mean spectra of the new classes, without continuum, of each model; those that stand for a true class by name."""
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(12.0, 6.0), dpi=DPI, layout="constrained")
        for axes, (model, result) in zip(
            figure.subplots(1, len(mapped), squeeze=False)[0], mapped.items(), strict=True
        ):
            _draw_new(axes, result)
            axes.set_title(MODEL_TITLES[model])
        save(figure, path)


def _draw_new(axes: Any, result: Mapped) -> None:
    axes.axvspan(2.09, 2.16, color="#fbeee8", linewidth=0)
    told = [name for name in result.stands_for if name in result.spectra]
    others = [name for name in result.spectra if name not in result.stands_for]
    for row, name in enumerate([*told, *others[: max(0, 9 - len(told))]][::-1]):
        values = result.spectra[name]
        shade = "#c2491d" if name in result.flagged else "#2f7fb8" if name in told else "#a9b0ba"
        step = 0.16 * row
        axes.plot(result.wavelength, values - np.nanmedian(values) + step, color=shade, linewidth=1.3)
        truth = result.stands_for.get(name)
        label = f"{name}: {truth}" if truth else name
        axes.annotate(
            label + (" (flagged)" if name in result.flagged else ""), (1.0, step), xytext=(4, 9),
            textcoords="offset points", fontsize=8, color=shade,
        )  # fmt: skip
    axes.set_xlim(1.0, 2.6)
    axes.set_xlabel("Wavelength (µm)")
    axes.tick_params(labelleft=False, left=False)


def _ellipse(axes: Any, law: tuple[np.ndarray, np.ndarray], radius: float, style: Mapping[str, Any]) -> None:
    """A contour of a Gaussian at so many standard deviations."""
    mean, covariance = law
    value, vector = np.linalg.eigh(covariance)
    width, height = 2 * radius * np.sqrt(np.maximum(value, 0.0))
    angle = np.degrees(np.arctan2(vector[1, 0], vector[0, 0]))
    axes.add_patch(
        mpl.patches.Ellipse((float(mean[0]), float(mean[1])), width, height, angle=angle, fill=False, zorder=2, **style)
    )

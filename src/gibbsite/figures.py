"""Figures for a paper, drawn with matplotlib."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.palette import ink
from gibbsite.spectra import ClassSpectra, Floats, end_of, open_gaps, spread_out

DPI = 160
WIDTH = 11.25
"""Inches; 1800 pixels."""

_LOOK = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": "#8a8f98",
    "axes.labelcolor": "#1d2530",
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "grid.color": "#e4e7ec",
    "grid.linewidth": 0.7,
    "xtick.color": "#4a5361",
    "ytick.color": "#4a5361",
}

Classes = Sequence[Mapping[str, Any]]


def write_spectra(path: Path, spectra: ClassSpectra, classes: Classes) -> None:
    """Draw mean I/F with its spread beside the ratioed means, and write them as PNG."""
    with mpl.rc_context(_LOOK):
        figure = Figure(figsize=(WIDTH, min(30.0, max(6.2, 1.6 + 0.36 * len(classes)))), dpi=DPI, layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True)
        _draw_means(left, spectra, classes)
        _draw_ratios(right, spectra, classes)
        for axes in (left, right):
            axes.set_xlabel("Wavelength (µm)")
            axes.grid(visible=True, axis="both" if axes is left else "x")
            axes.set_axisbelow(True)
        with store.writing(path) as part:
            FigureCanvasAgg(figure).print_png(str(part), metadata={"Software": None})


def _draw_means(axes: Any, spectra: ClassSpectra, classes: Classes) -> None:
    axes.set_title("Class mean ± 1 standard deviation")
    axes.set_ylabel("I/F")
    wavelength, mean, std = open_gaps(spectra.wavelength, spectra.mean, spectra.std)
    for k, item in enumerate(classes):
        style = _line_style(item)
        axes.fill_between(wavelength, mean[k] - std[k], mean[k] + std[k], color=item["colour"], alpha=0.10, linewidth=0)
        axes.plot(wavelength, mean[k], **style)
    axes.set_ylim(*_limits(mean - std, mean + std))
    new = [k for k, item in enumerate(classes) if not item["is_known"] and np.isfinite(mean[k]).any()]
    ends = np.array([end_of(mean[k]) for k in new])
    for k, y in zip(new, spread_out(ends, 0.035 * np.ptp(axes.get_ylim()), axes.get_ylim()), strict=True):
        _label_end(axes, spectra.wavelength[-1], y, classes[k])


def _draw_ratios(axes: Any, spectra: ClassSpectra, classes: Classes) -> None:
    axes.set_title("Class mean / mean of all valid pixels, offset")
    wavelength, ratio = open_gaps(spectra.wavelength, spectra.ratio)
    drawn = [k for k in range(len(classes)) if np.isfinite(ratio[k]).any()]
    step = _offset_step(ratio[drawn])
    axes.set_ylabel(f"Ratio, offset by {step:g} per class")
    for row, k in enumerate(reversed(drawn)):
        level = np.nanmedian(ratio[k])
        shifted = ratio[k] - level + row * step
        axes.axhline(row * step, color="#c9ced6", linewidth=0.6, zorder=0)
        axes.plot(wavelength, shifted, **_line_style(classes[k]))
        _label_end(axes, spectra.wavelength[-1], row * step, classes[k])
    axes.set_ylim(-0.9 * step, (len(drawn) - 0.1) * step if drawn else 1.0)
    axes.tick_params(labelleft=False, left=False)


def _line_style(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "color": item["colour"],
        "linewidth": 1.1 if item["is_known"] else 2.2,
        "zorder": 2 + (not item["is_known"]),
    }


def _label_end(axes: Any, x: float, y: float, item: Mapping[str, Any]) -> None:
    axes.annotate(
        item["name"],
        (x, y),
        xytext=(6, 0),
        textcoords="offset points",
        color=ink(item["colour"]),
        fontsize=8.5,
        fontweight="normal" if item["is_known"] else "bold",
        va="center",
        annotation_clip=False,
        parse_math=False,
    )


def _limits(low: Floats, high: Floats) -> tuple[float, float]:
    """Limits that one wild band does not stretch."""
    if not np.isfinite(low).any():
        return 0.0, 1.0
    bottom, top = np.nanpercentile(low, 0.5), np.nanpercentile(high, 99.5)
    margin = 0.06 * max(top - bottom, 1e-3)
    return float(bottom - margin), float(top + margin)


def _offset_step(ratio: NDArray[np.float64]) -> float:
    """A round offset that keeps most of neighbouring ratios apart."""
    if not ratio.size:
        return 1.0
    swing = np.nanpercentile(ratio, 99, axis=1) - np.nanpercentile(ratio, 1, axis=1)
    target = max(float(np.median(swing)), 0.25 * float(swing.max()), 1e-3)
    power = 10.0 ** np.floor(np.log10(target))
    return float(next(step for step in (1, 1.5, 2, 3, 5, 7, 10) if step * power >= target) * power)

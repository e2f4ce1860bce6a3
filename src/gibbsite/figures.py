"""Figures for a paper, drawn with matplotlib: each as PNG and as PDF, the same bytes for the same run."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.colors
import matplotlib.patches
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.interactive import CHAIN_COLOURS, TRACED, MapView, Trace
from gibbsite.palette import ink
from gibbsite.spectra import Classes, ClassSpectra, Floats, end_of, open_gaps, spread_out

DPI = 160
LEGEND = 80
"""Classes in the legend of a map, at most."""
WIDTH = 15.0
"""Inches of the figure of all spectra; 2400 pixels."""

LOOK = {
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
    "pdf.fonttype": 42,
    "path.simplify": False,
}


def write_spectra(path: Path, spectra: ClassSpectra, classes: Classes, quantiles: tuple[float, float]) -> None:
    """Draw mean I/F with its quantiles, ratios to bland and ratios without continuum as `path`.png and .pdf."""
    height = min(30.0, max(6.2, 1.6 + 0.36 * len(classes)))
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        low, high = (f"{100 * share:g}" for share in quantiles)
        left.set_title(f"Class mean, {low}-{high} % of the pixels")
        _draw_means(left, spectra, classes)
        middle.set_title("Ratioed to bland pixels, offset")
        _draw_offset(middle, spectra.wavelength, spectra.ratio.mean, classes)
        right.set_title("Ratio without continuum, offset")
        _draw_offset(right, spectra.wavelength, spectra.ratio.removed, classes)
        for axes in (left, middle, right):
            axes.set_xlabel("Wavelength (µm)")
            axes.grid(visible=True, axis="both" if axes is left else "x")
            axes.set_axisbelow(True)
        save(figure, path)


def write_run(
    folder: Path,
    scenes: Sequence[Any],
    classes: Classes,
    traces: Sequence[Trace],
    evaluation: Mapping[str, Any] | None,
) -> None:
    """Write the page's other figures into a folder: a map per scene, the traces, the confusion matrix."""
    with mpl.rc_context(LOOK):
        for scene in scenes:
            save(_map(scene.view, classes), folder / f"map_{scene.view.name}")
        if traces:
            save(_traces(traces), folder / "traces")
        if evaluation is not None:
            save(_confusion(evaluation), folder / "confusion")


def save(figure: Figure, path: Path) -> None:
    """Write the figure as `path`.png and `path`.pdf, without time or program in them."""
    # Laid out once for both: with hundreds of names that takes longer than drawing.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    # Which glyphs a font keeps is nothing to log.
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    for kind, untold in (("png", ("Software",)), ("pdf", ("CreationDate", "Producer", "Creator"))):
        with store.writing(path.with_name(f"{path.name}.{kind}")) as part:
            figure.savefig(part, format=kind, metadata=dict.fromkeys(untold))


def _map(view: MapView, classes: Classes) -> Figure:
    """The class map with a legend of its classes, the discovered ones in bold; of very many, the largest."""
    count = np.bincount(view.code.ravel(), minlength=1 + max([int(item["code"]) for item in classes], default=0))
    every = [item for item in classes if count[item["code"]]]
    largest = sorted(every, key=lambda item: -count[item["code"]])[:LEGEND]
    present = [item for item in every if item in largest] if len(every) > LEGEND else every
    n_columns = 1 + len(present) // 40
    width = 6.0
    height = float(np.clip(width / view.aspect, 2.5, 20.0))
    figure = Figure(figsize=(width + 2.2 * n_columns, max(height, 0.22 * min(len(present), 40) + 0.8)), dpi=DPI)
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    colours = np.zeros((max([int(item["code"]) for item in classes], default=0) + 1, 4))
    for item in classes:
        colours[item["code"]] = mpl.colors.to_rgba(item["colour"])
    left, right, bottom, top = view.extent
    scale = 1e3 if view.is_map else 1.0
    place = (left / scale, right / scale, bottom / scale, top / scale)
    axes.imshow(colours[view.code], extent=place, interpolation="nearest")
    axes.set_title(view.name, parse_math=False)
    axes.set_xlabel("East (km)" if view.is_map else "Sample")
    axes.set_ylabel("North (km)" if view.is_map else "Line")
    axes.ticklabel_format(useOffset=False)
    keys = [mpl.patches.Patch(color=item["colour"], label=item["name"]) for item in present]
    title = f"the largest {len(present)} of {len(every)} classes" if len(present) < len(every) else None
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    legend = axes.legend(handles=keys, **beside, frameon=False, ncols=n_columns, title=title)
    for text, item in zip(legend.get_texts(), present, strict=True):
        text.set(parse_math=False, fontsize=8.5, fontweight="normal" if item["is_known"] else "bold")
    return figure


def _traces(traces: Sequence[Trace]) -> Figure:
    """What the chains recorded, a panel each."""
    fields = [name for name in TRACED if any(getattr(trace, name) is not None for trace in traces)]
    figure = Figure(figsize=(7.0, 1.7 * len(fields) + 0.6), dpi=DPI, layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(fields), 1, sharex=True))
    for axes, name in zip(panels, fields, strict=True):
        for n, trace in enumerate(traces):
            values = getattr(trace, name)
            if values is not None:
                colour = CHAIN_COLOURS[n % len(CHAIN_COLOURS)]
                axes.plot(
                    np.arange(1, len(values) + 1), values, color=colour, linewidth=1, label=f"chain {trace.chain}"
                )
        axes.set_ylabel(TRACED[name].split(",")[0])
        axes.grid(visible=True)
    panels[0].legend(frameon=False, fontsize=8.5, ncols=4)
    panels[-1].set_xlabel("Sweep")
    return figure


def _confusion(evaluation: Mapping[str, Any]) -> Figure:
    """Where the pixels of each true class were mapped, in per cent of the row."""
    counts = np.array(evaluation["confusion"], dtype=float)
    share = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows, columns = evaluation["truth_names"], evaluation["predicted_names"]
    size = (min(30.0, 3.0 + 0.42 * len(columns)), min(30.0, 2.2 + 0.34 * len(rows)))
    figure = Figure(figsize=size, dpi=DPI)
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    axes.imshow(share, cmap="Oranges", vmin=0, vmax=100, aspect="auto")
    small: dict[str, Any] = {
        "fontsize": float(np.clip(72 * 26.0 / max(len(rows), len(columns)), 4.0, 10.0)),
        "parse_math": False,
    }
    axes.set_xticks(range(len(columns)), columns, rotation=60, ha="right", rotation_mode="anchor", **small)
    axes.set_yticks(range(len(rows)), rows, **small)
    axes.set_xlabel("Mapped as")
    axes.set_ylabel("True class")
    for (y, x), value in np.ndenumerate(share):
        if value >= 0.5 and len(columns) <= 60:
            axes.text(x, y, f"{value:.0f}", ha="center", va="center", fontsize=7.5, color="w" if value > 60 else "k")
    return figure


def _draw_means(axes: Any, spectra: ClassSpectra, classes: Classes) -> None:
    axes.set_ylabel("I/F")
    found = spectra.reflectance
    wavelength, mean, low, high = open_gaps(spectra.wavelength, found.mean, found.low, found.high)
    for k, item in enumerate(classes):
        axes.fill_between(wavelength, low[k], high[k], color=item["colour"], alpha=0.06, linewidth=0)
        axes.plot(wavelength, mean[k], **_line_style(item))
    axes.set_ylim(*_limits(low, high))
    new = [k for k, item in enumerate(classes) if not item["is_known"] and np.isfinite(mean[k]).any()]
    ends = np.array([end_of(mean[k]) for k in new])
    for k, y in zip(new, spread_out(ends, 0.035 * np.ptp(axes.get_ylim()), axes.get_ylim()), strict=True):
        _label_end(axes, spectra.wavelength[-1], y, classes[k])


def _draw_offset(axes: Any, wavelength: Floats, values: Floats, classes: Classes) -> None:
    drawn = [k for k in range(len(classes)) if np.isfinite(values[k]).any()]
    step = _offset_step(values[drawn])
    axes.set_ylabel(f"Offset by {step:g} per class")
    x, y = open_gaps(wavelength, values)
    end = max((float(wavelength[np.isfinite(values[k])][-1]) for k in drawn), default=1.0)
    for row, k in enumerate(reversed(drawn)):
        axes.axhline(row * step, color="#c9ced6", linewidth=0.6, zorder=0)
        axes.plot(x, y[k] - np.nanmedian(y[k]) + row * step, **_line_style(classes[k]))
        _label_end(axes, end, row * step, classes[k])
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

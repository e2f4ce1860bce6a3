"""Spectra and traces of the page. All classes of a graph are one glyph, so that hundreds of them cost little."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from gibbsite.interactive.look import FONT, INK, limits, line_figure
from gibbsite.palette import ink
from gibbsite.spectra import Classes, ClassSpectra, Floats, Statistics, end_of, open_gaps, spread_out

CHAIN_COLOURS = ("#1f5f8b", "#b4441f", "#3d7a4c", "#7a5aa6", "#8a6d1f", "#4f5b66")

LABELLED = 8
"""Discovered classes, the largest, whose names stand where their lines end; more would cover each other."""

TRACED = {
    "log_joint": "Log joint",
    "n_classes": "Classes",
    "n_components": "Components",
    "kappa0": "κ0, spread of class means",
    "kappa1": "κ1, spread of component means",
}
"""What chains record, and its label."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What a chain recorded, one value per sweep."""

    chain: int
    log_joint: Floats
    n_classes: Floats
    n_components: Floats
    kappa0: Floats | None = None
    kappa1: Floats | None = None


def spectra_figures(spectra: ClassSpectra, classes: Classes) -> dict[str, figure]:
    """Mean I/F, ratio to bland pixels and ratio without continuum, over wavelength."""
    x = spectra.wavelength
    used = np.isfinite(spectra.ratio.removed).any(axis=0)
    inner = x[used] if used.any() else x
    quantities = {
        "mean": ("I/F", spectra.reflectance, spectra.reflectance.mean, _range(x)),
        "ratio": ("I/F over bland pixels", spectra.ratio, spectra.ratio.mean, _range(x)),
        "removed": ("Ratio over its continuum", None, spectra.ratio.removed, _range(inner)),
    }
    return {
        name: _class_lines(name, x, values, classes, (label, spread, x_range))
        for name, (label, spread, values, x_range) in quantities.items()
    }


def trace_figures(traces: Sequence[Trace]) -> dict[str, figure]:
    """A graph for each quantity that the chains recorded, over the sweeps, a line per chain."""
    figures: dict[str, figure] = {}
    for field, label in TRACED.items():
        recorded = [trace for trace in traces if getattr(trace, field) is not None]
        if not recorded:
            continue
        shared = {"x_range": next(iter(figures.values())).x_range} if figures else {}
        plot = line_figure("Sweep", label, height=240, **shared)
        settled = []
        for trace, colour in zip(recorded, itertools.cycle(CHAIN_COLOURS), strict=False):
            values: Floats = getattr(trace, field)
            plot.line(np.arange(1, len(values) + 1), values, line_color=colour, line_width=1.5)
            # The first sweeps fall from far away; they would flatten all that follows.
            settled.append(values[len(values) // 10 :] if field == "log_joint" else values)
        plot.y_range = Range1d(*limits(np.concatenate(settled), np.concatenate(settled)))
        if field == "log_joint":
            plot.yaxis.formatter.use_scientific = False
        plot.add_tools(HoverTool(tooltips=[("Sweep", "@x"), (label, "@y{0,0.[000]}")], mode="vline"))
        figures[field] = plot
    return figures


def _range(x: Floats) -> Range1d:
    """The axis of these wavelengths; the page's script makes room for names at its end."""
    ends = x[[0, -1]] if x.size else np.array([0.0, 1.0])
    return Range1d(float(ends[0] - 0.02 * np.ptp(ends)), float(ends[1] + 0.02 * np.ptp(ends)), tags=["wavelength"])


def _class_lines(
    name: str, wavelength: Floats, values: Floats, classes: Classes, frame: tuple[str, Statistics | None, Range1d]
) -> figure:
    """A graph of all classes, with empty glyphs for what the page's script lights: spread, line and pixel."""
    label, spread, x_range = frame
    plot = line_figure("Wavelength (µm)", label, x_range=x_range, height=300)
    x, y = open_gaps(wavelength, values)
    columns = {
        "xs": [x.astype(np.float32)] * len(classes),
        "ys": list(y.astype(np.float32)),
        "code": [item["code"] for item in classes],
        "colour": [item["colour"] for item in classes],
        "width": [1.6 if item["is_known"] else 2.6 for item in classes],
        "alpha": [1.0] * len(classes),
    }
    low = high = values
    if spread is not None:
        low, high = spread.low, spread.high
        _, *opened = open_gaps(wavelength, low, high)
        columns["low"], columns["high"] = (list(part.astype(np.float32)) for part in opened)
    source = ColumnDataSource(columns, name=f"classes-{name}")
    band, lit, pixel = (
        ColumnDataSource({"x": [], "y": []}, name=f"{what}-{name}") for what in ("band", "lit", "pixel")
    )
    plot.patch("x", "y", source=band, fill_color="#888888", fill_alpha=0.25, line_color=None, name=f"band-glyph-{name}")
    plot.multi_line("xs", "ys", source=source, line_color="colour", line_width="width", line_alpha="alpha")
    plot.line("x", "y", source=lit, line_width=3.4, line_color="#888888", name=f"lit-glyph-{name}")
    plot.line("x", "y", source=pixel, line_width=1.4, line_color=INK)
    plot.y_range = Range1d(*limits(low, high))
    if spread is None:
        # Every line without continuum ends at 1, where names would tell nothing; its deepest band must be seen.
        plot.y_range = Range1d(float(np.nanmin(values, initial=0.98)) - 0.01, 1.01)
    elif np.isfinite(values).any():
        _label_ends(plot, values, float(wavelength[np.isfinite(values).any(axis=0)][-1]), classes)
    return plot


def _label_ends(plot: figure, values: Floats, x: float, classes: Classes) -> None:
    """Write the names of the largest discovered classes where their lines end, moved apart where they would touch."""
    drawn = [k for k, item in enumerate(classes) if not item["is_known"] and np.isfinite(values[k]).any()]
    new = drawn[:LABELLED]
    distance = 0.07 * (plot.y_range.end - plot.y_range.start)
    inside = (plot.y_range.start + distance / 2, plot.y_range.end - distance / 2)
    heights = spread_out(np.array([end_of(values[k]) for k in new]), distance, inside)
    names = {
        "x": [x] * len(new),
        "y": heights.tolist(),
        "text": [classes[k]["name"] for k in new],
        "colour": [ink(classes[k]["colour"]) for k in new],
    }
    style = {"text_font_size": "12px", "text_font_style": "bold", "text_baseline": "middle"}
    glyph = {"x_offset": 6, "text_color": "colour", "text_font": value(FONT)}
    label = plot.text("x", "y", "text", source=ColumnDataSource(names), **glyph, **style)
    label.tags = ["names"]

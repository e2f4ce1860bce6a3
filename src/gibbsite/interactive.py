"""Interactive figures of the report, drawn with bokeh: class maps, spectra and traces in one linked document.

Renderers of a class carry the tag `class-<code>`, so that the page's script can hide or light them.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.core.json_encoder import serialize_json
from bokeh.core.properties import value
from bokeh.document import Document
from bokeh.models import (
    BoxZoomTool,
    ColumnDataSource,
    CustomJS,
    CustomJSHover,
    HoverTool,
    LinearColorMapper,
    Metric,
    PanTool,
    Plot,
    Range1d,
    ResetTool,
    SaveTool,
    ScaleBar,
    WheelZoomTool,
)
from bokeh.plotting import figure
from bokeh.resources import Resources
from numpy.typing import NDArray

from gibbsite.palette import ink
from gibbsite.spectra import ClassSpectra, Floats, end_of, open_gaps, spread_out

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, MUTED, RULE = "#1b2430", "#5b6675", "#e3e0da"
CHAIN_COLOURS = ("#1f5f8b", "#b4441f", "#3d7a4c", "#7a5aa6", "#8a6d1f", "#4f5b66")

LABELLED = 8
"""Discovered classes, the largest, whose names stand where their lines end; more would cover each other."""

SCALE_STRIP = 0.07
"""Height of the strip below a map where its scale bar stands, in widths of the map."""

Classes = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class MapView:
    """A class map as the page shows it."""

    name: str
    """Of the scene."""
    code: NDArray[np.unsignedinteger]
    """Class code of each shown pixel, 0 for none, (rows, cols), first line of the scene first."""
    percent: NDArray[np.uint8]
    """Probability of the class in per cent, (rows, cols)."""
    extent: tuple[float, float, float, float]
    """Left, right, bottom, top: in metres on a map, else in pixels with the first line on top."""
    is_map: bool
    """Whether the extent is in metres."""
    factor: int
    """Every so many-th line and sample is shown."""

    @property
    def aspect(self) -> float:
        """Width over height of the picture."""
        left, right, bottom, top = self.extent
        return abs((right - left) / (top - bottom))


@dataclass(frozen=True, eq=False)
class Trace:
    """What a chain recorded, one value per sweep."""

    chain: int
    log_joint: Floats
    n_classes: Floats
    n_components: Floats


def map_figure(view: MapView, classes: Classes) -> figure:
    """The class map, without axes, with class and probability under the pointer."""
    left, right, bottom, top = view.extent
    strip = SCALE_STRIP * (right - left) if view.is_map else 0.0
    plot = figure(
        x_range=Range1d(left, right, bounds=None),
        y_range=Range1d(bottom - strip, top, bounds=None),
        width=700,
        height=max(1, round(700 * (abs(top - bottom) + strip) / (right - left))),
        sizing_mode="scale_width",
        tools=[PanTool(), BoxZoomTool(match_aspect=True), WheelZoomTool(), ResetTool(), SaveTool()],
        min_border=0,
    )
    plot.axis.visible = False
    plot.grid.visible = False
    plot.background_fill_color = "#f1efeb"
    n_codes = max([int(item["code"]) for item in classes], default=0)
    palette = ["rgba(0, 0, 0, 0)"] * (n_codes + 1)
    for item in classes:
        palette[item["code"]] = item["colour"]
    mapper = LinearColorMapper(palette=palette, low=-0.5, high=n_codes + 0.5, tags=["classes"])
    # Bokeh draws rows upwards; on a map the first line is the northernmost, else the axis itself points down.
    upwards = slice(None, None, -1 if top > bottom else 1)
    source = ColumnDataSource({"code": [view.code[upwards]], "percent": [view.percent[upwards]]})
    size = {"x": left, "y": min(bottom, top), "dw": right - left, "dh": abs(top - bottom)}
    plot.image("code", source=source, color_mapper=mapper, **size)
    plot.add_tools(_map_hover(view, classes, source))
    if view.is_map:
        plot.add_layout(_scale_bar(plot))
    return _dress(plot)


def spectra_figures(spectra: ClassSpectra, classes: Classes) -> tuple[figure, figure]:
    """Mean I/F with its spread, and the ratios to the scene mean, over one shared axis of wavelengths."""
    ends = spectra.wavelength[[0, -1]] if spectra.wavelength.size else np.array([0.0, 1.0])
    longest = max((len(item["name"]) for item in classes if not item["is_known"]), default=0)
    # Enough for names beside the lines on a phone, where the graph is some 290 pixels wide.
    room = np.ptp(ends) * min(0.4, 0.05 + 0.032 * longest)
    x_range = Range1d(float(ends[0] - 0.02 * np.ptp(ends)), float(ends[1] + room))
    means = _line_figure("Wavelength (µm)", "I/F", x_range=x_range, height=320)
    ratios = _line_figure("Wavelength (µm)", "I/F over scene mean", x_range=x_range, height=320)
    wavelength, mean, std, ratio = open_gaps(spectra.wavelength, spectra.mean, spectra.std, spectra.ratio)
    for k, item in enumerate(classes):
        tags = [f"class-{item['code']}"]
        spread = {"low": mean[k] - std[k], "high": mean[k] + std[k]}
        columns = {"x": wavelength, "mean": mean[k], "ratio": ratio[k]} | spread
        source = ColumnDataSource({name: values.astype(np.float32) for name, values in columns.items()})
        width = 1.6 if item["is_known"] else 3.0
        colour = item["colour"]
        for start, stop in _runs(source.data["low"]):
            part = ColumnDataSource({name: values[start:stop] for name, values in source.data.items()})
            band = means.varea("x", "low", "high", source=part, fill_color=colour, fill_alpha=0.09)
            band.tags = [*tags, "spread"]
        for plot, column in ((means, "mean"), (ratios, "ratio")):
            line = plot.line("x", column, source=source, line_color=colour, line_width=width)
            line.tags = [*tags, "line"]
    for plot, values, low, high in ((means, mean, mean - std, mean + std), (ratios, ratio, ratio, ratio)):
        plot.y_range = Range1d(*_limits(low, high))
        _label_ends(plot, values, float(ends[1]), classes)
    return means, ratios


def trace_figures(traces: Sequence[Trace]) -> dict[str, figure]:
    """Log joint, number of classes and number of components over the sweeps, a line per chain."""
    labels = {"log_joint": "Log joint", "n_classes": "Classes", "n_components": "Components"}
    figures = {}
    x_range = None
    for field, label in labels.items():
        plot = _line_figure("Sweep", label, height=240, **({"x_range": x_range} if x_range else {}))
        x_range = x_range or plot.x_range
        settled = []
        for trace, colour in zip(traces, itertools.cycle(CHAIN_COLOURS), strict=False):
            values: Floats = getattr(trace, field)
            plot.line(np.arange(1, len(values) + 1), values, line_color=colour, line_width=1.5)
            # The first sweeps fall from far away; they would flatten all that follows.
            settled.append(values[len(values) // 10 :] if field == "log_joint" else values)
        plot.y_range = Range1d(*_limits(np.concatenate(settled), np.concatenate(settled)))
        if field == "log_joint":
            plot.yaxis.formatter.use_scientific = False
        plot.add_tools(HoverTool(tooltips=[("Sweep", "@x"), (label, "@y{0,0}")], mode="vline"))
        figures[field] = plot
    return figures


def document_json(figures: Mapping[str, Plot]) -> str:
    """JSON for the page's script: the document, and which figure goes into which element.

    Bokeh numbers its objects through the life of the process; here they are numbered anew, so that the same
    figures give the same text.
    """
    document = Document()
    for plot in figures.values():
        document.add_root(plot)
    content = json.loads(serialize_json(document.to_json(deferred=False)))
    new_id: dict[str, str] = {}
    content = _renumber(content, new_id)
    roots = {new_id[plot.id]: element for element, plot in figures.items()}
    item = {"docid": "report", "roots": roots, "root_ids": list(roots)}
    text = json.dumps({"docs": {"report": content}, "items": [item]}, separators=(",", ":"), ensure_ascii=False)
    # A class may be named "</script>".
    return text.replace("<", "\\u003c")


def bokeh_script() -> str:
    """Bokeh's own script, to stand inside the page."""
    return "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)


def _renumber(value: Any, new_id: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: new_id.setdefault(part, f"g{len(new_id) + 1}")
            if key == "id" and isinstance(part, str)
            else _renumber(part, new_id)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_renumber(part, new_id) for part in value]
    return value


def _map_hover(view: MapView, classes: Classes, source: ColumnDataSource) -> HoverTool:
    names = {str(item["code"]): item["name"] for item in classes} | {"0": "no data"}
    where = ("East, north", "$x{0,0} m, $y{0,0} m") if view.is_map else ("Sample, line", "$x{0}, $y{0}")
    return HoverTool(
        tooltips=[("Class", "@code{custom}"), ("Probability", "@percent %"), where],
        formatters={"@code": CustomJSHover(args={"names": names}, code="return names[String(value)] ?? String(value)")},
        callback=CustomJS(
            args={"source": source},
            code="""
                const [cell] = cb_data.index.image_indices
                window.gibbsite?.light(cell ? source.data.code[0][cell.flat_index] : 0)
            """,
        ),
    )


def _scale_bar(plot: figure) -> ScaleBar:
    """A bar of a round length with its label beside it, low enough for the strip below the map."""
    room = {"location": "bottom_left", "label_location": "right", "padding": 2, "margin": 4, "bar_length": 0.22}
    look = {"label_text_font": FONT, "label_text_color": INK, "bar_line_color": INK, "border_line_color": None}
    unit = {"dimensional": Metric(base_unit="m"), "unit": "m"}
    return ScaleBar(range=plot.x_range, background_fill_alpha=0.0, **unit, **room, **look)


def _line_figure(x_label: str, y_label: str, **layout: Any) -> figure:
    tools = [PanTool(), BoxZoomTool(), WheelZoomTool(), ResetTool(), SaveTool()]
    plot = figure(sizing_mode="stretch_width", tools=tools, min_border_right=6, min_border_top=8, **layout)
    plot.xaxis.axis_label, plot.yaxis.axis_label = x_label, y_label
    plot.xgrid.grid_line_color = plot.ygrid.grid_line_color = "#ebe8e2"
    plot.background_fill_color = None
    plot.axis.axis_line_color = plot.axis.major_tick_line_color = "#a5a29b"
    plot.axis.minor_tick_line_color = None
    plot.axis.axis_label_text_font = plot.axis.major_label_text_font = FONT
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_font_size = "13px"
    plot.axis.major_label_text_font_size = "12px"
    plot.axis.axis_label_text_color, plot.axis.major_label_text_color = INK, MUTED
    return _dress(plot)


def _dress(plot: figure) -> figure:
    """The figure without bokeh's usual frame; the toolbar shows when the pointer is over it."""
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.toolbar_inner = True
    plot.toolbar_location = "right"
    plot.outline_line_color = None
    plot.border_fill_color = None
    return plot


def _label_ends(plot: figure, values: Floats, x: float, classes: Classes) -> None:
    """Write the names of the largest discovered classes where their lines end, moved apart where they would touch."""
    drawn = [k for k, item in enumerate(classes) if not item["is_known"] and np.isfinite(values[k]).any()]
    new = drawn[:LABELLED]
    distance = 0.06 * (plot.y_range.end - plot.y_range.start)
    limits = (plot.y_range.start + distance / 2, plot.y_range.end - distance / 2)
    heights = spread_out(np.array([end_of(values[k]) for k in new]), distance, limits)
    for k, y in zip(new, heights, strict=True):
        label = plot.text(
            [x],
            [y],
            [classes[k]["name"]],
            x_offset=6,
            text_color=ink(classes[k]["colour"]),
            text_font=value(FONT),
            text_font_size="12px",
            text_font_style="bold",
            text_baseline="middle",
        )
        label.tags = [f"class-{classes[k]['code']}"]


def _runs(values: NDArray[np.floating]) -> list[tuple[int, int]]:
    """First and last + 1 of every run of finite values."""
    edge = np.flatnonzero(np.diff(np.isfinite(values).astype(np.int8), prepend=0, append=0))
    return [(int(start), int(stop)) for start, stop in edge.reshape(-1, 2)]


def _limits(low: Floats, high: Floats) -> tuple[float, float]:
    """Limits of an axis that one wild value does not stretch."""
    if not np.isfinite(low).any():
        return 0.0, 1.0
    bottom, top = float(np.nanpercentile(low, 0.5)), float(np.nanpercentile(high, 99.5))
    margin = 0.08 * (top - bottom) or 0.5
    return bottom - margin, top + margin

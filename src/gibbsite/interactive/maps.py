"""Class maps of the page: a colour composite, the classes over it, and what the page's script needs to read a pixel."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.events import MouseLeave, MouseMove, Tap
from bokeh.models import (
    BoxZoomTool,
    ColumnDataSource,
    CustomJS,
    CustomJSHover,
    HoverTool,
    LinearColorMapper,
    Metric,
    PanTool,
    Range1d,
    ResetTool,
    SaveTool,
    ScaleBar,
    WheelZoomTool,
)
from bokeh.plotting import figure
from numpy.typing import NDArray

from gibbsite.interactive.look import FONT, INK, dress
from gibbsite.spectra import Classes

SCALE_STRIP = 0.07
"""Height of the strip below a map where its scale bar stands, in widths of the map."""


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
    rows: NDArray[np.intp]
    """Lines of the scene that are shown."""
    cols: NDArray[np.intp]
    """Samples of the scene that are shown."""
    composite: NDArray[np.uint8] | None = None
    """Red, green, blue, opacity (rows, cols, 4) of what lies behind the classes."""
    spectra: NDArray[np.int16] | None = None
    """Codes of the pixels' spectra, (n_axes, rows, cols), or every `spectra_factor`-th of them."""
    spectra_factor: int = 1

    @property
    def aspect(self) -> float:
        """Width over height of the picture."""
        left, right, bottom, top = self.extent
        return abs((right - left) / (top - bottom))

    def facts(self) -> dict[str, Any]:
        """What the page's script must know to find the pixel at a place."""
        return {
            "name": self.name,
            "extent": list(self.extent),
            "isMap": self.is_map,
            "rows": self.rows.tolist(),
            "cols": self.cols.tolist(),
            "spectraFactor": self.spectra_factor,
            "spectraRows": 0 if self.spectra is None else self.spectra.shape[1],
            "spectraCols": 0 if self.spectra is None else self.spectra.shape[2],
        }


def map_figure(number: int, view: MapView, classes: Classes) -> figure:
    """The class map of the scene of this number, without axes, with class and probability under the pointer."""
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
    plot.toolbar.active_scroll = None
    plot.axis.visible = False
    plot.grid.visible = False
    plot.background_fill_color = "#f1efeb"
    # Bokeh draws rows upwards; on a map the first line is the northernmost, else the axis itself points down.
    upwards = slice(None, None, -1 if top > bottom else 1)
    size = {"x": left, "y": min(bottom, top), "dw": right - left, "dh": abs(top - bottom)}
    if view.composite is not None:
        picture = np.ascontiguousarray(view.composite[upwards]).view(np.uint32)[..., 0]
        plot.image_rgba(image=[picture], **size)
    source = ColumnDataSource(
        {"code": [view.code[upwards]], "percent": [view.percent[upwards]]}, name=f"pixels-{number}"
    )
    classes_shown = plot.image("code", source=source, color_mapper=_mapper(classes), **size)
    marker = ColumnDataSource({"x": [], "y": []}, name=f"marker-{number}")
    plot.scatter("x", "y", source=marker, size=16, marker="square", fill_alpha=0, line_color="#ffffff", line_width=4)
    plot.scatter("x", "y", source=marker, size=16, marker="square", fill_alpha=0, line_color=INK, line_width=2)
    plot.add_tools(_hover(view, classes, classes_shown))
    _tell_the_page(plot, number, view)
    if view.is_map:
        plot.add_layout(_scale_bar(plot))
    return dress(plot)


def _mapper(classes: Classes) -> LinearColorMapper:
    """Codes to colours; the page's script makes colours fainter or stronger."""
    n_codes = max([int(item["code"]) for item in classes], default=0)
    palette = ["#00000000"] * (n_codes + 1)
    for item in classes:
        palette[item["code"]] = f"{item['colour']}ff"
    return LinearColorMapper(palette=palette, low=-0.5, high=n_codes + 0.5, tags=["classes"])


def _tell_the_page(plot: figure, number: int, view: MapView) -> None:
    """Hand pointer and codes to the page's script, which knows what to do with them."""
    columns: Mapping[str, Any] = {} if view.spectra is None else {str(n): a.ravel() for n, a in enumerate(view.spectra)}
    codes = ColumnDataSource(columns, name=f"spectra-{number}")
    for event, what in ((MouseMove, "point"), (Tap, "pin"), (MouseLeave, "leave")):
        call = f"window.gibbsite?.{what}({number}, cb_obj.x, cb_obj.y)"
        plot.js_on_event(event, CustomJS(args={"codes": codes}, code=call))


def _hover(view: MapView, classes: Classes, renderer: Any) -> HoverTool:
    names = {str(item["code"]): item["name"] for item in classes} | {"0": "no data"}
    where = ("East, north", "$x{0,0} m, $y{0,0} m") if view.is_map else ("Sample, line", "$x{custom}, $y{custom}")

    def number(shown: NDArray[np.intp]) -> CustomJSHover:
        """From 1, of the pixel that is shown there, as the page's script tells it."""
        code = "return String(shown[Math.max(0, Math.min(Math.floor(value / factor), shown.length - 1))] + 1)"
        return CustomJSHover(args={"shown": shown.tolist(), "factor": view.factor}, code=code)

    name = CustomJSHover(args={"names": names}, code="return names[String(value)] ?? String(value)")
    return HoverTool(
        renderers=[renderer],
        tooltips=[("Class", "@code{custom}"), ("Probability", "@percent %"), where],
        formatters={"@code": name} | ({} if view.is_map else {"$x": number(view.cols), "$y": number(view.rows)}),
    )


def _scale_bar(plot: figure) -> ScaleBar:
    """A bar of a round length with its label beside it, low enough for the strip below the map."""
    room = {"location": "bottom_left", "label_location": "right", "padding": 2, "margin": 4, "bar_length": 0.22}
    look = {"label_text_font": FONT, "label_text_color": INK, "bar_line_color": INK, "border_line_color": None}
    unit = {"dimensional": Metric(base_unit="m"), "unit": "m"}
    return ScaleBar(range=plot.x_range, background_fill_alpha=0.0, **unit, **room, **look)

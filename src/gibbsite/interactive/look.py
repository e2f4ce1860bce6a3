"""How all figures of the page look."""

from typing import Any

import numpy as np
from bokeh.models import BoxZoomTool, PanTool, ResetTool, SaveTool, WheelZoomTool
from bokeh.plotting import figure
from numpy.typing import NDArray

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, MUTED = "#1b2430", "#5b6675"


def line_figure(x_label: str, y_label: str, **layout: Any) -> figure:
    """An empty graph."""
    tools = [PanTool(), BoxZoomTool(), WheelZoomTool(), ResetTool(), SaveTool()]
    plot = figure(sizing_mode="stretch_width", tools=tools, min_border_right=6, min_border_top=8, **layout)
    # Scrolling the page must not zoom a graph that happens to be under the pointer.
    plot.toolbar.active_scroll = None
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
    return dress(plot)


def dress(plot: figure) -> figure:
    """The figure without bokeh's usual frame; the toolbar shows when the pointer is over it."""
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.toolbar_inner = True
    plot.toolbar_location = "right"
    plot.outline_line_color = None
    plot.border_fill_color = None
    return plot


def limits(low: NDArray[np.floating], high: NDArray[np.floating]) -> tuple[float, float]:
    """Limits of an axis that one wild value does not stretch."""
    if not np.isfinite(low).any():
        return 0.0, 1.0
    bottom, top = float(np.nanpercentile(low, 0.5)), float(np.nanpercentile(high, 99.5))
    margin = 0.08 * (top - bottom) or 0.5
    return bottom - margin, top + margin

"""Interactive figures of the report, drawn with bokeh: class maps, spectra and traces in one linked document.

Data sources and glyphs that the page's script changes have names (`classes-mean`, `lit-ratio`, `marker-0`).
"""

from gibbsite.interactive.document import bokeh_script, document_json, script_json
from gibbsite.interactive.lines import CHAIN_COLOURS, LABELLED, TRACED, Trace, spectra_figures, trace_figures
from gibbsite.interactive.maps import MapView, map_figure

__all__ = [
    "CHAIN_COLOURS",
    "LABELLED",
    "TRACED",
    "MapView",
    "Trace",
    "bokeh_script",
    "document_json",
    "map_figure",
    "script_json",
    "spectra_figures",
    "trace_figures",
]

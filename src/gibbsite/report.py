"""The report: one page that shows and explains a run, without any network.

`render` turns facts into the text of the page; the same facts give the same bytes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyproj
from markupsafe import Markup
from numpy.typing import NDArray

from gibbsite import interactive, pages
from gibbsite.cards import class_cards
from gibbsite.continuum import gaps
from gibbsite.interactive import MapView, Trace
from gibbsite.pixel_spectra import GRAIN, STEP, Coder
from gibbsite.rows import Rows, blocks_of
from gibbsite.scene import Grid
from gibbsite.spectra import Classes, ClassSpectra
from gibbsite.truth import HELD_OUT, RASTER

MAP_PIXELS = 400_000
"""Shown per map at most."""

PAGE_PIXELS = 1_000_000
"""Shown on all maps together at most, which bounds the page however many scenes there are."""

SPECTRA_PIXELS = 400_000
"""Whose spectra the page holds at most, in all scenes together."""

QUICK_LOOKS = 6
"""Scenes that the page shows before and after cleaning at most: each is some 300 kB."""

NAMED = 8
"""Discovered classes that the first sentence names at most."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A scene on the page."""

    view: MapView
    """Its class map."""
    shape: tuple[int, int]
    """Lines and samples of the scene itself."""
    n_pixels: Mapping[int, int]
    """Mapped pixels of each class code."""
    provenance: Mapping[str, Any]
    """As in the cube."""
    files: Sequence[Mapping[str, Any]] = ()
    """Use (cube, labels or truth), name, sha256 and bytes of all that was read."""
    quick_look: str = ""
    """The picture before and after cleaning, as an address that holds it; empty when it is not shown."""

    @property
    def n_mapped(self) -> int:
        """Pixels with a class."""
        return sum(self.n_pixels.values())


@dataclass(frozen=True, eq=False)
class Facts:
    """All that the page tells."""

    title: str
    classes: Classes
    """As in the model."""
    scenes: Sequence[Scene]
    spectra: ClassSpectra
    interpretation: Sequence[Mapping[str, Any]]
    """As written by the interpret step, in the order of the classes; empty when there is none."""
    coder: Coder
    """Of the pixels' spectra."""
    composite: Sequence[float]
    """Wavelengths, in µm, shown red, green and blue behind the classes."""
    traces: Sequence[Trace]
    hyper: Sequence[Mapping[str, Any]]
    """Of each chain: hyper-parameters of its best sweep."""
    settings: Mapping[str, Any]
    """That the chains were run with."""
    evaluation: Mapping[str, Any] | None
    """As written by the evaluate step."""
    diagnostics: Mapping[str, Any]
    """As in the model."""
    versions: Mapping[str, str]
    """Of what made the model; the page may be made anew with others."""
    timings: str | None = None
    """Name of the page beside this one that tells how long it took."""


def _is_plain_map(grid: Grid) -> bool:
    """Whether the page can count metres east and north on it; others are shown pixel by pixel."""
    if grid.transform is None or (grid.crs is not None and not pyproj.CRS.from_wkt(grid.crs).is_projected):
        return False
    a, b, _, d, e, _ = grid.transform
    return a > 0.0 and b == d == 0.0 and e < 0.0


def map_view(name: str, code: Rows, probability: Rows, grid: Grid, max_pixels: int = MAP_PIXELS) -> MapView:
    """The class map with every n-th line and sample, the smallest n that shows at most `max_pixels`."""
    height, width = code.shape
    factor = 1
    while math.ceil(height / factor) * math.ceil(width / factor) > max_pixels:
        factor += 1
    rows, cols = (np.minimum(np.arange(factor // 2, n + factor // 2, factor), n - 1) for n in (height, width))
    code_shown, chance = (_decimated(layer, rows, cols) for layer in (code, probability))
    is_map = _is_plain_map(grid)
    bottom, right = float(len(rows) * factor), float(len(cols) * factor)
    extent = (0.0, right, bottom, 0.0)
    if is_map and grid.transform is not None:
        a, _, c, _, e, f = grid.transform
        extent = (c, c + a * right, f + e * bottom, f)
    dtype = np.uint8 if code_shown.max(initial=0) < 256 else np.uint16
    percent = np.rint(100 * np.nan_to_num(chance)).astype(np.uint8)
    return MapView(name, code_shown.astype(dtype), percent, extent, is_map, factor, rows, cols)


def _decimated(layer: Rows, rows: NDArray[np.intp], cols: NDArray[np.intp]) -> NDArray[Any]:
    """These lines and samples of a layer, read some rows at a time."""
    found = []
    for block in blocks_of(layer.shape[0]):
        own = rows[(rows >= block.start) & (rows < block.stop)] - block.start
        found.append(layer[block][np.ix_(own, cols)])
    return np.concatenate(found)


def spectra_factor(views: Sequence[MapView]) -> int:
    """Every so many-th shown line and sample has its spectrum on the page: as few as SPECTRA_PIXELS ask for."""
    factor = 1
    while sum(math.ceil(len(v.rows) / factor) * math.ceil(len(v.cols) / factor) for v in views) > SPECTRA_PIXELS:
        factor += 1
    return factor


def render(facts: Facts) -> str:
    """The page."""
    figures = {f"map-{n}": interactive.map_figure(n, s.view, facts.classes) for n, s in enumerate(facts.scenes)}
    figures |= {
        f"spectra-{name}": plot for name, plot in interactive.spectra_figures(facts.spectra, facts.classes).items()
    }
    traces = interactive.trace_figures(facts.traces)
    figures |= {f"trace-{name}": plot for name, plot in traces.items()}
    n_pixels = {
        item["code"]: sum(scene.n_pixels.get(item["code"], 0) for scene in facts.scenes) for item in facts.classes
    }
    cards = class_cards(facts.classes, n_pixels, facts.spectra, facts.interpretation, facts.evaluation)
    environment = pages.environment()
    environment.filters |= {"count": _count, "share": _share, "bytes": _bytes, "fact": _fact}
    return environment.get_template("report.html.j2").render(
        facts=facts,
        cards=cards,
        summary=_summary(facts, cards),
        confusion=_confusion(facts.evaluation),
        moves={name.replace("_", " "): move for name, move in facts.diagnostics["moves"].items() if move["proposed"]},
        traced={name: interactive.TRACED[name] for name in traces},
        chain_colours=interactive.CHAIN_COLOURS,
        n_labelled=interactive.LABELLED,
        quantiles=facts.settings["spectra"]["quantiles"],
        settings=json.dumps(facts.settings, indent=2, sort_keys=True, ensure_ascii=False),
        versions=facts.versions,
        figures=Markup(interactive.document_json(figures)),
        pixels=Markup(interactive.script_json(_pixel_facts(facts))),
        bokeh=Markup(interactive.bokeh_script()),
    )


def _pixel_facts(facts: Facts) -> dict[str, Any]:
    """What the page's script must know to find a pixel, and to rebuild its spectrum."""
    return {
        "classes": [{key: item[key] for key in ("code", "name", "colour")} for item in facts.classes],
        "scenes": [scene.view.facts() for scene in facts.scenes],
        "wavelength": np.round(facts.spectra.wavelength, 6).tolist(),
        "gaps": gaps(facts.spectra.wavelength).tolist(),
        "mean": facts.coder.mean.tolist(),
        "axis": facts.coder.axis.tolist(),
        "step": STEP * GRAIN,
    }


def _summary(facts: Facts, cards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The numbers of the first sentence; it names discovered classes by size, those that may be mixtures last."""
    new = sorted((card for card in cards if not card["is_known"]), key=lambda card: card["suspected_mixture"])
    sources = {item["source"] for item in (facts.evaluation or {}).get("scored", ()) if item["n_pixels"]}
    return {
        "has_truth": RASTER in sources,
        "has_held_out": HELD_OUT in sources,
        "n_scenes": len(facts.scenes),
        "n_mapped": sum(scene.n_mapped for scene in facts.scenes),
        "n_known": len(facts.classes) - len(new),
        "n_new": len(new),
        "n_suspected": sum(card["suspected_artefact"] for card in new),
        "n_mixed": sum(card["suspected_mixture"] for card in new),
        "named": new[:NAMED],
        "n_unnamed": max(0, len(new) - NAMED),
        "mean_f1": facts.evaluation["mean_f1"] if facts.evaluation else None,
        "sweeps": max((len(trace.log_joint) for trace in facts.traces), default=0),
    }


def _confusion(evaluation: Mapping[str, Any] | None) -> list[tuple[str, list[tuple[int, float]]]]:
    """Rows of the confusion table: truth class, then (pixels, share of the row) per mapped class."""
    if evaluation is None:
        return []
    rows = zip(evaluation["truth_names"], evaluation["confusion"], strict=True)
    return [(name, [(n, n / max(1, sum(counts))) for n in counts]) for name, counts in rows]


def _count(value: float) -> str:
    """1234567 as 1 234 567, with spaces that do not break."""
    return f"{value:,.0f}".replace(",", "\u202f")


def _share(value: float) -> str:
    """A share in per cent, small ones with two decimals."""
    return f"{100 * value:.2f}\u202f%" if 0 < value < 0.01 else f"{100 * value:.1f}\u202f%"


def _fact(value: Any) -> str:
    """A fact of a label as text: numbers with their unit, lists with commas."""
    if isinstance(value, Mapping):
        return " ".join(str(part) for part in value.values())
    if isinstance(value, list):
        return ", ".join(_fact(part) for part in value)
    return str(value)


def _bytes(value: float) -> str:
    return f"{value / 1e6:.1f}\u202fMB" if value >= 1e6 else f"{value / 1e3:.1f}\u202fkB"

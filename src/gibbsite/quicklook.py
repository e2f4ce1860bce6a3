"""A picture of a product at first sight: the scene in three bands and its spectra, or its planes, or its columns."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gibbsite import crism, store, survey
from gibbsite.bands import with_place
from gibbsite.errors import InputError
from gibbsite.inspection import Inspection
from gibbsite.product import Product

_LOOK = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": "#8a8f98",
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "grid.color": "#e4e7ec",
}
_MOST_PIXELS = 700
"""On the longer side of a picture."""
_MOST_PLANES = 12
_COMPOSITES = ((2.53, 1.51, 1.08), (0.71, 0.60, 0.53))
"""µm shown as red, green, blue: the usual ones of the infrared and of the visible."""

Floats = NDArray[np.floating[Any]]


def write(path: Path, found: Inspection) -> None:
    """Draw the inspected product and write it as PNG."""
    product = found.product
    if product.pixels is None:
        raise InputError(f"{product.path}: no image that can be trusted, so no quick look; leave --out out")
    with mpl.rc_context(_LOOK):
        if product.kind.is_crism and product.shape[0] <= 3 and crism.parse_calibration(product.name):
            figure = _draw_columns(product)
        elif product.wavelength is not None and product.kind.has_spectra:
            figure = _draw_scene(product, found.good)
        else:
            figure = _draw_planes(product)
        with store.writing(path) as part:
            FigureCanvasAgg(figure).print_png(str(part), metadata={"Software": None})


def _draw_scene(product: Product, good: NDArray[np.bool_] | None) -> Figure:
    """A composite of three bands beside the spread of the spectra."""
    assert product.wavelength is not None
    usable = np.isfinite(product.wavelength) if good is None else good
    bands = _composite(product.wavelength, usable)
    picture = np.stack([_stretched(plane) for plane in np.moveaxis(_planes(product, bands), 2, 0)], axis=2)
    figure = Figure(figsize=(12.0, 5.0), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
    left.imshow(np.nan_to_num(picture, nan=1.0), interpolation="nearest", extent=_extent(product))
    left.set_title(f"{product.name}\n" + " / ".join(f"{product.wavelength[band]:.3f}" for band in bands) + " µm")
    spectra = np.where(usable, survey.sample_spectra(product), np.nan)
    order = with_place(product.wavelength, product.listed_good)
    at, spectra = _open_gaps(product.wavelength[order], spectra[np.isfinite(spectra).any(axis=1)][:, order])
    if spectra.size:
        low, middle, high = _quantiles(spectra, (5, 50, 95))
        right.fill_between(at, low, high, color="#c9d3e3", linewidth=0, label="5 to 95 % of the pixels")
        right.plot(at, middle, color="#1d3f72", linewidth=1.1, label="median")
        right.legend(frameon=False)
    right.set_title(f"{product.kind.quantity} of {np.count_nonzero(usable)} good bands")
    right.set_xlabel("Wavelength (µm)")
    right.grid(visible=True)
    return figure


def _draw_planes(product: Product) -> Figure:
    """The first bands, or, without names, some from first to last, one picture each."""
    n_bands = product.shape[2]
    last = _MOST_PLANES - 1 if product.band_names else n_bands - 1
    bands = np.unique(np.linspace(0, min(last, n_bands - 1), min(n_bands, _MOST_PLANES)).astype(int)).tolist()
    planes = _planes(product, bands)
    n_columns = min(4, len(bands))
    n_rows = -(-len(bands) // n_columns)
    figure = Figure(figsize=(3.3 * max(2, n_columns), 0.6 + 2.4 * n_rows), dpi=100, layout="constrained")
    figure.suptitle(f"{product.name}: {len(bands)} of {product.shape[2]} bands", fontsize=10)
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for panel in axes[len(bands) :]:
        panel.set_axis_off()
    for position, (band, panel) in enumerate(zip(bands, axes, strict=False)):
        plane = planes[:, :, position]
        known = plane[np.isfinite(plane)]
        panel.set_title(product.band_names[band] if product.band_names else f"band {band}", fontsize=8)
        low, high = np.percentile(known, (1, 99)) if known.size else (0.0, 1.0)
        drawn = panel.imshow(
            plane, vmin=low, vmax=high, cmap="viridis", interpolation="nearest", extent=_extent(product), aspect="auto"
        )
        figure.colorbar(drawn, ax=panel)
    return figure


def _draw_columns(product: Product) -> Figure:
    """A calibration record: every detector column and band, and some of them as curves."""
    values = survey.read(product, slice(0, 1))[0].astype(np.float64)
    name = crism.parse_calibration(product.name)
    is_wavelength = name is not None and name.kind == "WA"
    known = np.flatnonzero(np.isfinite(values).any(axis=1))
    if is_wavelength and known.size:
        values = values - values[known[known.size // 2]]
    figure = Figure(figsize=(12.0, 4.6), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    what = "nm from the centre column (smile)" if is_wavelength else "transmission, every column and band"
    left.set_title(f"{product.name}\n{what}")
    finite = values[np.isfinite(values)]
    low, high = np.percentile(finite, (1, 99)) if finite.size else (0.0, 1.0)
    drawn = left.imshow(values.T, vmin=low, vmax=high, cmap="viridis", interpolation="nearest", aspect="auto")
    left.set_xlabel("Detector column")
    left.set_ylabel("Band")
    figure.colorbar(drawn, ax=left)
    if is_wavelength:
        for band in _spread(np.flatnonzero(np.isfinite(values).any(axis=0))):
            right.plot(values[:, band], linewidth=1.0, label=f"band {band}")
        right.set_xlabel("Detector column")
    else:
        at = np.arange(product.shape[2]) if product.wavelength is None else product.wavelength
        for column in _spread(known):
            right.plot(at, values[column], linewidth=0.9, label=f"column {column}")
        right.set_xlabel("Band" if product.wavelength is None else "Wavelength (µm)")
    right.grid(visible=True)
    right.legend(frameon=False, fontsize=8)
    return figure


def _spread(numbers: NDArray[np.int64]) -> list[int]:
    """Five of the numbers, from first to last."""
    return numbers[np.linspace(0, numbers.size - 1, min(5, numbers.size)).astype(int)].tolist()


def _composite(wavelength: Floats, usable: NDArray[np.bool_]) -> list[int]:
    """Three usable bands for red, green and blue."""
    bands = np.flatnonzero(usable)
    bands = bands if bands.size else np.arange(wavelength.size)
    for wanted in _COMPOSITES:
        near = [bands[np.abs(wavelength[bands] - value).argmin()] for value in wanted]
        if all(abs(wavelength[band] - value) < 0.05 for band, value in zip(near, wanted, strict=True)):
            return [int(band) for band in near]
    order = bands[np.argsort(wavelength[bands])]
    return [int(order[int(share * (order.size - 1))]) for share in (0.85, 0.5, 0.15)]


def _planes(product: Product, bands: list[int]) -> Floats:
    """Some bands (line, sample, band) of every nth line and sample."""
    step = max(1, -(-max(product.shape[:2]) // _MOST_PIXELS))
    rows = [
        survey.read(product, slice(line, line + 1))[:, ::step][:, :, bands] for line in range(0, product.shape[0], step)
    ]
    return np.concatenate(rows)


def _extent(product: Product) -> tuple[float, float, float, float]:
    return (-0.5, product.shape[1] - 0.5, product.shape[0] - 0.5, -0.5)


def _stretched(plane: Floats) -> Floats:
    """The plane from 0 to 1, its outer 2 % cut."""
    known = plane[np.isfinite(plane)]
    if not known.size:
        return np.full(plane.shape, np.nan)
    low, high = np.percentile(known, (2, 98))
    return np.clip((plane - low) / max(high - low, 1e-9), 0.0, 1.0)


def _quantiles(spectra: Floats, shares: tuple[float, ...]) -> Floats:
    """(share, band) Percentiles of the values there are; NaN in bands without any."""
    found = np.full((len(shares), spectra.shape[1]), np.nan)
    some = np.isfinite(spectra).any(axis=0)
    found[:, some] = np.nanpercentile(spectra[:, some], shares, axis=0)
    return found


def _open_gaps(wavelength: Floats, spectra: Floats) -> tuple[Floats, Floats]:
    """Wavelengths and spectra with a NaN inside each wide gap, so that no line bridges it."""
    steps = np.diff(wavelength)
    wide = np.flatnonzero(steps > 4 * np.median(steps)) + 1 if steps.size else np.array([], dtype=int)
    return (
        np.insert(wavelength, wide, (wavelength[wide - 1] + wavelength[wide]) / 2),
        np.insert(spectra.astype(np.float64), wide, np.nan, axis=1),
    )

"""What a file is, in one screen of text: kind, size, wavelengths, place, values, and what looks wrong."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyproj
from numpy.typing import NDArray

from gibbsite import bands, crism, ingest, mars, survey
from gibbsite.ddr import LATITUDE, LONGITUDE
from gibbsite.errors import InputError
from gibbsite.product import Product, open_product
from gibbsite.settings import Ingest
from gibbsite.survey import Survey

_MOST_TOLD = 8
"""Findings told in full; the rest are counted."""
_WIDTH = 13


@dataclass(frozen=True, eq=False)
class Inspection:
    """A product and what was found out about it."""

    product: Product
    """As its files tell."""
    survey: Survey | None
    """Of its pixels; None when there is no trustworthy image."""
    good: NDArray[np.bool_] | None
    """(band) fit for use, by the rules of `ingest`; None for what it does not take."""
    n_valid: int
    """Pixels fit for use, or, in what `ingest` does not take, with any value."""
    findings: tuple[str, ...]
    """What the user should look at."""
    is_refused: bool = False
    """Whether one of them is an error to `ingest`."""


def inspect(given: Path, settings: Ingest) -> Inspection:
    """The inspection of the product that a file belongs to; an InputError only when nothing can be said about it."""
    doubts: list[str] = []
    product = open_product(given, doubts)
    if product.pixels is None:
        return Inspection(product, None, None, 0, tuple(doubts), is_refused=True)
    found = survey.take(product, settings.valid_range)
    good, n_valid = None, found.n_seen
    if product.kind.has_spectra and product.wavelength is not None and not found.is_empty:
        try:
            good = ingest.find_good_bands(product, settings)
            n_valid = ingest.count_valid(product, good, settings)
        except InputError as error:
            doubts.append(str(error))
            n_valid = 0
    findings = [*doubts, *product.remarks, *_oddities(product, found, good)]
    return Inspection(product, found, good, n_valid, tuple(findings), bool(doubts) or _has_twins(product))


def describe(found: Inspection) -> str:
    """The inspection as text."""
    product = found.product
    size = [_counted(n, what) for n, what in zip(product.shape, ("line", "sample", "band"), strict=True)]
    rows = [
        ("what", product.kind.holds),
        ("product", _taken(product)),
        ("files", ", ".join(f"{path.name} ({_bytes(path)})" for path in product.files)),
        ("size", f"{' × '.join(size)}, {product.stored}"),
        ("wavelengths", _wavelengths(product, found.good)),
        ("place", _place(product)),
        ("values", _values(found)),
    ]
    # Folders are long, and the file was named by who asks.
    told = [text.replace(f"{product.path.parent}/", "") for text in found.findings[:_MOST_TOLD]]
    rows += [("look at" if not number else "", text) for number, text in enumerate(told)]
    if len(found.findings) > len(told):
        rows.append(("", f"… and {len(found.findings) - len(told)} more"))
    rows.append(("next", _next_step(found)))
    return "\n".join(f"{key:<{_WIDTH}}{text}" for key, text in rows if text)


def spans(numbers: Iterable[int]) -> str:
    """Whole numbers as ranges: 0-2, 63."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = int(number)
        else:
            parts.append([int(number), int(number)])
    told = [f"{low}-{high}" if low < high else f"{low}" for low, high in parts]
    return ", ".join(told[:6]) + (f" and {len(told) - 6} ranges more" if len(told) > 6 else "")


def _taken(product: Product) -> str:
    facts = product.facts
    start = str(facts.get("START_TIME", ""))[:19]
    start = f", {start}" if product.kind.has_spectra and "T" in start else ""
    season = facts.get("SOLAR_LONGITUDE")
    season = season["value"] if isinstance(season, dict) else season
    binning = facts.get("PIXEL_AVERAGING_WIDTH")
    words = [product.name + start]
    words += [f"Ls {season:.1f}°"] if isinstance(season, int | float) else []
    binned = crism.binned(binning) if isinstance(binning, int) else ""
    words += [binned] if binned not in product.kind.holds else []
    return ", ".join(words)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _numbered(what: str, numbers: NDArray[np.integer]) -> str:
    """band 3, or bands 0-2, 7."""
    return f"{what} {spans(numbers)}" if len(numbers) == 1 else f"{what}s {spans(numbers)}"


def _wavelengths(product: Product, good: NDArray[np.bool_] | None) -> str:
    found = product.wavelength
    if found is None or not np.isfinite(found).any():
        names = " | ".join(product.band_names[:4]) + (" | …" if len(product.band_names) > 4 else "")
        return f"none; bands: {names}" if names else "none"
    steps = np.diff(found[np.isfinite(found)])
    order = "rising" if (steps > 0).all() else "falling" if (steps < 0).all() else "in no order"
    text = (
        f"{np.nanmin(found):.4f} to {np.nanmax(found):.4f} µm, {order} in the file, from: {product.wavelength_source}"
    )
    return text if good is None else f"{text}; {np.count_nonzero(good)} of {found.size} bands good"


def _place(product: Product) -> str:
    grid = product.grid
    if product.kind.sensor and product.shape[2] > LONGITUDE and (product.parts and product.parts.kind == "DDR"):
        return _backplanes(product)
    if grid.crs is None or grid.transform is None:
        return f"{len(grid.ground_points)} ground points" if grid.ground_points else "no coordinates in the file"
    crs, (a, b, c, d, e, f) = pyproj.CRS.from_wkt(grid.crs), grid.transform
    assert crs.ellipsoid is not None
    width, height = np.hypot(a, d), np.hypot(b, e)
    text = f"{crs.name}, radius {crs.ellipsoid.semi_major_metre / 1e3:.3f} km, pixels {width:g} × {height:g}"
    text += {"metre": " m", "degree": "°"}.get(crs.axis_info[0].unit_name, "")
    text += f", turned by {np.degrees(np.arctan2(d, a)):g}°" if b or d else ""
    try:
        longitude, latitude = mars.to_planetocentric(*grid.corners(), mars.coordinate_system(crs, "the map"))
    except InputError:
        return f"{text}, from ({c:g}, {f:g})"
    return f"{text}, {_degrees(longitude)} E, {_degrees(latitude)} N"


def _backplanes(product: Product) -> str:
    if product.pixels is None:
        return ""
    planes = survey.read(product, slice(None))
    return f"every pixel: {_degrees(planes[:, :, LONGITUDE])} E, {_degrees(planes[:, :, LATITUDE])} N"


def _degrees(values: NDArray[np.floating]) -> str:
    return f"{np.nanmin(values):.4f}° to {np.nanmax(values):.4f}°" if np.isfinite(values).any() else "nowhere"


def _values(found: Inspection) -> str:
    product = found.product
    if found.survey is None:
        return "no image that can be trusted"
    share = 100.0 * found.n_valid / (product.shape[0] * product.shape[1])
    text = f"{share:.1f} % of the pixels {'valid' if product.kind.has_spectra else 'have values'}"
    sample = survey.sample_spectra(product)
    sample = sample if found.good is None else sample[:, found.good]
    sample = sample[np.isfinite(sample)]
    if sample.size and product.kind.quantity:
        low, high = np.percentile(sample, (1, 99))
        text += f"; {product.kind.quantity} {low:.4g} to {high:.4g} (1st to 99th percentile)"
    return text + (f"; fill {', '.join(f'{value:g}' for value in product.fill)}" if product.fill else "")


def _oddities(product: Product, found: Survey, good: NDArray[np.bool_] | None) -> list[str]:
    """Sentences about fill, garbage and wavelengths."""
    told = []
    if found.is_empty:
        return ["every pixel is fill: there is nothing in this image"]
    empty = np.flatnonzero(found.n_measured == 0)
    if empty.size:
        told.append(f"fill only in {_numbered('band', empty)}")
    if product.shape[0] > 1:
        for what, places in (("sample", found.empty_samples), ("line", found.empty_lines)):
            told += [f"fill only in {_numbered(what, places)}"] if places.size else []
    if product.kind.has_spectra:
        garbage = np.flatnonzero(found.n_outside > 0.05 * np.maximum(found.n_measured, 1))
        if 0 < garbage.size < product.shape[2] / 2:
            low, high = np.nanmin(found.lowest[garbage]), np.nanmax(found.highest[garbage])
            told.append(f"garbage in {_numbered('band', garbage)}: values from {low:.4g} to {high:.4g}")
        n_wild = int(found.n_outside.sum() - found.n_outside[garbage].sum())
        told += [f"{_counted(n_wild, 'value')} elsewhere out of ingest.valid_range"] if n_wild else []
        if found.n_zero:
            told.append(f"{_counted(found.n_zero, 'pixel')} of 0 in every band; if 0 is fill, {ingest.NAME_FILL}")
    told += ["two bands have the same wavelength"] if _has_twins(product) else []
    listed = np.flatnonzero(~product.listed_good)
    told += [f"listed as bad: {_numbered('band', listed)}"] if listed.size and good is not None else []
    if product.wavelength is not None:
        left = np.setdiff1d(listed, bands.with_place(product.wavelength, product.listed_good))
        if left.size:
            told.append(f"ingest leaves out {_numbered('band', left)}: bad, and without a wavelength of their own")
    return told


def _has_twins(product: Product) -> bool:
    """Whether two bands, none of them listed as bad, have the same wavelength."""
    if product.wavelength is None:
        return False
    placed = bands.with_place(product.wavelength, product.listed_good)
    return bool((np.diff(product.wavelength[placed]) == 0.0).any())


def _next_step(found: Inspection) -> str:
    product = found.product
    if not product.kind.has_spectra:
        return f"ingest does not take it: {product.kind.purpose}"
    if found.survey is None or found.survey.is_empty:
        return "ingest refuses it: see above"
    if product.wavelength is None:
        return "ingest needs wavelengths: give a list of one number per band as --wavelengths"
    if not found.n_valid or found.is_refused:
        return "ingest refuses it: see above"
    name = product.parts
    companions = ""
    if name is not None and name.kind in ("TRR", "TER"):
        companions = " --ddr DDR" + (" --wavelengths WA" if product.wavelength_source == "nominal" else "")
    return f"gibbsite ingest {product.path.name}{companions} --out cubes/SCENE.zarr"


def _bytes(path: Path) -> str:
    size = float(path.stat().st_size)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")

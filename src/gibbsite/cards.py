"""What the page's cards show of each class."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gibbsite.palette import ink
from gibbsite.spectra import Classes, ClassSpectra, Floats, open_gaps

SPARKLINE = (240.0, 64.0)
"""Width and height of the small spectra in the cards, in pixels."""

NOT_INTERPRETED: Mapping[str, Any] = {
    "suspected_artefact": False,
    "artefact_reasons": [],
    "suspected_mixture": False,
    "mixture": [],
    "apart": None,
    "nearest_known": None,
    "matches": [],
    "bands": [],
}

Interpretation = Sequence[Mapping[str, Any]]


def class_cards(
    classes: Classes,
    n_pixels: Mapping[int, int],
    spectra: ClassSpectra,
    interpretation: Interpretation,
    evaluation: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """The classes with all that their cards and rows show; `n_pixels` of each code on the maps."""
    n_all = max(1, sum(n_pixels.values()))
    # A known class is compared with the truth of its name, a discovered one may stand for several truths.
    scores: dict[str, list[Mapping[str, Any]]] = {}
    for score in (evaluation or {}).get("classes", []):
        scores.setdefault(score["matched"], []).append(score)
    meaning = interpretation or [NOT_INTERPRETED] * len(classes)
    values, kind = spectra.ratio.removed, "without continuum"
    if not np.isfinite(values).any():
        values, kind = spectra.ratio.mean, "over bland pixels"
    return [
        {
            **item,
            **{key: own[key] for key in NOT_INTERPRETED},
            "ink": ink(item["colour"]),
            "n_pixels": n_pixels[item["code"]],
            "share": n_pixels[item["code"]] / n_all,
            "scores": scores.get(item["name"], []),
            "sparkline": sparkline(spectra.wavelength, values[k]),
            "sparkline_kind": kind,
        }
        for k, (item, own) in enumerate(zip(classes, meaning, strict=True))
    ]


def sparkline(wavelength: Floats, values: Floats) -> str:
    """The path of an SVG line through the values, broken at gaps; empty when there are none."""
    used = np.isfinite(values)
    if not used.any():
        return ""
    inside = slice(int(used.argmax()), len(used) - int(used[::-1].argmax()))
    x, y = open_gaps(wavelength[inside], values[inside])
    low, high = np.nanpercentile(y, 0.5), np.nanpercentile(y, 99.5)
    width, height = SPARKLINE
    across = (x - x[0]) / max(x[-1] - x[0], 1e-9) * width
    down = height - 4 - np.clip((y - low) / max(high - low, 1e-9), -0.05, 1.05) * (height - 8)
    path, pen_is_up = [], True
    for px, py in zip(across, down, strict=True):
        if np.isfinite(py):
            path.append(f"{'M' if pen_is_up else 'L'}{px:.1f} {py:.1f}")
        pen_is_up = not np.isfinite(py)
    return "".join(path)

"""What a class may be: its absorption bands, the library spectra most like it, the nearest mixture of other classes,
and why it may be an artefact.

`read` and `write_json` are the contract with the steps that show it: a list with one object per class.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gibbsite import artefacts
from gibbsite.continuum import Band, find_bands
from gibbsite.errors import InputError
from gibbsite.matching import Floats, Reference, likeness, rank, shape
from gibbsite.mixtures import nearest_mixtures
from gibbsite.model import Model
from gibbsite.spectra import Classes, ClassSpectra
from gibbsite.whereabouts import Places

Shapes = Sequence[tuple[Reference, Floats]]
KEYS = (
    *("code", "suspected_artefact", "artefact_reasons", "suspected_mixture", "mixture", "apart"),
    *("nearest_known", "matches", "bands"),
)
"""What readers rely on, of every class."""


def covered(wavelength: Floats, limits: tuple[float, float]) -> tuple[float, float]:
    """The part of the limits (µm) in which there are bands at all."""
    inside = wavelength[(wavelength >= limits[0]) & (wavelength <= limits[1])]
    return (float(inside[0]), float(inside[-1])) if inside.size else limits


def shapes_of(references: Sequence[Reference], limits: tuple[float, float]) -> Shapes:
    """The references that cover the limits, with their shapes."""
    found = ((reference, shape(reference.wavelength, reference.spectrum, limits)) for reference in references)
    return [(reference, own) for reference, own in found if own is not None]


def interpret(
    spectra: ClassSpectra, classes: Classes, library: Shapes, limits: tuple[float, float], min_depth: float
) -> list[dict[str, Any]]:
    """One object per class with its bands, its matches (all of them) and its nearest known class."""
    shapes = [shape(spectra.wavelength, row, limits) for row in spectra.ratio.mean]
    known = [
        (item["name"], own) for item, own in zip(classes, shapes, strict=True) if item["is_known"] and own is not None
    ]
    found = []
    for k, (item, own) in enumerate(zip(classes, shapes, strict=True)):
        nearest = (
            max(((likeness(own, other), name) for name, other in known), default=None) if own is not None else None
        )
        nearest = None if item["is_known"] else nearest
        matches = rank(own, library) if own is not None else []
        found.append(
            {
                "code": item["code"],
                "name": item["name"],
                "is_known": item["is_known"],
                "bands": [
                    _rounded(band) for band in find_bands(spectra.wavelength, spectra.ratio.removed[k], min_depth)
                ],
                "matches": [
                    {"name": match.name, "score": round(score, 4), "source": match.source} for match, score in matches
                ],
                "nearest_known": nearest[1] if nearest else None,
                "nearest_known_score": round(nearest[0], 4) if nearest else None,
            }
        )
    return found


def mixtures(model: Model) -> list[dict[str, Any]]:
    """For each class whether it may be a mixture of others, the nearest mixture, and how far from it it lies."""
    mean, variance = model.moments()
    return [
        {
            "suspected_mixture": nearest is not None and nearest.is_near,
            "mixture": [
                {"name": model.classes[index]["name"], "share": round(share, 4)}
                for index, share in (nearest.parts if nearest else ())
            ],
            "apart": round(nearest.apart, 4) if nearest else None,
        }
        for nearest in nearest_mixtures(mean, variance, model.n_known)
    ]


def suspicions(bands: Sequence[Mapping[str, float]], places: Places, usual: tuple[int, float, float]) -> list[str]:
    """Why a discovered class may be an artefact, in words; empty when nothing speaks for it.

    `usual`: number of detector columns of the scenes, share of all pixels at edges, share of spiky ones.
    """
    n_columns, at_edge, spiky = usual
    told = (
        artefacts.false_bands([Band(**band) for band in bands]),
        artefacts.few_columns(places, n_columns),
        artefacts.edges(places, at_edge),
        artefacts.spikes(places, spiky),
    )
    return [reason for reason in told if reason is not None]


def read(path: Path, classes: Classes) -> list[dict[str, Any]]:
    """The interpretation of these classes, in their order; an InputError when the file is another's."""
    try:
        found = {item["code"]: item for item in json.loads(path.read_text(encoding="utf-8"))}
        ordered = [found[item["code"]] for item in classes]
        missing = {key for item in ordered for key in KEYS if key not in item}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: not an interpretation of this model's classes ({error}); run interpret") from None
    if missing:
        raise InputError(f"{path}: the interpretation lacks {', '.join(sorted(missing))}; run interpret anew")
    return ordered


def _rounded(band: Band) -> dict[str, float]:
    return {name: round(value, 4) for name, value in asdict(band).items()}

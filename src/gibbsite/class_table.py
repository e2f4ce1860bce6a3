"""The table of a scene's classes: what each is, how large, how sure, and what it may be."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import InputError
from gibbsite.rows import Rows, blocks_of
from gibbsite.zones import Sizes

COLUMNS = (
    "code",
    "name",
    "is_known",
    "colour",
    "n_pixels",
    "share",
    "area_m2",
    "mean_probability",
    "n_components",
    "n_polygons",
    "n_speck_pixels",
    "nearest_known",
    "suspected_artefact",
    "artefact_reasons",
    "suspected_mixture",
    "mixture",
    "apart",
    "best_match",
    "match_score",
)

Classes = Sequence[Mapping[str, Any]]
Interpretation = Mapping[int, Mapping[str, Any]]
"""What is known of a class beside the map, by code."""


def count_specks(code: Rows, sieved: Rows, n_codes: int) -> NDArray[np.int64]:
    """Pixels of each class code that the map without specks gives to another, because their patch is too small."""
    found = np.zeros(n_codes, np.int64)
    for rows in blocks_of(code.shape[0]):
        own = code[rows]
        found += np.bincount(own[own != sieved[rows]], minlength=n_codes)
    return found


def as_csv(
    classes: Classes,
    sizes: Sizes,
    n_polygons: NDArray[np.integer],
    n_specks: NDArray[np.integer],
    meaning: Interpretation,
) -> str:
    """The classes of one scene as CSV, absent ones too; all is by code, sizes of the map before specks are merged."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    n_mapped = max(1, int(sizes.n_pixels[1:].sum()))
    for item in classes:
        code = int(item["code"])
        writer.writerow(
            (
                code,
                item["name"],
                _word(bool(item["is_known"])),
                item["colour"],
                sizes.n_pixels[code],
                f"{sizes.n_pixels[code] / n_mapped:.6f}",
                _number(sizes.area[code], 1),
                _number(sizes.mean_probability[code], 4),
                item["n_components"],
                n_polygons[code],
                n_specks[code],
                *_meaning(meaning.get(code)),
            )
        )
    return text.getvalue()


def read_interpretation(path: Path, classes: Classes) -> Interpretation:
    """What the file says of each class, by code; InputError when it speaks of classes that are not there."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        by_code = {int(item["code"]): dict(item) for item in found}
    except OSError as error:
        raise InputError(f"{path}: cannot read the interpretation ({error.strerror})") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path}: not an interpretation of classes ({error!r}); expected a JSON list of objects with 'code'"
        ) from None
    strange = sorted(set(by_code) - {int(item["code"]) for item in classes})
    if strange:
        raise InputError(f"{path}: speaks of class {strange[0]}, which the model does not have; make both in one run")
    return by_code


def _meaning(item: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The last eight columns; empty where nothing was said."""
    if item is None:
        return ("",) * 8
    best = next(iter(item.get("matches") or ()), None)
    return (
        item.get("nearest_known") or "",
        _claim(item.get("suspected_artefact")),
        "; ".join(item.get("artefact_reasons") or ()),
        _claim(item.get("suspected_mixture")),
        " + ".join(f"{part['share']:.2f} {part['name']}" for part in item.get("mixture") or ()),
        "" if item.get("apart") is None else _number(item["apart"], 2),
        best["name"] if best else "",
        _number(best["score"], 4) if best else "",
    )


def _claim(claim: bool | None) -> str:
    return "" if claim is None else _word(bool(claim))


def _word(claim: bool) -> str:
    return str(claim).lower()


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ""

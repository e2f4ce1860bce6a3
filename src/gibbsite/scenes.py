"""The table of scenes: one row each, tab separated, checked before anything runs."""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gibbsite.errors import InputError

COLUMNS = ("scene", "cube", "ddr", "wavelengths", "labels", "truth")
"""Columns of the table; all but the first two may be empty or absent."""


@dataclass(frozen=True)
class SceneFiles:
    """The files of one scene, as the table names them; empty where there is none."""

    scene: str
    """Name: becomes part of every file name."""
    cube: str
    """Label, header or image of the cube."""
    ddr: str = ""
    """Geometry of a TRR3 cube."""
    wavelengths: str = ""
    """WA calibration file of a TRR3 cube."""
    labels: str = ""
    """Polygons or raster of known classes."""
    truth: str = ""
    """Raster of true classes, for evaluation."""


def read_scenes(path: Path) -> dict[str, SceneFiles]:
    """Scene name -> its files, in the order of the table; none when no scene is listed yet."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot read the table of scenes ({error.strerror})") from None
    rows = list(csv.DictReader((line for line in lines if line.strip()), delimiter="\t"))
    _check_columns(path, rows[0].keys() if rows else (lines[0].split("\t") if lines else ()))
    scenes: dict[str, SceneFiles] = {}
    for number, row in enumerate(rows, start=2):
        files = SceneFiles(**{key: (row.get(key) or "").strip() for key in COLUMNS})
        _check_row(path, number, files, scenes)
        scenes[files.scene] = files
    return scenes


def _check_columns(path: Path, found: Iterable[str]) -> None:
    unknown = [name for name in found if name not in COLUMNS]
    missing = [name for name in COLUMNS[:2] if name not in found]
    if unknown or missing:
        raise InputError(
            f"{path}: columns must be tab separated and among {', '.join(COLUMNS)} ('scene' and 'cube' required); "
            f"found {', '.join(map(repr, found)) or 'none'}"
        )


def _check_row(path: Path, number: int, files: SceneFiles, before: dict[str, SceneFiles]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", files.scene):
        raise InputError(
            f"{path}, row {number}: scene name {files.scene!r} must be letters, digits, '_', '-', '.', "
            "because files are named after it"
        )
    if files.scene in before:
        raise InputError(f"{path}, row {number}: scene {files.scene!r} is listed twice; give each row its own name")
    if not files.cube:
        raise InputError(f"{path}, row {number}: scene {files.scene!r} has no cube; name its label, header or image")

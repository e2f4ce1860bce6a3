"""The table of scenes: one row each, tab separated, checked before anything runs."""

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
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
    rows = _read_rows(path)
    if not rows:
        return {}
    _, columns = rows[0]
    _check_columns(path, columns)
    scenes: dict[str, SceneFiles] = {}
    for number, fields in rows[1:]:
        if len(fields) > len(columns):
            raise InputError(
                f"{path}, row {number}: found {len(fields)} fields for {len(columns)} columns; "
                "name every column in the first row, or take the tab out"
            )
        # A row may end early: the columns behind are empty.
        files = SceneFiles(**dict.fromkeys(COLUMNS, "") | dict(zip(columns, fields, strict=False)))
        _check_row(path, number, files, scenes)
        scenes[files.scene] = files
    return scenes


def check_files(path: Path, scenes: Mapping[str, SceneFiles], made: str | None) -> None:
    """Refuse scenes that name a file which is not there; those in the folder `made` will be there."""
    for files in scenes.values():
        for column in COLUMNS[1:]:
            name = getattr(files, column)
            if name and not Path(name).exists() and (made is None or Path(name).parent != Path(made)):
                raise InputError(
                    f"{path}: scene {files.scene!r}, column {column!r}: no such file {name}; "
                    "paths start from the folder you run in, and letter case counts"
                )


def megabytes(files: SceneFiles) -> float:
    """Size (10⁶ bytes) of the cube's own files: of the same name as the one in the table, whatever their ending.

    0 before a simulated scene is written.
    """
    named = Path(files.cube)
    try:
        beside = [path for path in named.parent.iterdir() if path.stem.lower() == named.stem.lower()]
    except FileNotFoundError:
        return 0.0
    return sum(path.stat().st_size for path in beside) / 1e6


def _read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Line number and fields of each row that is not blank, without empty fields at its end."""
    try:
        content = path.read_bytes()
        # Spreadsheets mark their UTF-8 with a BOM, and what they call Unicode text is UTF-16.
        lines = content.decode("utf-16" if content[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot read the table of scenes ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; save the table of scenes as tab separated text (UTF-8)") from None
    rows = []
    for number, fields in enumerate(csv.reader((line.rstrip() for line in lines), delimiter="\t"), start=1):
        if any(field.strip() for field in fields):
            rows.append((number, [field.strip() for field in fields]))
    return rows


def _check_columns(path: Path, found: Sequence[str]) -> None:
    unknown = [name for name in found if name not in COLUMNS]
    missing = [name for name in COLUMNS[:2] if name not in found]
    if unknown or missing:
        raise InputError(
            f"{path}: columns must be tab separated and among {', '.join(COLUMNS)} ('scene' and 'cube' required); "
            f"found {', '.join(map(repr, found)) or 'none'}"
        )
    twice = [name for name in COLUMNS if found.count(name) > 1]
    if twice:
        raise InputError(f"{path}: column {twice[0]!r} is there twice; keep one of them")


def _check_row(path: Path, number: int, files: SceneFiles, before: dict[str, SceneFiles]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", files.scene):
        raise InputError(
            f"{path}, row {number}: scene name {files.scene!r} must be letters, digits, '_', '-', '.', "
            "because files are named after it"
        )
    # Some file systems take names that differ only in letter case for one.
    if files.scene.casefold() in (name.casefold() for name in before):
        raise InputError(f"{path}, row {number}: scene {files.scene!r} is listed twice; give each row its own name")
    if not files.cube:
        raise InputError(f"{path}, row {number}: scene {files.scene!r} has no cube; name its label, header or image")

"""Checksums of results, in the format of `sha256sum`, and what differs from published ones."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gibbsite.errors import InputError

NAME = "SHA256SUMS"
PARTS = ("scores", "tables", "figures")
"""Folders of results that a rerun gives again byte by byte, beside the page."""
PAGE = "experiments.html"


@dataclass(frozen=True)
class Difference:
    """A file that is not the published one."""

    name: str
    found: str
    """In words."""


def sums(folder: Path) -> str:
    """A line per result file, sorted: SHA-256, two blanks, path in the folder."""
    files = [folder / PAGE, *(path for part in PARTS for path in (folder / part).rglob("*") if path.is_file())]
    names = sorted(path.relative_to(folder).as_posix() for path in files if path.is_file())
    return "".join(f"{_digest(folder / name)}  {name}\n" for name in names)


def read(path: Path) -> dict[str, str]:
    """File -> SHA-256."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot read the checksums ({error.strerror})") from None
    found = {}
    for number, line in enumerate(lines, 1):
        digest, blanks, name = line.partition("  ")
        if len(digest) != 64 or not blanks:
            raise InputError(f"{path}: line {number} is no checksum; expected SHA-256, two blanks and a file")
        found[name] = digest
    return found


def differences(folder: Path, published: Path) -> list[Difference]:
    """Published files that the results lack or have otherwise; tables with the largest difference of a number.

    `published` is a file of checksums; the published tables are looked for beside it.
    """
    found = []
    for name, digest in read(published).items():
        path = folder / name
        if not path.is_file():
            found.append(Difference(name, "is not there"))
        elif _digest(path) != digest:
            found.append(Difference(name, f"has other bytes{_how_far(path, published.parent / name)}"))
    return found


def _how_far(path: Path, other: Path) -> str:
    """The largest difference between two tables, in words."""
    if path.suffix != ".csv" or not other.is_file():
        return ""
    ours, theirs = pd.read_csv(path), pd.read_csv(other)
    if ours.shape != theirs.shape or list(ours) != list(theirs):
        return f": {ours.shape[0]} lines × {ours.shape[1]} columns, published {theirs.shape[0]} × {theirs.shape[1]}"
    numbers = ours.select_dtypes("number").columns.intersection(theirs.select_dtypes("number").columns)
    gap = (ours[numbers] - theirs[numbers]).abs().max()
    if not gap.max() > 0:
        return ": no number differs, words do"
    return f": largest difference {gap.max():.4g}, in {gap.idxmax()}"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

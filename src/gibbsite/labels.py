"""Known classes of a scene's pixels, and which of them the model may see.

Every label file, whatever its format, comes down to claims: the pixels it gives to a class. Here claims are settled
into one class per pixel, and training pixels are chosen.

A labels store holds `known` (y, x) int16, an index into the attribute `class_names`, -1 for none, and `role`
(y, x) uint8: 0 unlabelled, 1 train, 2 held out. Its attributes tell the rest: `observed`, `wanted`, `colours`,
`disputed`, and `files`, the label files with their SHA-256.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.errors import InputError, SettingsError
from gibbsite.scene import Grid
from gibbsite.settings import Labels

UNLABELLED, TRAIN, HELD_OUT = 0, 1, 2
"""Roles of a pixel."""
NO_CLASS = -1
"""Index of a pixel whose class is not known."""
Files = Sequence[dict[str, Any]]
"""Name, sha256 and bytes of files."""


@dataclass(frozen=True, eq=False)
class Claim:
    """The pixels that a label file gives to a class."""

    name: str
    """Of the class, as the file spells it."""
    pixels: NDArray[np.int64]
    """Flat indices, in any order; there may be none."""
    colour: str | None = None
    """`#rrggbb`, where the file has one."""


@dataclass(frozen=True)
class Found:
    """What a label file says."""

    claims: Sequence[Claim]
    """Several may name one class."""
    remarks: Sequence[str] = ()
    """Sentences the user should read: what was left out or repaired."""


@dataclass(frozen=True, eq=False)
class KnownClasses:
    """The known class of every pixel."""

    class_names: tuple[str, ...]
    """Sorted; all classes the user named, also those without a pixel here."""
    known: NDArray[np.int16]
    """(y, x) index into class_names, -1 none."""
    colours: Mapping[str, str] = field(default_factory=dict)
    """`#rrggbb` of the classes that were given one."""
    disputed: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """Classes that claim the same valid pixels -> how many; these stay unlabelled."""
    remarks: tuple[str, ...] = ()
    """Sentences the user should read."""


def settle_names(found: Iterable[str], path: Path) -> dict[str, str]:
    """Name as found -> name as used (blanks trimmed); refuses blank, reserved, path-like and twice-named classes."""
    settled: dict[str, str] = {}
    spelling: dict[str, str] = {}
    for name in sorted(set(found)):
        # Letters with an accent come as one character or as two, which nobody can see.
        used = unicodedata.normalize("NFC", " ".join(name.split()))
        if not used:
            raise InputError(f"{path}: found an empty class name, expected a name for every class; fill it in")
        if not used.isprintable():
            raise InputError(f"{path}: class {name!r} has characters that cannot be printed; give it another name")
        if re.match(r"[./\\~]|[A-Za-z]:[/\\]", used) or re.search(r"\\|\.\./|/\.\.", used):
            raise InputError(f"{path}: class {name!r} is named like a path of files; give it another name")
        first = spelling.setdefault(used.casefold(), name)
        if first != name:
            raise InputError(
                f"{path}: class named twice, as {first!r} and as {name!r}; spell it one way, or rename one"
            )
        if used.startswith("new-") and used[4:].isdecimal():
            raise InputError(f"{path}: class {name!r} has a name kept for discovered classes; give it another")
        settled[name] = used
    return settled


def hex_colour(text: str, where: str) -> str:
    """`#rrggbb` of a colour written so, as `#rgb`, or as three numbers 0 to 255 in any brackets."""
    bare = text.strip().lower()
    if re.fullmatch(r"#[0-9a-f]{6}", bare):
        return bare
    if re.fullmatch(r"#[0-9a-f]{3}", bare):
        return "#" + "".join(2 * digit for digit in bare[1:])
    parts = re.split(r"[,;\s]+", bare.strip("{}[]() "))
    if len(parts) not in (3, 4) or any(not part.isdecimal() or int(part) > 255 for part in parts):
        raise InputError(f"{where}: found the colour {text!r}, expected #rrggbb or three numbers from 0 to 255")
    return "#" + "".join(f"{int(part):02x}" for part in parts[:3])


def no_classes(grid: Grid) -> KnownClasses:
    """The known classes of a scene nobody labelled."""
    return KnownClasses((), np.full((grid.height, grid.width), NO_CLASS, np.int16))


def settle(found: Found, valid: NDArray[np.bool_], path: Path) -> KnownClasses:
    """One class for each valid pixel (y, x) that only one class claims."""
    settled = settle_names((claim.name for claim in found.claims), path)
    class_names = tuple(sorted(set(settled.values())))
    colours: dict[str, str] = {}
    for claim in found.claims:
        if claim.colour is not None:
            colours.setdefault(settled[claim.name], claim.colour)
    n_claims, known = np.zeros(valid.size, np.int16), np.full(valid.size, NO_CLASS, np.int16)
    pixels_of, remarks = {}, []
    for index, name in enumerate(class_names):
        claimed = np.unique(np.concatenate([claim.pixels for claim in found.claims if settled[claim.name] == name]))
        usable = claimed[valid.ravel()[claimed]]
        if len(claimed) and not len(usable):
            remarks.append(f"class {name} lies on pixels without valid data only")
        pixels_of[name] = usable
        known[usable] = index
        n_claims[usable] += 1
    shared = np.flatnonzero(n_claims > 1)
    known[shared] = NO_CLASS
    disputed = _disputes(pixels_of, shared)
    if disputed:
        pairs = "; ".join(f"{count} of {' and '.join(names)}" for names, count in disputed.items())
        remarks.append(f"{len(shared)} pixels under several classes were left unlabelled: {pairs}")
    return KnownClasses(class_names, known.reshape(valid.shape), colours, disputed, (*found.remarks, *remarks))


def check_labelled(classes: KnownClasses, path: Path) -> None:
    """Refuse classes that label no pixel."""
    if not (classes.known != NO_CLASS).any():
        told = f"; {classes.remarks[0]}" if classes.remarks else ""
        raise InputError(
            f"{path}: no labelled pixel; its classes ({', '.join(classes.class_names)}) cover no valid pixel "
            f"of the scene{told}; check that they belong to this scene"
        )


def check_wanted(wanted: Sequence[str] | None, class_names: Iterable[str]) -> None:
    """Refuse classes to observe, `labels.observed`, that no label names."""
    names = sorted(class_names)
    unknown = [name for name in wanted or () if name not in names]
    if unknown:
        raise SettingsError(
            f"labels.observed: found {unknown[0]!r}, which is no class of the labels; "
            f"expected some of {', '.join(names) or 'none, since nothing is labelled'}"
        )


def observed_classes(classes: KnownClasses, wanted: Sequence[str] | None) -> list[bool]:
    """A claim per class: the model is shown pixels of it. `wanted` names the classes it may see; None: all.

    A class that is only named, in a tag or by polygons of another scene, has nothing to show.
    """
    labelled = set(np.unique(classes.known).tolist())
    return [index in labelled and (wanted is None or name in wanted) for index, name in enumerate(classes.class_names)]


def choose_roles(classes: KnownClasses, observed: Sequence[bool], seed: int, settings: Labels) -> NDArray[np.uint8]:
    """Roles (y, x): a seeded share of each observed class trains, all other labelled pixels are held out.

    A class draws under its own name, so its training pixels stay the same when other classes come or go.
    """
    role = np.where(classes.known == NO_CLASS, UNLABELLED, HELD_OUT).astype(np.uint8)
    flat_role, flat_known = role.reshape(-1), classes.known.reshape(-1)
    for index, (name, is_observed) in enumerate(zip(classes.class_names, observed, strict=True)):
        if not is_observed:
            continue
        pixel = np.flatnonzero(flat_known == index)
        n_share = int(np.floor(settings.train_fraction * len(pixel) + 0.5))
        n_train = min(len(pixel), max(n_share, settings.min_train))
        # The raw numbers of Philox never change with the version of numpy; its shuffles may.
        order = np.argsort(np.random.Philox(key=_key(seed, name)).random_raw(len(pixel)), kind="stable")
        flat_role[pixel[order[:n_train]]] = TRAIN
    return role


def write(path: Path, classes: KnownClasses, observed: Sequence[bool], role: NDArray[np.uint8], **facts: Any) -> None:
    """Write the labels store; `facts` are the scene's name, `wanted` (labels.observed) and the label `files`."""
    facts = {"wanted": None, "files": []} | facts
    facts |= {
        "class_names": list(classes.class_names),
        "observed": list(observed),
        "colours": dict(classes.colours),
        "disputed": [{"classes": list(names), "n_pixels": count} for names, count in classes.disputed.items()],
    }
    with store.create(path, "labels", **facts) as group:
        chunks = store.line_chunks(classes.known.shape)
        store.add_array(group, "known", ("y", "x"), classes.known, fill_value=NO_CLASS, chunks=chunks)
        store.add_array(group, "role", ("y", "x"), role, chunks=chunks)


def given_colours(paths: Iterable[Path]) -> dict[str, str]:
    """Class -> the colour that the labels of some scenes give it, the first that do."""
    colours: dict[str, str] = {}
    for path in paths:
        colours = store.read(path, "labels").attrs["colours"] | colours
    return colours


def _key(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/labels/{name}".encode()).digest()[:16], "little")


def _disputes(pixels_of: Mapping[str, NDArray[np.int64]], shared: NDArray[np.int64]) -> dict[tuple[str, ...], int]:
    """Classes that claim the same of the shared pixels -> how many, the most first."""
    if not len(shared):
        return {}
    claimed = np.stack([np.isin(shared, pixels) for pixels in pixels_of.values()])
    which, count = np.unique(claimed, axis=1, return_counts=True)
    named = [tuple(name for name, is_of in zip(pixels_of, of, strict=True) if is_of) for of in which.T]
    return {named[i]: int(count[i]) for i in np.argsort(-count, kind="stable")}

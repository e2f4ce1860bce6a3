"""Tables read by name, or drawn."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from gibbsite.errors import InputError
from gibbsite.experiments import brought, simulated
from gibbsite.experiments.catalogue import FCS, SOURCES
from gibbsite.experiments.table import Table, whitened

SIMULATED_FROM = 999
"""Seed of the simulated tables, plus their number."""

Reader = Callable[[Path, int], Table]
"""File and number of features in, table out."""


def load(name: str, folder: Path, n_features: int | None = None, n_cells: int = 280_000) -> Table:
    """The table called so: a real one from the folder, or simulated-N, cytometry-DISTANCE, cytometry-fcs."""
    if name in SOURCES:
        path = folder / SOURCES[name].file
        if not path.is_file():
            raise InputError(f"{path}: no such file; the table {name} is read from it (docs/experiments.md)")
        return _reader(name)(path, n_features or SOURCES[name].n_features)
    kind, _, which = name.partition("-")
    if kind == "simulated" and which.isdigit():
        return simulated.two_layers(SIMULATED_FROM + int(which)).table
    if name == FCS:
        return brought.fcs_samples(folder / "cytometry")
    if kind == "cytometry" and which.isdigit():
        return simulated.rare_cells(float(which), n_cells)
    known = ", ".join([*SOURCES, "simulated-N", "cytometry-DISTANCE", FCS])
    raise InputError(f"no table is called {name!r}; there are {known}")


def _reader(name: str) -> Reader:
    if name in brought.CHANNELS:
        return _csv
    if name == "salinas":
        return _salinas
    if name == "vowel":
        # The first three columns tell who speaks and whether the row is for training.
        return partial(_npz, columns=slice(3, None))
    if name == "dlbcl":
        return partial(_npz, is_zero_unlabelled=True)
    if name.startswith("gvhd-"):
        return partial(_gvhd, int(name.removeprefix("gvhd-")))
    return _npz


def _csv(path: Path, n_features: int) -> Table:
    table = brought.csv_table(path, brought.CHANNELS[path.stem])
    return Table(whitened(table.x, n_features), table.truth, table.names)


def _npz(path: Path, n_features: int, columns: slice = slice(None), is_zero_unlabelled: bool = False) -> Table:
    x, y = _arrays(path, "X", "y")
    is_used = y > 0 if is_zero_unlabelled else np.ones(len(y), bool)
    return Table.of(whitened(x[is_used][:, columns], n_features), y[is_used])


def _salinas(path: Path, n_features: int) -> Table:
    cube, label = _arrays(path, "cube", "gt")
    spectra, label = cube.reshape(label.size, -1), label.ravel()
    return Table.of(whitened(spectra[label > 0], n_features), label[label > 0])


def _gvhd(sample: int, path: Path, n_features: int) -> Table:
    x, y, of_sample = _arrays(path, "X", "y", "sample")
    mine = (of_sample == sample) & (y > 0)
    return Table.of(whitened(x[mine], n_features), y[mine])


def _arrays(path: Path, *names: str) -> list[np.ndarray]:
    """The arrays called so of an .npz file."""
    try:
        with np.load(path) as found:
            return [found[name] for name in names]
    except (OSError, ValueError, KeyError, AttributeError, TypeError, BadZipFile, EOFError) as error:
        raise InputError(
            f"{path}: cannot read it ({error}); expected an .npz file with {', '.join(names)} (docs/experiments.md)"
        ) from None

"""Data the paper used and we may not pass on, read when the user brings it: CSV tables and FCS files.

    DATA/flc1.csv, nddg1.csv, stemcell.csv    a header line, one column per channel, and a column `class`
    DATA/cytometry/known.fcs                  cells of the common phenotype
    DATA/cytometry/mixed.fcs                  the sample with rare cells
    DATA/cytometry/mixed.csv                  a column `class`, one line per cell of mixed.fcs, `common` or a name

In a column `class`, 0 and empty stand for cells or pixels without class; they are left out.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from flowio import FlowData
from flowio.exceptions import FlowIOException

from gibbsite.errors import InputError
from gibbsite.experiments.table import Floats, Table

CLASS = "class"
COMMON = "common"
COFACTOR = 150.0
"""Of the arcsinh that fluorescence is shown with: about linear below, logarithmic above."""

CHANNELS = {"flc1": 12, "nddg1": 12, "stemcell": 6}
"""Of the paper's tables (its table of F1 scores)."""


def csv_table(path: Path, n_channels: int) -> Table:
    """A table of channels with a column `class`."""
    frame = _read_csv(path)
    names = _class_names(frame, path)
    channels = frame.drop(columns=CLASS)
    words = [str(name) for name in channels if not pd.api.types.is_numeric_dtype(channels[name])]
    if words:
        raise InputError(f"{path}: column {words[0]!r} holds text; expected numbers in every column but {CLASS!r}")
    if channels.shape[1] != n_channels:
        raise InputError(
            f"{path}: found {channels.shape[1]} channels; expected {n_channels} and a column {CLASS!r}, as in the paper"
        )
    x = channels.to_numpy(np.float64)
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        row, column = bad[0]
        raise InputError(f"{path}: line {row + 2} has no number in column {channels.columns[column]!r}; fill it in")
    is_used = names != ""
    if len(set(names[is_used])) < 2:
        raise InputError(f"{path}: found {len(set(names[is_used]))} classes in column {CLASS!r}; expected two or more")
    return _table(x[is_used], names[is_used])


def fcs_samples(folder: Path) -> Table:
    """Both samples of the rare-cell search, from FCS files; every cell of the first is given as `common`."""
    known, channels = fcs_cells(folder / "known.fcs")
    mixed, found = fcs_cells(folder / "mixed.fcs")
    if found != channels:
        raise InputError(
            f"{folder / 'mixed.fcs'}: found the channels {', '.join(found)}; known.fcs has {', '.join(channels)}"
        )
    path = folder / "mixed.csv"
    names = _class_names(_read_csv(path), path)
    if len(names) != len(mixed):
        raise InputError(f"{path}: found {len(names)} classes for {len(mixed)} cells of mixed.fcs; give one line each")
    if COMMON not in names:
        raise InputError(f"{path}: no cell is {COMMON!r}; name the class of known.fcs so")
    is_used = names != ""
    table = _table(
        np.concatenate([known, mixed[is_used]]), np.concatenate([np.full(len(known), COMMON, object), names[is_used]])
    )
    return Table(table.x, table.truth, table.names, np.arange(len(table.x)) < len(known))


def fcs_cells(path: Path) -> tuple[Floats, tuple[str, ...]]:
    """Cells (n_cells, n_channels) of an FCS file, fluorescence as arcsinh, without time; and names of the channels."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected an FCS file (2.0, 3.0 or 3.1)")
    try:
        # The library would leave a file open that it cannot read.
        with path.open("rb") as file:
            # Some instruments write offsets in the header and in the text that differ by one.
            flow = FlowData(file, ignore_offset_discrepancy=True)
        events = np.asarray(flow.as_array(), np.float64)
    except (FlowIOException, NotImplementedError, ValueError, KeyError, OSError, EOFError) as error:
        raise InputError(f"{path}: not a readable FCS file ({' '.join(str(error).split())})") from None
    is_kept = np.array([index != flow.time_index for index in range(events.shape[1])])
    is_light = np.isin(np.arange(events.shape[1]), flow.fluoro_indices)
    x = np.where(is_light, np.arcsinh(events / COFACTOR), events)[:, is_kept]
    names = tuple(str(name) for name, kept in zip(flow.pnn_labels, is_kept, strict=True) if kept)
    if not x.size or not np.isfinite(x).all():
        raise InputError(f"{path}: found {len(x)} cells, or values that are no numbers; expected finite values")
    return x, names


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_csv(path, dtype={CLASS: str}, keep_default_na=False, na_values={})
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise InputError(f"{path}: cannot be read as CSV ({' '.join(str(error).split())})") from None
    if CLASS not in frame:
        raise InputError(f"{path}: found the columns {', '.join(map(str, frame))}; expected one called {CLASS!r}")
    return frame


def _class_names(frame: pd.DataFrame, path: Path) -> np.ndarray:
    """The class of each line; empty: none."""
    names = frame[CLASS].str.strip().to_numpy(object)
    if not len(names):
        raise InputError(f"{path}: has a header and no line; expected one line per cell or pixel")
    names[names == "0"] = ""
    return names


def _table(x: Floats, names: np.ndarray) -> Table:
    known = sorted(set(names))
    index = {name: number for number, name in enumerate(known)}
    return Table(x, np.array([index[name] for name in names], np.int64), tuple(known))

"""How long the sweeps of a run took, as a page beside the report.

Times differ from run to run. So they are not in the report, whose bytes are the same whenever its results are, but in a
page that it links to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite import pages
from gibbsite.progress import Timing, read_timings

PAGE = "timings.html"
"""Name of the page, beside the report."""

CHART = (600.0, 120.0)
"""Width and height of a chart, in pixels."""

POINTS = 400
"""Sweeps of a longer chain are drawn as means of neighbours, so many at most."""


@dataclass(frozen=True)
class Row:
    """What the page tells of one chain."""

    chain: int
    n_sweeps: int
    seconds: float
    """Of all its sweeps."""
    median: float
    """Seconds of a sweep."""
    slowest: float
    """Seconds of the longest sweep."""
    top: float
    """Seconds to which the chart reaches: those of the longest sweep after the first."""
    dask_share: float
    whole: str
    """Area of the chart below the seconds of each sweep, as an SVG path."""
    dask: str
    """That of Dask's part."""


def page(tables: Sequence[tuple[int, Path]]) -> str:
    """The page, of chains and the tables of their sweeps; a chain without a table is told to have none."""
    told = [(chain, read_timings(path)) for chain, path in tables]
    rows = [_row(chain, timings) for chain, timings in told if timings]
    untold = [chain for chain, timings in told if not timings]
    return pages.environment().get_template("timings.html.j2").render(rows=rows, untold=untold, chart=CHART)


def _row(chain: int, timings: Sequence[Timing]) -> Row:
    whole = np.array([timing.seconds for timing in timings])
    dask = np.array([timing.dask_seconds for timing in timings])
    # Kernels may be compiled in the first sweep, which would flatten all others.
    top = max(float(whole[1:].max(initial=0.0)) if len(whole) > 1 else float(whole[0]), 1e-9)
    return Row(
        chain=chain,
        n_sweeps=len(timings),
        seconds=float(whole.sum()),
        median=float(np.median(whole)),
        slowest=float(whole.max()),
        top=top,
        dask_share=float(dask.sum() / max(whole.sum(), 1e-9)),
        whole=_area(np.minimum(whole / top, 1.0)),
        dask=_area(np.minimum(dask / top, 1.0)),
    )


def _area(height: NDArray[np.float64]) -> str:
    """The area below heights from 0 to 1, a step for each sweep, or for some sweeps of a long chain."""
    steps = np.array([part.mean() for part in np.array_split(height, min(len(height), POINTS))])
    x = np.repeat(np.linspace(0.0, CHART[0], len(steps) + 1), 2)[1:-1]
    y = CHART[1] * (1.0 - np.repeat(steps, 2))
    line = "".join(f"L{px:.1f} {py:.1f}" for px, py in zip(x, y, strict=True))
    return f"M0 {CHART[1]:g}{line}L{CHART[0]:g} {CHART[1]:g}Z"

"""What the pixels of a product are like, counted block of lines by block of lines: fill, garbage, range."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite.product import Product

Floats = NDArray[np.float64]

_BLOCK_VALUES = 4 * 2**20
"""Values held at once."""
_NO_NUMBER = 1e30
"""No product measures as much."""
_SAMPLE_LINES = 48
"""Lines, spread over the scene, that ranges and pictures are taken from."""


@dataclass(frozen=True, eq=False)
class Survey:
    """Counts over all pixels. Values are in the product's unit, that is, divided by its scale."""

    n_measured: NDArray[np.int64]
    """(band) Pixels that are neither fill nor infinite nor NaN."""
    n_outside: NDArray[np.int64]
    """(band) Of these, pixels out of the valid range."""
    lowest: Floats
    """(band) Smallest value, NaN without any."""
    highest: Floats
    """(band) Largest value, NaN without any."""
    empty_lines: NDArray[np.int64]
    """Lines without any value."""
    empty_samples: NDArray[np.int64]
    """Samples without any value."""
    n_seen: int
    """Pixels with any value."""
    n_zero: int
    """Of these, pixels with no other value than 0."""

    @property
    def is_empty(self) -> bool:
        """Whether no pixel has a value."""
        return self.n_seen == 0


def take(product: Product, valid_range: tuple[float, float]) -> Survey:
    """The survey of all pixels of a product that has an image."""
    n_bands = product.shape[2]
    n_measured, n_outside = np.zeros(n_bands, dtype=np.int64), np.zeros(n_bands, dtype=np.int64)
    lowest, highest = np.full(n_bands, np.inf), np.full(n_bands, -np.inf)
    by_line, by_sample, n_zero = [], np.zeros(product.shape[1], dtype=np.int64), 0
    for values in (read(product, lines) for lines in _blocks(product)):
        known = np.isfinite(values)
        n_measured += known.sum(axis=(0, 1))
        n_outside += (known & ((values < valid_range[0]) | (values > valid_range[1]))).sum(axis=(0, 1))
        lowest = np.minimum(lowest, np.where(known, values, np.inf).min(axis=(0, 1)))
        highest = np.maximum(highest, np.where(known, values, -np.inf).max(axis=(0, 1)))
        seen = known.any(axis=2)
        by_line.append(seen.sum(axis=1))
        by_sample += seen.sum(axis=0)
        n_zero += int((seen & ~(known & (values != 0)).any(axis=2)).sum())
    return Survey(
        n_measured=n_measured,
        n_outside=n_outside,
        lowest=np.where(n_measured > 0, lowest, np.nan),
        highest=np.where(n_measured > 0, highest, np.nan),
        empty_lines=np.flatnonzero(np.concatenate(by_line) == 0),
        empty_samples=np.flatnonzero(by_sample == 0),
        n_seen=int(by_sample.sum()),
        n_zero=n_zero,
    )


def read(product: Product, lines: slice) -> NDArray[np.float32]:
    """Values (line, sample, band) of some lines in the product's unit, NaN where there is no data."""
    assert product.pixels is not None
    stored = product.pixels[lines]
    # Planes of a DDR that were never made hold 1e32.
    missing = ~(np.abs(stored) < _NO_NUMBER)
    for value in product.fill:
        missing |= stored == value
    return np.where(missing, np.float32(np.nan), stored / np.float32(product.scale)).astype(np.float32)


def sample_spectra(product: Product) -> NDArray[np.float32]:
    """Values (pixel, band) of the lines of the sample, NaN where there is no data."""
    lines = np.unique(np.linspace(0, product.shape[0] - 1, min(_SAMPLE_LINES, product.shape[0])).astype(int))
    return np.concatenate([read(product, slice(line, line + 1))[0] for line in lines])


def _blocks(product: Product) -> Iterator[slice]:
    n_lines, n_samples, n_bands = product.shape
    step = max(1, _BLOCK_VALUES // (n_samples * n_bands))
    for start in range(0, n_lines, step):
        yield slice(start, min(start + step, n_lines))

"""What a table and its labels must be before they are fitted: clear words for what is not."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from gibbsite import features
from gibbsite.column_scale import Scale

UNLABELLED = -1
LARGEST_ID = 2**62
FEW_STEPS = 32
"""Of the fixed point: a column half of whose values lie within so many has lost what they differ in."""


def check_labels(y: ArrayLike | None, n_rows: int) -> NDArray[np.int64]:
    """(n_rows,) labels as whole numbers, `UNLABELLED` where there is none; refuses all else."""
    if y is None:
        return np.full(n_rows, UNLABELLED)
    label = column_or_1d(y, warn=True)
    check_consistent_length(label, np.empty(n_rows))
    if np.issubdtype(label.dtype, np.floating) and not np.isfinite(label).all():
        row = int(np.argmin(np.isfinite(label)))
        raise ValueError(f"Input y contains {label[row]} in row {row}; give {UNLABELLED} to rows without label")
    check_classification_targets(label)
    whole = label.astype(np.int64) if np.issubdtype(label.dtype, np.number) else np.empty(0, np.int64)
    if not np.array_equal(whole, label) or whole.min() < UNLABELLED:
        raise ValueError(f"labels must be whole numbers from 0 on, or {UNLABELLED} for rows without label")
    if whole.max() > LARGEST_ID:
        raise ValueError(f"found label {whole.max()}, expected at most {LARGEST_ID}: new classes get ids above it")
    return whole


def warn_of_far_values(table: NDArray[np.float64], scale: Scale) -> None:
    """Warn of columns that values far out stretch so much that all others fall together."""
    low, high = np.percentile(table, [25, 75], axis=0)
    steps = (high - low) / scale.deviation / features.FIXED_STEP
    few = np.flatnonzero((steps > 0) & (steps < FEW_STEPS))
    if few.size:
        warnings.warn(
            f"column {few[0]}: values far out stretch its scale, so that half of its values lie within "
            f"{steps[few[0]]:.0f} steps of the {2**16} there are, and classes that differ in it fall together; "
            "clip or transform it (logarithm, arcsinh) first",
            stacklevel=3,
        )


def check_finite(table: NDArray[np.float64]) -> None:
    """Refuse NaN and infinity, and say where the first one is; scikit-learn's own check does not."""
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        what = "NaN" if np.isnan(table[row, column]) else "infinity"
        more = f", and {len(bad) - 1} more such values" if len(bad) > 1 else ""
        raise ValueError(f"Input X contains {what} in row {row}, column {column}{more}; fill them in or leave rows out")

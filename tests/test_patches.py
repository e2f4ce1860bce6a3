"""Patches of a class map: the same whatever blocks the map is read in, and without the specks."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal
from scipy import ndimage

from gibbsite import patches, rows
from gibbsite.patches import find_patches, without_specks
from handmade_results import class_map, map_grid
from test_polygons import SMALL


def labelled(code: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Patch of each pixel and code of each patch, by class and first pixel: class by class over the whole map."""
    number, codes = np.zeros(code.shape, np.int64), []
    for value in range(1, int(code.max(initial=0)) + 1):
        own, n = ndimage.label(code == value)
        number[own > 0] = own[own > 0] + len(codes)
        codes += [value] * n
    return number, codes


def test_specks_go_to_their_neighbour_and_missing_pixels_stay(tmp_path: Path) -> None:
    expected = SMALL.copy()
    expected[1, 1] = 1
    expected[5, 2:4] = 1
    assert_array_equal(without_specks(SMALL, 3, tmp_path)[:], expected)
    assert_array_equal(without_specks(SMALL, 1, tmp_path)[:], SMALL)


def test_specks_that_touch_only_specks_are_merged_in_the_end(tmp_path: Path) -> None:
    code = class_map(40, 30, 6, 3)
    random = np.random.Generator(np.random.Philox(8))
    code[10:20, 5:15] = random.integers(1, 7, (10, 10))
    sieved = without_specks(code, 4, tmp_path)[:]
    assert_array_equal(sieved == 0, code == 0)
    assert_array_equal(without_specks(sieved, 4, tmp_path)[:], sieved, err_msg="a second run must change nothing")


def test_patches_share_sides_not_corners(tmp_path: Path) -> None:
    found = find_patches(np.array([[1, 2], [2, 1]], dtype=np.uint16), tmp_path)
    assert found.code.tolist() == [1, 1, 2, 2]
    assert found.number[:].tolist() == [[1, 3], [4, 2]]


def test_a_size_beyond_the_map_leaves_it_as_it_is(tmp_path: Path) -> None:
    code = np.ones((6, 5), np.uint16)
    code[2:4, 1:3] = 2
    assert_array_equal(without_specks(code, 1000, tmp_path)[:], code)


def test_a_map_of_one_pixel_has_no_specks(tmp_path: Path) -> None:
    code = np.array([[3]], np.uint16)
    assert_array_equal(without_specks(code, 9, tmp_path)[:], code)


CODES = arrays.arrays(np.uint16, st.tuples(st.integers(1, 9), st.integers(1, 7)), elements=st.integers(0, 3))


@pytest.mark.parametrize("block", [1, 2, 3, 256])
def test_patches_and_their_rows_do_not_depend_on_blocks(tmp_path: Path, block: int) -> None:
    @given(CODES)
    def law(code: np.ndarray) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "BLOCK", block)
            found = find_patches(code, tmp_path)
        number, codes = labelled(code)
        assert_array_equal(found.number[:], number)
        assert found.code.tolist() == codes
        spans = [(np.flatnonzero((number == k).any(axis=1))[[0, -1]]).tolist() for k in range(1, len(codes) + 1)]
        assert [list(span) for span in zip(found.first, found.last, strict=True)] == spans

    law()


def test_a_spiral_over_all_blocks_is_one_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arms are joined far below the rows in which they are first seen."""
    comb = np.full((40, 31), 2, np.uint16)
    comb[:, ::2], comb[-1] = 1, 1
    monkeypatch.setattr(rows, "BLOCK", 4)
    found = find_patches(comb, tmp_path)
    assert found.code.tolist() == [1] + [2] * 15
    assert (found.number[:] == 1).sum() == (comb == 1).sum()


def test_sizes_of_patches_are_those_of_their_pixels(tmp_path: Path) -> None:
    code = class_map(60, 45, 6, 9)
    chance = np.where(code > 0, np.arange(code.size).reshape(code.shape) / code.size, np.nan)
    found = find_patches(code, tmp_path)
    sizes = patches.measure(found, chance, map_grid(60, 45))
    number, _ = labelled(code)
    for k in (0, 7, len(found.code) - 1):
        own = number == k + 1
        assert sizes.n_pixels[k] == own.sum()
        assert sizes.mean_probability[k] == pytest.approx(chance[own].mean())

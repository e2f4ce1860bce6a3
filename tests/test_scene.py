"""The cube contract: what is refused when a cube is opened."""

import argparse
from pathlib import Path

import numpy as np
import pytest
import zarr

from archive_files import write_mtr3
from gibbsite import scene
from gibbsite.errors import InputError
from gibbsite.scene import Grid
from gibbsite.settings import Settings
from gibbsite.steps import ingest


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    """A sound cube store."""
    out = tmp_path / "demo.zarr"
    header = write_mtr3(tmp_path)
    ingest.run(argparse.Namespace(cube=header, ddr=None, wavelengths=None, out=out), Settings())
    return out


def replace(path: Path, name: str, values: np.ndarray, dims: tuple[str, ...]) -> None:
    """Put another array in the place of one of the store's."""
    group = zarr.open_group(path, mode="r+")
    del group[name]
    group.create_array(name, data=values, dimension_names=dims)


@pytest.mark.parametrize(
    "grid",
    [
        Grid(3, 5),
        Grid(3, 5, crs="GEOGCS[]", ground_points=((0.0, 1.0, 74.5, -21.25), (2.0, 4.0, 75.0, -21.5))),
        Grid(3, 5, crs="PROJCS[]", transform=(18.0, 0.0, 1000.5, 0.0, -18.0, -7.25)),
    ],
)
def test_a_grid_comes_back_from_json(grid: Grid) -> None:
    assert Grid.from_json(grid.to_json()) == grid


def test_a_sound_cube_opens_with_its_grid(cube: Path) -> None:
    found = scene.open_cube(cube)
    assert found["reflectance"].dims == ("y", "x", "band")
    assert (scene.grid_of(found).height, scene.grid_of(found).width) == (6, 9)


@pytest.mark.parametrize(
    ("name", "values", "dims", "message"),
    [
        ("wavelength", np.linspace(4, 1, 11), ("band",), "do not rise"),
        ("wavelength", np.full(11, np.nan), ("band",), "do not rise"),
        ("wavelength", np.linspace(1, 4, 11, dtype=np.float32), ("band",), "wavelength is float32"),
        ("valid", np.ones((6, 9), np.uint8), ("y", "x"), "valid is uint8"),
        ("valid", np.ones((9, 6), bool), ("x", "y"), r"valid is bool \('x', 'y'\)"),
        ("detector_column", np.zeros((6, 9), np.int64), ("y", "x"), "detector_column is int64"),
    ],
)
def test_a_cube_that_breaks_the_contract_is_refused(
    cube: Path, name: str, values: np.ndarray, dims: tuple[str, ...], message: str
) -> None:
    replace(cube, name, values, dims)
    with pytest.raises(InputError, match=message) as caught:
        scene.open_cube(cube)
    assert "\n" not in str(caught.value)


def test_a_cube_whose_arrays_disagree_in_size_is_refused(cube: Path) -> None:
    replace(cube, "valid", np.ones((6, 8), bool), ("y", "x"))
    with pytest.raises(InputError, match="conflicting sizes"):
        scene.open_cube(cube)


def test_a_cube_on_the_grid_of_another_is_refused(cube: Path) -> None:
    group = zarr.open_group(cube, mode="r+")
    group.attrs["grid"] = Grid(9, 6).to_json()
    with pytest.raises(InputError, match="6 lines × 9 samples on a grid of 9 × 6"):
        scene.open_cube(cube)


def test_a_cube_without_an_array_or_attribute_is_refused(cube: Path) -> None:
    group = zarr.open_group(cube, mode="r+")
    del group["valid"]
    with pytest.raises(InputError, match="cube lacks valid"):
        scene.open_cube(cube)
    group.create_array("valid", data=np.ones((6, 9), bool), dimension_names=("y", "x"))
    del group.attrs["provenance"]
    with pytest.raises(InputError, match="attributes provenance"):
        scene.open_cube(cube)
    with pytest.raises(InputError, match="no such cube store"):
        scene.open_cube(cube.parent / "absent.zarr")

"""Geometry of TRR3 cubes: incidence, coordinates, ground points, and DDRs of other observations."""

from pathlib import Path

import numpy as np
import pytest
from rasterio.crs import CRS

from archive_files import FILL, ddr_planes, write_ddr, write_trr3
from gibbsite import crism, ddr
from gibbsite.errors import InputError

NAME = crism.parse_name("FRT0000ACE5_07_IF166L_TRR3")
ALL = slice(None)


def test_incidence_is_at_the_surface_and_at_the_areoid_where_the_surface_has_fill(tmp_path: Path) -> None:
    found = ddr.read_geometry(write_ddr(tmp_path), NAME, (7, 12)).incidence(ALL)
    assert found[4, 5] == np.float32(54.5)
    assert found[2, 3] == np.float32(42)
    assert np.isnan(found[0, 0])
    assert found.dtype == np.float32


def test_coordinates_do_not_jump_on_the_meridian(tmp_path: Path) -> None:
    geometry = ddr.read_geometry(write_ddr(tmp_path), NAME, (7, 12))
    longitude, latitude = geometry.longitude(ALL), geometry.latitude(ALL)
    assert np.isnan([longitude[0, 0], latitude[0, 0]]).all()
    assert np.nanmax(longitude) - np.nanmin(longitude) < 0.2
    np.testing.assert_allclose(np.diff(longitude[1]), 0.01, atol=1e-4)
    np.testing.assert_allclose(longitude[3] % 360, ddr_planes()[3, :, 4] % 360, atol=1e-4)
    assert latitude[5, 2] == pytest.approx(-21.048, abs=1e-5)


def test_ground_points_name_pixels_with_coordinates_only(tmp_path: Path) -> None:
    geometry = ddr.read_geometry(write_ddr(tmp_path), NAME, (7, 12))
    grid = ddr.ground_grid(geometry)
    assert (grid.height, grid.width, grid.transform) == (7, 12, None)
    assert CRS.from_wkt(grid.crs) == CRS.from_user_input("IAU_2015:49900")
    assert len(grid.ground_points) == 7 * 10 - 1
    assert {point[0] for point in grid.ground_points} == set(range(7))
    assert {0.0, 11.0} <= {point[1] for point in grid.ground_points}
    longitude, latitude = geometry.longitude(ALL), geometry.latitude(ALL)
    for row, column, east, north in grid.ground_points:
        assert (east, north) == (longitude[int(row), int(column)], latitude[int(row), int(column)])


@pytest.mark.parametrize(
    ("product", "message"),
    [
        ("frt0000ace6_07_de166l_ddr1", "geometry of FRT0000ACE6 07 L, but the cube is FRT0000ACE5 07 L"),
        ("frt0000ace5_06_de166l_ddr1", "geometry of FRT0000ACE5 06 L"),
        ("frt0000ace5_07_de166s_ddr1", "geometry of FRT0000ACE5 07 S"),
    ],
)
def test_the_ddr_of_another_image_is_refused(tmp_path: Path, product: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ddr.read_geometry(write_ddr(tmp_path, product), NAME, (7, 12))


def test_a_ddr_of_another_shape_or_kind_or_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="do not fit the cube's 12 lines and 7 samples"):
        ddr.read_geometry(write_ddr(tmp_path), NAME, (12, 7))
    with pytest.raises(InputError, match="expected a DDR"):
        ddr.read_geometry(write_trr3(tmp_path), NAME, (7, 12))
    empty = write_ddr(tmp_path, planes=np.full((7, 12, 14), FILL, np.float32))
    with pytest.raises(InputError, match="no pixel has a longitude"):
        ddr.read_geometry(empty, NAME, (7, 12))


def test_the_real_ddr_has_degrees_and_no_fill(shared_data: Path) -> None:
    name = crism.parse_name("FRT00003E25_01_IF156L_TRR3")
    geometry = ddr.read_geometry(shared_data / "crism/ddr/FRT00003E25_01_DE156L_DDR1.IMG", name, (15, 64))
    assert 52 < geometry.incidence(ALL).min() < geometry.incidence(ALL).max() < 70
    assert 56.9 < geometry.latitude(ALL).min() < geometry.latitude(ALL).max() < 57.3
    assert -10.2 < geometry.longitude(ALL).min() < geometry.longitude(ALL).max() < -9.2
    assert len(ddr.ground_grid(geometry).ground_points) == 100

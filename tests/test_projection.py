"""Scenes on a common map of Mars: places agree with the DDR, nothing is smeared, gaps stay gaps."""

from pathlib import Path

import numpy as np
import pytest
from pyproj import CRS

from archive_files import MARS_WKT
from gibbsite import ddr, envi, mars, projection
from gibbsite.crism import parse_name
from gibbsite.errors import InputError
from gibbsite.scene import Grid
from gibbsite.settings import Simulate
from gibbsite.simulate.observation import write_observation

METRES = 3396190.0 * np.pi / 180
"""Of a degree on the IAU sphere."""


def slanted_scan(
    height: int = 60, width: int = 40, step: float = 20.0, *, longitude: float = 74.0, latitude: float = -21.0
) -> tuple[np.ndarray, np.ndarray]:
    """Longitude and latitude of a scan flown 12° off north, bowed and wobbling by some pixels."""
    line, sample = np.mgrid[:height, :width].astype(float)
    bow = 3.0 * ((sample - width / 2) / width) ** 2 + 0.8 * np.sin(line / 9)
    down, across = (line + bow) * step, (sample + 0.7 * np.sin(line / 7)) * step
    turn = np.radians(12.0)
    east, north = across * np.cos(turn) + down * np.sin(turn), -down * np.cos(turn) + across * np.sin(turn)
    return longitude + east / METRES / np.cos(np.radians(latitude)), latitude + north / METRES


def centres(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Map coordinates of all pixel centres of a grid."""
    a, _, c, _, e, f = grid.transform
    col, row = np.meshgrid(np.arange(grid.width) + 0.5, np.arange(grid.height) + 0.5)
    return a * col + c, e * row + f


def ground_distance(lon: np.ndarray, lat: np.ndarray, lon2: np.ndarray, lat2: np.ndarray) -> np.ndarray:
    """Metres between places that are close."""
    return METRES * np.hypot(lat - lat2, ((lon - lon2 + 180) % 360 - 180) * np.cos(np.radians(lat)))


@pytest.mark.parametrize(
    ("longitude", "latitude", "system", "code"),
    [
        (74.0, -21.0, "equirectangular", 49910),
        (179.995, 40.0, "equirectangular", 49910),
        (274.0, 5.0, "equirectangular", 49910),
        (200.0, 84.0, "polar", 49930),
        (10.0, -89.9, "polar", 49935),
    ],
)
def test_every_mapped_pixel_lies_within_a_pixel_half_of_where_the_ddr_says(
    longitude: float, latitude: float, system: str, code: int
) -> None:
    lon, lat = slanted_scan(longitude=longitude, latitude=latitude)
    found = projection.project_scan(lon, lat, system)
    assert CRS.from_wkt(found.grid.crs) == CRS.from_user_input(f"IAU_2015:{code}")
    x, y = centres(found.grid)
    there_lon, there_lat = mars.to_planetocentric(x, y, CRS.from_wkt(found.grid.crs))
    hit = found.source >= 0
    off = ground_distance(
        there_lon[hit], there_lat[hit], lon.ravel()[found.source[hit]], lat.ravel()[found.source[hit]]
    )
    # Within the footprint of a 20 m pixel: half its diagonal, and a tenth of a pixel for cracks.
    assert off.max() < 20.0 * (0.5 + 0.1) * np.sqrt(2) * 1.1
    assert np.median(off) < 10.0


def test_the_pixels_at_corners_and_centre_are_found_at_their_own_coordinates() -> None:
    lon, lat = slanted_scan()
    found = projection.project_scan(lon, lat, "equirectangular", 5.0)
    a, _, c, _, e, f = found.grid.transform
    values = found.onto(np.arange(lon.size).reshape(lon.shape), -1)
    for line, sample in ((0, 0), (0, 39), (59, 0), (59, 39), (30, 20)):
        col, row = (lon[line, sample] * METRES - c) / a, (lat[line, sample] * METRES - f) / e
        assert values[int(row), int(col)] == line * 40 + sample


def test_every_pixel_of_the_scene_is_on_the_map_and_its_area_is_kept() -> None:
    lon, lat = slanted_scan(latitude=-2.0)
    found = projection.project_scan(lon, lat, "equirectangular", 5.0)
    assert np.unique(found.source[found.source >= 0]).size == lon.size
    mapped = np.count_nonzero(found.source >= 0) * 25.0
    assert mapped == pytest.approx(lon.size * 400.0, rel=0.05)


def test_the_inside_of_a_scene_has_no_cracks_and_nothing_lies_beyond_its_border() -> None:
    lon, lat = slanted_scan()
    found = projection.project_scan(lon, lat, "equirectangular", 7.0)
    hit = found.source >= 0
    for line in hit:
        inside = np.flatnonzero(line)
        assert inside.size == 0 or line[inside[0] : inside[-1] + 1].all(), "a crack inside a row"
    from_edge = np.flatnonzero(hit.any(axis=1))
    assert hit[from_edge[0] : from_edge[-1] + 1].any(axis=1).all()
    assert from_edge[0] <= 2


def test_gaps_of_the_scene_stay_empty() -> None:
    lon, lat = slanted_scan()
    lon[20:26, 10:16], lat[20:26, 10:16] = np.nan, np.nan
    whole = projection.project_scan(*slanted_scan(), "equirectangular", 10.0)
    holed = projection.project_scan(lon, lat, "equirectangular", 10.0)
    line, sample = np.divmod(whole.source, 40)
    missing = (whole.source >= 0) & (line >= 20) & (line < 26) & (sample >= 10) & (sample < 16)
    inner = missing & (line > 20) & (line < 25) & (sample > 10) & (sample < 15)
    assert (holed.source[inner] == -1).all()
    assert holed.source[missing].max() == -1 or np.mean(holed.source[missing] >= 0) < 0.25
    outside = (whole.source >= 0) & ~missing
    assert np.mean(holed.source[outside] == whole.source[outside]) > 0.99


def test_long_and_thin_pixels_are_covered_by_themselves() -> None:
    line, sample = np.mgrid[:80, :12].astype(float)
    lon, lat = 30.0 + sample * 180.0 / METRES, -line * 18.0 / METRES
    found = projection.project_scan(lon, lat, "equirectangular", 5.0)
    x, y = centres(found.grid)
    expected_line, expected_sample = np.rint(-y / 18.0), np.rint((x - 30.0 * METRES) / 180.0)
    inside = (expected_line >= 0) & (expected_line < 80) & (expected_sample >= 0) & (expected_sample < 12)
    assert np.array_equal(found.source[inside], (expected_line * 12 + expected_sample)[inside])


def test_blocks_of_rows_do_not_change_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    lon, lat = slanted_scan()
    whole = projection.project_scan(lon, lat, "equirectangular")
    monkeypatch.setattr(projection, "BLOCK_ROWS", 7)
    cut = projection.project_scan(lon, lat, "equirectangular")
    assert whole.grid == cut.grid
    assert np.array_equal(whole.source, cut.source)


def test_classes_are_never_mixed_and_empty_is_what_was_asked_for() -> None:
    lon, lat = slanted_scan()
    found = projection.project_scan(lon, lat, "equirectangular")
    code = np.where(np.arange(lon.size).reshape(lon.shape) % 2, 7, 300).astype(np.uint16)
    mapped = found.onto(code, 0)
    assert mapped.dtype == np.uint16
    assert set(np.unique(mapped)) == {0, 7, 300}
    assert np.isnan(found.onto(code.astype(np.float32), np.nan)[found.source < 0]).all()


def test_neighbouring_scenes_share_one_raster() -> None:
    one = projection.project_scan(*slanted_scan(), "equirectangular", 18.0).grid
    two = projection.project_scan(*slanted_scan(longitude=74.31), "equirectangular", 18.0).grid
    shift = ((two.transform[2] - one.transform[2]) / 18.0, (two.transform[5] - one.transform[5]) / 18.0)
    assert shift == pytest.approx((round(shift[0]), round(shift[1])), abs=1e-6)


def test_a_scene_on_a_map_of_its_own_is_moved_by_longitude_and_latitude() -> None:
    own = Grid(50, 70, MARS_WKT, (18.0, 0.0, 1517858.4, 0.0, -18.0, -1373870.9))
    found = projection.project_map(own, "equirectangular")
    assert found.grid.transform[0] == pytest.approx(18.0 * 3396190.0 / 3393833.26, abs=0.05)
    x, y = centres(found.grid)
    lon, lat = x / METRES, y / METRES
    radius = 3393833.260758386 * np.pi / 180
    col = np.floor((lon * radius * np.cos(np.radians(20.0)) - 1517858.4) / 18.0)
    row = np.floor((-1373870.9 - lat * radius) / 18.0)
    inside = (col >= 0) & (col < 70) & (row >= 0) & (row < 50)
    assert np.array_equal(found.source, np.where(inside, row * 70 + col, -1))
    assert np.unique(found.source[found.source >= 0]).size == 50 * 70


@pytest.mark.parametrize("n_columns", [34, 40, 60, 72])
def test_a_map_of_half_the_planet_and_more_is_published_once(n_columns: int) -> None:
    pixel = 5.0 * METRES
    wide = Grid(
        12, n_columns, CRS.from_user_input("IAU_2015:49910").to_wkt(), (pixel, 0, -180 * METRES, 0, -pixel, 3e6)
    )
    found = projection.project_map(wide, "equirectangular")
    pixels, times = np.unique(found.source[found.source >= 0], return_counts=True)
    assert len(pixels) == 12 * n_columns
    assert np.mean(times == 1) > 0.8


def test_a_map_across_the_antimeridian_stays_whole() -> None:
    edge = 3393833.260758386 * np.pi * np.cos(np.radians(20.0))
    own = Grid(20, 40, MARS_WKT, (18.0, 0.0, edge - 360.0, 0.0, -18.0, -1373870.9))
    found = projection.project_map(own, "equirectangular")
    assert found.grid.width < 60
    assert np.unique(found.source[found.source >= 0]).size == 20 * 40


@pytest.mark.parametrize("code", ["IAU_2015:49911", "IAU_2015:49901", "EPSG:32611", "IAU_2015:30110"])
def test_scenes_that_are_not_on_mars_or_count_west_are_refused(code: str) -> None:
    own = Grid(5, 6, CRS.from_user_input(code).to_wkt(), (18.0, 0.0, 1e5, 0.0, -18.0, 2e5))
    with pytest.raises(InputError, match=r"expected Mars|east and north"):
        projection.project_map(own, "equirectangular")


def test_scenes_without_coordinates_and_stretched_poles_are_refused() -> None:
    empty = np.full((4, 5), np.nan)
    with pytest.raises(InputError, match="no two lines and samples with coordinates"):
        projection.project_scan(empty, empty, "equirectangular")
    with pytest.raises(InputError, match=r"set products\.crs: polar near a pole"):
        projection.project_scan(*slanted_scan(latitude=89.995), "equirectangular")
    with pytest.raises(InputError, match="not on a map"):
        projection.project_map(Grid(5, 6, MARS_WKT), "polar")


def test_the_real_ddr_is_mapped_within_half_a_pixel(shared_data: Path) -> None:
    path = shared_data / "crism/ddr/frt00003e25_01_de156l_ddr1.lbl"
    geometry = ddr.read_geometry(path, parse_name("FRT00003E25_01_IF156L_TRR3"), (15, 64))
    lon, lat = geometry.longitude(slice(None)), geometry.latitude(slice(None))
    found = projection.project_scan(lon, lat, "equirectangular")
    a, _, c, _, e, f = found.grid.transform
    values = found.onto(np.arange(lon.size).reshape(lon.shape), -1)
    turn = 360.0 * np.round(np.median(lon) / 360.0)
    for line, sample in ((0, 0), (0, 63), (14, 0), (14, 63), (7, 32)):
        col, row = ((lon[line, sample] - turn) * METRES - c) / a, (lat[line, sample] * METRES - f) / e
        there = values[int(row), int(col)]
        assert there >= 0
        # At a resolution of one pixel the place may fall to a neighbour; at most one line or sample away.
        assert max(abs(there // 64 - line), abs(there % 64 - sample)) <= 1
    assert np.unique(found.source).size > 0.85 * lon.size


def test_scan_and_map_of_one_simulated_observation_meet_on_the_common_map(tmp_path: Path) -> None:
    write_observation(Simulate(lines=40, binning=10), 5, tmp_path)
    geometry = ddr.read_geometry(
        tmp_path / "frt0000ace5_07_de166l_ddr1.lbl", parse_name("FRT0000ACE5_07_IF166L_TRR3"), (40, 64)
    )
    lon, lat = geometry.longitude(slice(None)), geometry.latitude(slice(None))
    header = envi.read_header(tmp_path / "frt0000ace5_07_if166j_mtr3.hdr")
    own = Grid(*header.layout.shape[:2], *envi.map_grid(header))
    scan = projection.project_scan(lon, lat, "equirectangular", 60.0)
    mapped = projection.project_map(own, "equirectangular", 60.0)
    inside = envi.read_header(tmp_path / "frt0000ace5_07_in166j_mtr3.hdr")
    planes = np.fromfile(tmp_path / "frt0000ace5_07_in166j_mtr3.img", "<f4").reshape(
        inside.layout.bands, *own_shape(own)
    )
    origin = planes[envi.band_named(inside, "IR Line")] * 64 + planes[envi.band_named(inside, "IR Sample")]
    origin = np.where(planes[0] == 65535, -1, origin).astype(int)
    # The same place on both maps shows the same pixel of the detector, or its neighbour where borders are close.
    rows = round((scan.grid.transform[5] - mapped.grid.transform[5]) / -60.0)
    cols = round((scan.grid.transform[2] - mapped.grid.transform[2]) / 60.0)
    there = np.full(scan.source.shape, -1)
    line, sample = np.mgrid[: scan.grid.height, : scan.grid.width]
    seen = (line + rows >= 0) & (line + rows < mapped.grid.height) & (sample + cols >= 0)
    seen &= sample + cols < mapped.grid.width
    there[seen] = mapped.onto(origin, -1)[(line + rows)[seen], (sample + cols)[seen]]
    both = (there >= 0) & (scan.source >= 0)
    assert np.count_nonzero(both) > 0.8 * np.count_nonzero(there >= 0)
    apart = np.maximum(abs(there // 64 - scan.source // 64), abs(there % 64 - scan.source % 64))[both]
    assert (apart <= 1).all()
    assert (apart == 0).mean() > 0.5, "two roundings to a nearest pixel agree in 3/4 of lines and of samples"


def own_shape(grid: Grid) -> tuple[int, int]:
    return grid.height, grid.width

"""MRDR map tiles: place and wavelengths from hand-made labels with the keys of real ones, and from real ones."""

from pathlib import Path

import numpy as np
import pytest
from pyproj import CRS

from gibbsite import mars, pds, scene, tile
from gibbsite.errors import InputError
from gibbsite.ingest import write_cube
from gibbsite.observation import open_observation
from gibbsite.settings import Settings

LABEL = """PDS_VERSION_ID = PDS3
RECORD_TYPE = FIXED_LENGTH
RECORD_BYTES = {record}
FILE_RECORDS = {records}
^IMAGE = T0897_MRRIF_05S113_0256_1.IMG
PRODUCT_ID = T0897_MRRIF_05S113_0256_1
PRODUCT_TYPE = MAP_PROJECTED_MULTISPECTRAL_RDR
MRO:WAVELENGTH_FILE_NAME = T0897_MRRWV_05S113_0256_1.TAB
OBJECT = IMAGE
  LINES = {lines}
  LINE_SAMPLES = {samples}
  SAMPLE_TYPE = PC_REAL
  SAMPLE_BITS = 32
  BANDS = 3
  BAND_STORAGE_TYPE = BAND_SEQUENTIAL
END_OBJECT = IMAGE
OBJECT = IMAGE_MAP_PROJECTION
  MAP_PROJECTION_TYPE = EQUIRECTANGULAR
  A_AXIS_RADIUS = 3396 <KM>
  B_AXIS_RADIUS = 3396 <KM>
  C_AXIS_RADIUS = 3396 <KM>
  POSITIVE_LONGITUDE_DIRECTION = EAST
  CENTER_LATITUDE = -42.5 <DEGREE>
  CENTER_LONGITUDE = 112.5 <DEGREE>
  MAP_RESOLUTION = 8 <PIXEL/DEGREE>
  MAXIMUM_LATITUDE = -42.5 <DEGREE>
  MINIMUM_LATITUDE = -47.5 <DEGREE>
  WESTERNMOST_LONGITUDE = 110.0 <DEGREE>
  EASTERNMOST_LONGITUDE = 115.0 <DEGREE>
END_OBJECT = IMAGE_MAP_PROJECTION
END
"""


def write_tile(folder: Path, lines: int = 40, samples: int = 30) -> Path:
    """The label of a small tile, 5° × 5° at 8 pixels per degree, three bands."""
    values = np.full((3, lines, samples), 0.2, "<f4")
    values[:, 5, 7] = 65535.0
    (folder / "t0897_mrrif_05s113_0256_1.img").write_bytes(values.tobytes())
    (folder / "t0897_mrrwv_05s113_0256_1.tab").write_text("1,192,  710.12\r\n0,300, 1500.00\r\n0,250, 2000.00\r\n")
    label = folder / "t0897_mrrif_05s113_0256_1.lbl"
    label.write_text(LABEL.format(lines=lines, samples=samples, record=4 * samples, records=3 * lines))
    return label


def test_a_tile_is_placed_by_its_corner_and_scaled_along_its_centre_latitude(tmp_path: Path) -> None:
    grid = tile.map_grid(pds.read_label(write_tile(tmp_path)))
    crs = CRS.from_wkt(grid.crs)
    assert crs.ellipsoid.semi_major_metre == 3396000.0
    a, _, c, _, e, f = grid.transform
    longitude, latitude = mars.to_planetocentric(np.array([c, c + 15 * a]), np.array([f, f + 40 * e]), crs)
    assert (longitude[0], latitude[0]) == pytest.approx((110.0, -42.5), abs=1e-9)
    assert latitude[1] == pytest.approx(-47.5, abs=1e-9)
    assert longitude[1] == pytest.approx(110.0 + 15 / 8 / np.cos(np.radians(42.5)), abs=1e-9)


def test_a_tile_becomes_a_cube_with_the_wavelengths_of_its_table(tmp_path: Path) -> None:
    product = open_observation(write_tile(tmp_path), None, None)
    write_cube(product, tmp_path / "demo.zarr", Settings().ingest)
    cube = scene.open_cube(tmp_path / "demo.zarr")
    assert cube["wavelength"].values == pytest.approx([0.71012, 1.5, 2.0])
    assert np.argwhere(~cube["valid"].values).tolist() == [[5, 7]]
    assert cube.attrs["provenance"]["wavelength_source"] == "table t0897_mrrwv_05s113_0256_1.tab"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("EQUIRECTANGULAR", "SINUSOIDAL", "found projection SINUSOIDAL"),
        ("DIRECTION = EAST", "DIRECTION = WEST", "towards WEST|counting WEST"),
        ("C_AXIS_RADIUS = 3396", "C_AXIS_RADIUS = 3376", "flattened"),
        ("WESTERNMOST_LONGITUDE = 110.0", "WESTERNMOST_LONGITUDE = 360.0", "contradicts itself"),
        ("MINIMUM_LATITUDE = -47.5", "MINIMUM_LATITUDE = -44.5", "contradicts itself"),
        ("  MAP_RESOLUTION = 8 <PIXEL/DEGREE>\n", "", "MAP_RESOLUTION"),
        ("0256_1.TAB", "0256_5.TAB", "0256_5.TAB, which is not beside it"),
    ],
)
def test_a_label_that_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    label = write_tile(tmp_path)
    assert old in label.read_text()
    label.write_text(label.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        open_observation(label, None, None)


def test_the_real_tile_with_the_wrong_table_is_refused_for_that(shared_data: Path) -> None:
    folder = shared_data / "crism/mrdr"
    broken = pds.read_label(folder / "T0897_MRRAL_05S113_0256_1_cropped_badwv.lbl")
    with pytest.raises(InputError, match=r"MRRWV_05S113_0256_5\.TAB, which is not beside it"):
        tile.wavelengths(broken)
    sound = pds.read_label(folder / "T0897_MRRAL_05S113_0256_1_cropped.LBL")
    assert pds.image_file(sound).layout.shape == (10, 1279, 1)
    with pytest.raises(InputError, match="72 wavelengths for the 1 bands"):
        tile.wavelengths(sound)
    with pytest.raises(InputError, match="longitudes 0 to 10 do not lie about their centre 185"):
        tile.map_grid(pds.read_label(folder / "t1865_mrrde_70n185_0256_1_cropped.lbl"))

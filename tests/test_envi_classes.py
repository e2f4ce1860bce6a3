"""ENVI classification, read back by Spectral Python, by GDAL and by gibbsite's own reader."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
import spectral
from rasterio.crs import CRS

from gibbsite import envi, envi_classes
from gibbsite.palette import class_colours
from gibbsite.scene import Grid
from handmade_results import MARS_MAP, MARS_SPHERE, map_grid, sensor_grid


def classes_of(n: int) -> list[dict[str, object]]:
    colours = class_colours(2, n)
    return [{"code": k, "name": f"class {k}", "is_known": k < 3, "colour": colours[k - 1]} for k in range(1, n + 1)]


def codes(n: int, height: int, width: int) -> np.ndarray:
    return np.random.Generator(np.random.Philox(3)).integers(0, n + 1, (height, width)).astype(np.uint16)


@pytest.mark.parametrize(("n", "dtype"), [(5, np.uint8), (255, np.uint8), (300, np.uint16)])
def test_spectral_python_reads_codes_names_and_colours(tmp_path: Path, n: int, dtype: type) -> None:
    code, classes = codes(n, 300, 31), classes_of(n)
    classes[0]["name"], classes[1]["name"] = "Ätna", "../up/and away.tif"
    envi_classes.write(tmp_path / "s_class.img", code, map_grid(300, 31), classes)
    opened = spectral.open_image(str(tmp_path / "s_class.hdr"))
    assert opened.dtype == np.dtype(dtype).newbyteorder("<") or opened.dtype == dtype
    np.testing.assert_array_equal(opened.open_memmap()[:, :, 0], code)
    facts = opened.metadata
    assert facts["file type"] == "ENVI Classification"
    assert facts["classes"] == str(n + 1)
    assert facts["class names"] == ["Unclassified", *(str(item["name"]) for item in classes)]
    lookup = np.array(facts["class lookup"], int).reshape(-1, 3)
    assert lookup[0].tolist() == [0, 0, 0]
    for item in classes:
        colour = str(item["colour"])
        assert lookup[int(str(item["code"]))].tolist() == [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def test_names_with_marks_of_a_list_do_not_break_the_header(tmp_path: Path) -> None:
    classes = classes_of(3)
    classes[1]["name"] = "a, b {c} = d\nlines = 7"
    envi_classes.write(tmp_path / "s.img", codes(3, 4, 5), Grid(4, 5), classes)
    facts = spectral.open_image(str(tmp_path / "s.hdr")).metadata
    assert facts["class names"] == ["Unclassified", "class 1", "a b c d lines 7", "class 3"]
    assert facts["lines"] == "4"


@pytest.mark.parametrize(
    "grid",
    [
        map_grid(53, 31),
        Grid(53, 31, MARS_SPHERE, (0.01, 0.0, 10.0, 0.0, -0.01, 60.0)),
        Grid(53, 31, MARS_MAP, (18.0, 1.0, 500.0, 1.0, -18.0, 9000.0)),
    ],
    ids=["map", "degrees", "turned"],
)
def test_a_map_lies_where_the_scene_lies(tmp_path: Path, grid: Grid) -> None:
    path, code = tmp_path / "s.img", codes(5, 53, 31)
    envi_classes.write(path, code, grid, classes_of(5))
    with rasterio.open(path) as opened:
        np.testing.assert_array_equal(opened.read(1), code)
        assert tuple(opened.transform)[:6] == pytest.approx(grid.transform, rel=1e-12)
        expected = CRS.from_wkt(str(grid.crs)).to_dict()
        assert opened.crs.to_dict()["R"] == expected["R"]
        assert opened.crs.to_dict()["proj"] == expected["proj"]
        assert opened.nodata == 0
        assert opened.colormap(1)[2][:3] == tuple(
            int(str(classes_of(5)[1]["colour"])[i : i + 2], 16) for i in (1, 3, 5)
        )
    found = envi.map_grid(envi.read_header(path.with_suffix(".hdr")))
    assert found is not None
    assert found[1] == pytest.approx(grid.transform, rel=1e-12)


@pytest.mark.parametrize(
    "grid", [sensor_grid(9, 7), Grid(9, 7), Grid(9, 7, MARS_MAP, (18.0, 1.0, 0.0, 0.0, -18.0, 0.0))]
)
def test_what_a_header_cannot_place_is_not_placed_wrongly(tmp_path: Path, grid: Grid) -> None:
    envi_classes.write(tmp_path / "s.img", codes(2, 9, 7), grid, classes_of(2))
    assert "map info" not in (tmp_path / "s.hdr").read_text()

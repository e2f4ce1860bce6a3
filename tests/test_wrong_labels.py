"""Bad label files through the command line: each time one clear line, and nothing written; or a label, and a remark."""

import json
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
import rasterio
import shapely
from rasterio.transform import Affine

import handmade_cubes
import label_formats
from command_line import gibbsite
from gibbsite import store
from gibbsite.scene import Grid
from handmade_cubes import HEIGHT, MAP_SYSTEM, WIDTH, Cube
from label_formats import GRID, Tiff, on_map, write_csv

Refused = Callable[..., str]


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    return handmade_cubes.write_cube(tmp_path / "scene.zarr", Cube(handmade_cubes.spectra(), GRID))


@pytest.fixture
def refused(cube: Path, capfd: pytest.CaptureFixture[str]) -> Refused:
    """Asserts that labels are refused with one line, gives it back, and that nothing was written."""

    def refused(path: Path, **settings: object) -> str:
        capfd.readouterr()
        out = cube.parent / "out" / "labels.zarr"
        words = ("labels", "--cube", cube, "--shapes", path, "--out", out)
        assert gibbsite(*words, settings={"labels": settings}) == 1
        streams = capfd.readouterr()
        (line,) = streams.err.splitlines()
        assert line.startswith("gibbsite: error: ")
        assert not out.parent.exists()
        return line

    return refused


@pytest.fixture
def accepted(cube: Path, caplog: pytest.LogCaptureFixture) -> Callable[..., tuple[np.ndarray, str]]:
    """Known classes of labels that are taken, and what was said about them."""

    def accepted(path: Path, **settings: object) -> tuple[np.ndarray, str]:
        out = cube.parent / "labels.zarr"
        with caplog.at_level(logging.INFO):
            words = ("labels", "--cube", cube, "--shapes", path, "--out", out)
            assert gibbsite(*words, settings={"labels": settings}) == 0
        return np.asarray(store.read(out, "labels")["known"][...]), caplog.text

    return accepted


def layer(path: Path, shapes: Mapping[str, Any], crs: object = MAP_SYSTEM) -> Path:
    geopandas.GeoDataFrame({"class": list(shapes)}, geometry=list(shapes.values()), crs=crs).to_file(path)
    return path


def corners(*places: tuple[float, float]) -> shapely.Polygon:
    """A polygon by its corners (column, row)."""
    return shapely.Polygon(np.stack(on_map(*np.array(places, float).T), axis=1))


GOOD = corners((2, 1), (7, 1), (7, 9), (2, 9))
BOW_TIE = corners((0, 0), (8, 10), (8, 0), (0, 10))
SPIKE = corners((0, 0), (8, 10), (4, 5), (0, 0))


# Any file


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("labels.gpkg", b"", "empty file; expected label polygons"),
        ("labels.csv", b"", "empty file"),
        ("labels.csv", b"\n\n", "empty file; expected a table"),
        ("labels.tif", b"", "empty file"),
        ("labels.tif", b"II*\0 and then nothing", "not a raster that GDAL reads"),
        ("labels.gpkg", b"SQLite format 3\0 and then nothing", "not a raster that GDAL reads; expected label polygons"),
        ("labels.pdf", b"%PDF-1.4 a figure of the paper", "expected label polygons"),
        ("labels.json", b'{"olivine": [1, 2]}', "expected label polygons"),
        ("labels.roi", b"\x00\x01roi\xff\xfe", "a binary ROI file of ENVI Classic"),
        ("labels.xml", b"<notes>olivine in the north</notes>", "expected label polygons"),
    ],
)
def test_a_file_of_the_wrong_type_is_refused(refused, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    line = refused(tmp_path / name)
    assert message in line
    assert name in line


def test_a_folder_without_labels_is_refused(refused, tmp_path):
    (tmp_path / "masks").mkdir()
    assert "a folder without masks; expected a GeoTIFF per class" in refused(tmp_path / "masks")


def test_an_image_that_is_no_classification_is_refused(refused, tmp_path):
    path = label_formats.envi_classes(tmp_path, GRID)
    path.write_text(re.sub(r"class names = \{[^}]*\}\n", "", path.read_text()))
    assert "not an ENVI classification image (found 1 bands and no class names)" in refused(path)


# Names


@pytest.mark.parametrize(
    "name", ["../../olivine", "/etc/olivine", "~/olivine", ".olivine", "C:\\olivine", "a\\b", "a/../b"]
)
def test_a_class_named_like_a_path_is_refused(refused, tmp_path, name):
    line = refused(write_csv(tmp_path / "labels.csv", ("class", "row", "col"), [(name, 3, 4)]))
    assert f"class {name!r} is named like a path of files" in line


@pytest.mark.parametrize("name", ["Fe/Mg smectite", "low-Ca pyroxene (2.0 µm)", "Mg₂SiO₄", "オリビン", "ħ"])
def test_names_of_the_field_and_of_any_script_are_kept(accepted, cube, tmp_path, name):
    for path in (
        write_csv(tmp_path / "labels.csv", ("class", "row", "col"), [(name, 3, 4)]),
        layer(tmp_path / "labels.gpkg", {name: GOOD}),
        layer(tmp_path / "labels.geojson", {name: shapely.box(70, -25, 80, -20)}, "IAU_2015:49900"),
        Tiff(tmp_path / "a.tif", GRID).write(np.ones((HEIGHT, WIDTH), np.uint8), tags={"CLASS_1": name}),
    ):
        accepted(path)
        assert store.read(cube.parent / "labels.zarr", "labels").attrs["class_names"] == [name]


@pytest.mark.parametrize(
    ("first", "second"),
    [("Olivine", "olivine"), ("olivine", "olivine "), ("jarosíte", "jarosi\u0301te"), ("Straße", "STRASSE")],
)
def test_a_class_spelt_in_two_ways_is_refused_with_both(refused, tmp_path, first, second):
    rows = [(first, 3, 4), (second, 5, 6)]
    drawn = layer(tmp_path / "labels.gpkg", {first: GOOD, second: GOOD})
    assert "class named twice, as" in refused(drawn)
    if first.strip() != second.strip():
        assert "class named twice, as" in refused(write_csv(tmp_path / "labels.csv", ("class", "row", "col"), rows))


def test_an_invisible_character_in_a_name_is_refused(refused, tmp_path):
    path = layer(tmp_path / "labels.gpkg", {"oli\x07vine": GOOD})
    assert "cannot be printed" in refused(path)


# Layers


def test_a_layer_that_is_not_there_is_refused_with_those_that_are(refused, tmp_path):
    for name in ("north", "south"):
        label_formats.frame().to_file(tmp_path / "labels.gpkg", layer=name)
    line = refused(tmp_path / "labels.gpkg", layer="east")
    assert "labels.layer: found 'east'" in line
    assert "2 layers with shapes (north, south)" in line
    assert "name the one to use in labels.layer" in refused(tmp_path / "labels.gpkg")


def test_an_empty_layer_is_refused(refused, tmp_path):
    label_formats.frame().iloc[:0].to_file(tmp_path / "labels.gpkg", geometry_type="Polygon")
    assert "empty layer" in refused(tmp_path / "labels.gpkg")


def test_a_layer_without_the_class_field_is_refused_with_the_fields_it_has(refused, tmp_path):
    label_formats.frame().rename(columns={"class": "mineral"}).to_file(tmp_path / "labels.shp")
    assert "no field 'class' (labels.class_field); its fields are mineral, colour" in refused(tmp_path / "labels.shp")


@pytest.mark.parametrize(
    ("crs", "message"),
    [
        ("EPSG:4326", "expected Mars"),
        ("EPSG:32633", "expected Mars"),
        ("IAU_2015:30100", "expected Mars"),
        ("IAU_2015:49901", "labels.gpkg: the layer has the coordinate system"),
        ("IAU_2015:49911", "labels.gpkg: the layer has the coordinate system"),
    ],
)
def test_systems_of_other_bodies_and_west_positive_ones_are_refused(refused, tmp_path, crs, message):
    assert message in refused(layer(tmp_path / "labels.gpkg", {"olivine": GOOD}, crs))


def test_geojson_that_names_no_system_counts_as_earth_and_is_refused(refused, tmp_path):
    path = tmp_path / "labels.geojson"
    place = label_formats.polygons(label_formats.in_degrees)["olivine"]
    geometry = shapely.geometry.mapping(place)
    feature = {"type": "Feature", "properties": {"class": "olivine"}, "geometry": geometry}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    line = refused(path)
    assert "expected Mars (3396 km)" in line
    assert "a GeoJSON that names none counts as Earth" in line


def test_polygons_outside_the_scene_are_refused_with_both_extents(refused, tmp_path):
    line = refused(layer(tmp_path / "labels.gpkg", {"olivine": shapely.affinity.translate(GOOD, 9e4)}))
    assert re.search(r"its polygons \(x .* to .*\) lie outside the scene \(x .* to .*\)", line)


def test_an_outline_that_crosses_itself_is_repaired_and_told(accepted, tmp_path):
    known, said = accepted(layer(tmp_path / "labels.gpkg", {"olivine": BOW_TIE}))
    assert re.search(r"feature 1 is invalid \(Self-intersection.*\) and was repaired", said)
    row, col = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    wings = (np.abs(row - 5) < 5 * np.abs(col - 4) / 4) & (col < 8)
    np.testing.assert_array_equal(known >= 0, wings)


def test_an_outline_around_nothing_is_refused(refused, tmp_path):
    line = refused(layer(tmp_path / "labels.gpkg", {"kieserite": GOOD, "olivine": SPIKE}))
    assert "invalid geometry in feature 2" in line


def test_a_colour_that_is_none_is_refused_with_its_feature(refused, tmp_path):
    label_formats.frame().assign(colour=["#00ff00", "greenish", None]).to_file(tmp_path / "labels.gpkg")
    line = refused(tmp_path / "labels.gpkg")
    assert "feature 2: found the colour 'greenish', expected #rrggbb" in line


# Tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mineral,row,col\nolivine,1,2\n", "no column 'class' (labels.class_field); its columns are mineral, row, col"),
        ("class,x,y\nolivine,1,2\n", "expected either columns row and col (pixels, from 0) or lat and lon"),
        ("class,row,col,lat,lon\na,1,2,3,4\n", "found both pixels and degrees"),
        ("class,lat,latitude,lon\na,1,2,3\n", "columns 'lat' and 'latitude' are both the latitude"),
        ("class,row,col\n", "found column names and no point"),
        pytest.param("class,row,col\n" + 200_000 * "x" + ",1,2\n", "cannot be read as a table", id="very long"),
        ("class,row,col\nolivine,1,2\nolivine,three,2\n", "line 3: found 'three' as row, expected a number"),
        ("class,row,col\nolivine,1,2\n\nolivine,3\n", "line 4: found '' as col, expected a number"),
        ("class,row,col\nolivine,1,nan\n", "line 2: found 'nan' as col"),
        ("class;row;col\nolivine;1;2\n;3;4\n", "line 3: found an empty class name"),
        (
            "class,lat,lon\nolivine,-21.3,74.7\nolivine,-121.3,74.7\n",
            "line 3: found '-121.3' as latitude",
        ),
        ("class,lat,lon\nolivine,-21.3,400\n", "line 2: found '400' as longitude, expected degrees from -180 to 360"),
        ("class,row,col,colour\nolivine,1,2,#12345\n", "line 2: found the colour '#12345'"),
        ("class,row,col\nolivine,50,2\n", "1 of 1 points lie outside the scene, the first at x 2, y 50"),
    ],
)
def test_a_wrong_table_is_refused_with_the_line(refused, tmp_path, text, message):
    (tmp_path / "labels.csv").write_text(text)
    assert message in refused(tmp_path / "labels.csv")


def test_a_table_in_an_old_encoding_is_refused(refused, tmp_path):
    (tmp_path / "labels.csv").write_bytes("class,row,col\nsmectité,1,2\n".encode("latin-1"))
    assert "not a text file in UTF-8" in refused(tmp_path / "labels.csv")


def test_column_names_of_a_table_may_be_in_capitals_unless_two_are_the_class(accepted, refused, tmp_path):
    path = tmp_path / "labels.csv"
    known, _ = accepted(write_csv(path, ("Class", "Row", "Col"), [("olivine", 3, 4)]))
    assert np.argwhere(known >= 0).tolist() == [[3, 4]]
    known, said = accepted(write_csv(path, ("CLASS", "class", "row", "col"), [("dust", "olivine", 3, 4)]))
    assert "olivine has 1 pixels" in said
    assert "dust has" not in said
    assert "no column 'class'" in refused(write_csv(path, ("CLASS", "Class", "row", "col"), [("dust", "talc", 3, 4)]))


def test_points_outside_the_scene_are_left_out_and_told(accepted, tmp_path):
    rows = [("olivine", 3, 4), ("olivine", HEIGHT, 4), ("kieserite", 5, WIDTH - 0.01), ("kieserite", -0.5, 1)]
    known, said = accepted(write_csv(tmp_path / "labels.csv", ("class", "row", "col"), rows))
    assert "2 of 4 points lie outside the scene, the first at x 4, y 23" in said
    assert np.argwhere(known >= 0).tolist() == [[3, 4], [5, WIDTH - 1]]


def test_a_class_of_one_pixel_is_taken_and_told(accepted, tmp_path):
    rows = [("olivine", 3, 4), *(("kieserite", row, 1) for row in range(9))]
    _, said = accepted(write_csv(tmp_path / "labels.csv", ("class", "row", "col"), rows))
    assert "olivine has fewer labelled pixels (1) than labels.min_train (5): all train, none is held out" in said
    assert "kieserite has fewer" not in said


def test_overlaps_are_told_class_by_class(accepted, cube, tmp_path):
    shapes = {
        "olivine": corners((0, 0), (6, 0), (6, 8), (0, 8)),
        "talc": corners((4, 2), (9, 2), (9, 5), (4, 5)),
        "gypsum": corners((5, 4), (9, 4), (9, 12), (5, 12)),
    }
    known, said = accepted(layer(tmp_path / "labels.gpkg", shapes))
    shared = {("olivine", "talc"): 2 * 2 + 1, ("gypsum", "talc"): 3, ("gypsum", "olivine"): 3, tuple(sorted(shapes)): 1}
    facts = store.read(cube.parent / "labels.zarr", "labels").attrs["disputed"]
    assert {tuple(item["classes"]): item["n_pixels"] for item in facts} == shared
    assert "12 pixels under several classes were left unlabelled: 5 of olivine and talc; " in said
    assert "1 of gypsum and olivine and talc" in said
    assert (known >= 0).sum() == 6 * 8 + 5 * 3 + 4 * 8 - 12 - sum(shared.values()) - 1


def test_labels_on_unusable_pixels_alone_are_refused_and_told(refused, cube, tmp_path):
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[3, 4] = False
    handmade_cubes.write_cube(cube, Cube(handmade_cubes.spectra(), GRID, extra={"valid": valid}))
    line = refused(write_csv(tmp_path / "labels.csv", ("class", "row", "col"), [("olivine", 3, 4)]))
    assert "no labelled pixel" in line
    assert "class olivine lies on pixels without valid data only" in line


# Regions of ENVI


def roi_text(tmp_path: Path, change: Callable[[str], str]) -> Path:
    path = label_formats.RoiText(encoding="utf-8")(tmp_path, GRID)
    path.write_text(change(path.read_text()))
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ROI npts: 34", "ROI npts: 33", "found 70 points, but its regions count 69 (ROI npts)"),
        ("ROI npts: 34", "ROI npts: many", "found ROI npts 'many', expected a whole number"),
        (
            "File Dimension: 9 x 23",
            "File Dimension: 23 x 9",
            "regions of an image of 23 x 9 (samples x lines)",
        ),
        ("rgb value: {10, 128, 32}", "rgb value: {10, 128}", "line 6: found the colour '{10, 128}'"),
        ("ROI name", "RoI title", "no region (line '; ROI name: …')"),
        (";   ID     X     Y     Map X     Map Y     Lat     Lon     B1", ";   B1   B2", "found the columns B1, B2"),
        ("\n1  3  2  ", "\n1  three  2  ", "line 17: found 'three' as X, expected a number"),
    ],
)
def test_a_wrong_text_of_regions_is_refused(refused, tmp_path, old, new, message):
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    assert message in refused(roi_text(tmp_path, change))


XML = """<?xml version="1.0" encoding="UTF-8"?>
<RegionsOfInterest version="1.1"><Region name="olivine" color="255,0,0">%s</Region></RegionsOfInterest>"""
GEOMETRY = "<GeometryDef><CoordSysStr>none</CoordSysStr>%s</GeometryDef>"
POLYGON = "<Polygon><Exterior><LinearRing><Coordinates>%s</Coordinates></LinearRing></Exterior></Polygon>"


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("", "no labelled pixel; its classes (olivine)"),
        ("<ThresholdDef/>", "region 'olivine' holds a ThresholdDef, expected polygons or points"),
        (GEOMETRY % "<Line/>", "region 'olivine' holds a Line, expected polygons or points"),
        (GEOMETRY % (POLYGON % "1 1 2 2"), "a polygon without an outline of three corners or more"),
        (GEOMETRY % (POLYGON % "1 1 2 2 3"), "has 5 coordinates, expected pairs of numbers"),
        (GEOMETRY % (POLYGON % "1 1 2 two 3 3"), "coordinates that are not numbers"),
        (GEOMETRY % (POLYGON % "1 1 5 5 3 3 1 1"), "invalid geometry in region 'olivine'"),
        (GEOMETRY % (POLYGON % "91 91 95 91 95 95 91 91"), "(x 91 to 95, y 91 to 95) lie outside the scene"),
        (GEOMETRY.replace("none", "PROJCS[nonsense") % (POLYGON % "1 1 5 5 3 1"), "unreadable coordinate system"),
    ],
)  # fmt: skip
def test_a_wrong_xml_of_regions_is_refused(refused, tmp_path, inside, message):
    (tmp_path / "labels.xml").write_text(XML % inside)
    assert message in refused(tmp_path / "labels.xml")


def test_xml_that_ends_early_is_refused(refused, tmp_path):
    text = XML % (GEOMETRY % (POLYGON % "1 1 5 5 3 1"))
    (tmp_path / "labels.xml").write_text(text[:-30])
    assert "not readable as XML" in refused(tmp_path / "labels.xml")


def test_regions_in_mixed_systems_are_each_placed_by_their_own_and_those_of_earth_are_refused(
    refused, accepted, tmp_path
):
    ground = " ".join(
        f"{value!r}" for value in np.stack(on_map([6, 9, 9, 6], [14, 14, 16, 16]), axis=1).ravel().tolist()
    )
    mixed = GEOMETRY % (POLYGON % "2 1 7 1 7 9 2 9") + GEOMETRY.replace("none", MAP_SYSTEM) % (POLYGON % ground)
    (tmp_path / "labels.xml").write_text(XML % mixed)
    known, _ = accepted(tmp_path / "labels.xml")
    expected = np.full((HEIGHT, WIDTH), -1)
    expected[1:9, 2:7] = expected[14:16, 6:9] = 0
    np.testing.assert_array_equal(known, expected)
    earth = rasterio.crs.CRS.from_epsg(32633).to_wkt()
    (tmp_path / "labels.xml").write_text(XML % mixed.replace(MAP_SYSTEM, earth))
    line = refused(tmp_path / "labels.xml")
    assert "region 'olivine'" in line
    assert "expected Mars" in line


# Rasters


def test_masks_of_several_values_or_without_names_are_refused(refused, tmp_path):
    one, two = np.zeros((2, HEIGHT, WIDTH), np.uint8)
    one[1, 2], two[3, 4], two[5, 6] = 1, 1, 2
    path = Tiff(tmp_path / "a.tif", GRID).write(one, two, names=("olivine", "talc"))
    assert "the mask of class 'talc' holds 1 and 2; expected 0 and one other value" in refused(path)
    path = Tiff(tmp_path / "b.tif", GRID).write(one, one)
    assert "found 2 bands named None, None, expected one band of class numbers, or a mask per class" in refused(path)
    path = Tiff(tmp_path / "c.tif", GRID).write(one, one, names=("talc", "talc"))
    assert "found 2 bands named 'talc', 'talc'" in refused(path)


def test_masks_on_mixed_grids_are_refused_by_name(refused, tmp_path):
    folder = tmp_path / "masks"
    folder.mkdir()
    mask = np.eye(HEIGHT, WIDTH, dtype=np.uint8)
    Tiff(folder / "olivine.tif", GRID).write(mask)
    Tiff(folder / "talc.tif", Grid(HEIGHT, WIDTH, "IAU_2015:49910", GRID.transform)).write(mask)
    line = refused(folder)
    assert "talc.tif: its corners lie up to" in line


def test_masks_that_overlap_are_told(accepted, tmp_path):
    one, two = np.zeros((2, HEIGHT, WIDTH), np.uint8)
    one[2:5, 1:4], two[4:9, 3:5] = 255, 255
    known, said = accepted(Tiff(tmp_path / "a.tif", GRID).write(one, two, names=("olivine", "talc")))
    assert "1 pixels under several classes were left unlabelled: 1 of olivine and talc" in said
    assert known[4, 3] == -1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Unclassified", "dust", "class 0 is named 'dust', but 0 stands for pixels without a class"),
        ("kieserite", "olivine", "are both 'olivine'; give each value its own name"),
        ("kieserite", "kieserite, or so", "kieserite, or so), but classes = 4; names are parted by commas"),
        ("class lookup = { 0", "class lookup = { 0, 0", "found 13 entries in 'class lookup' for 4 class names"),
        ("samples = 9", "samples = 8", "23 lines × 8 samples, expected the scene's 23 × 9"),
        ("class names", "old class names", "not an ENVI classification image"),
        ("map info", "old map info", "has no map coordinates"),
    ],
)
def test_a_wrong_header_of_a_classification_image_is_refused(refused, tmp_path, old, new, message):
    path = label_formats.envi_classes(tmp_path, GRID)
    text = re.sub(r"\s*,\s*", ", ", path.read_text())
    assert old in text
    path.write_text(text.replace(old, new))
    assert message in refused(path)


def test_a_truncated_classification_image_is_refused(refused, tmp_path):
    path = label_formats.envi_classes(tmp_path, GRID)
    image = path.with_suffix(".img")
    image.write_bytes(image.read_bytes()[:-9])
    for named in (path, image):
        assert "truncated" in refused(named)


def test_a_classification_image_of_another_place_is_refused(refused, tmp_path):
    moved = Grid(HEIGHT, WIDTH, MAP_SYSTEM, tuple(Affine(*GRID.transform) @ Affine.translation(1, 0))[:6])
    assert "from the scene's; resample it" in refused(label_formats.envi_classes(tmp_path, moved))


# Observed classes


def test_a_class_to_observe_that_no_scene_labels_is_refused(refused, tmp_path):
    line = refused(label_formats.geopackage(tmp_path, GRID), observed=["olivine", "unobtainium"])
    assert "labels.observed: found 'unobtainium', which is no class of the labels; expected some of Fe/Mg" in line

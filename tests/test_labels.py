"""Labels: polygons and rasters, map and sensor space, the split, and each wrong input with its one line."""

import argparse
import hashlib
import logging
import warnings
from pathlib import Path

import geopandas
import numpy as np
import pytest
import rasterio
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import CRS
from rasterio.control import GroundControlPoint
from rasterio.errors import NotGeoreferencedWarning
from rasterio.transform import Affine

import handmade_cubes
from gibbsite import labels, mars, shapes, store
from gibbsite.errors import GibbsiteError, InputError, SettingsError
from gibbsite.labels import HELD_OUT, TRAIN, UNLABELLED, KnownClasses
from gibbsite.scene import Grid
from gibbsite.settings import Labels, Settings, validate
from gibbsite.steps import labels as labels_step
from handmade_cubes import HEIGHT, MAP_SYSTEM, WIDTH, Cube

GRID = handmade_cubes.map_grid()
RECTANGLES = {"olivine": (1, 2, 9, 7), "Alunite hydrated": (12, 0, 22, 4), "kieserite": (14, 6, 16, 9)}
"""Class -> first row, first column, last row, last column (exclusive): no two alike."""


def expected_known() -> np.ndarray:
    """The known raster of RECTANGLES, classes in sorted order."""
    known = np.full((HEIGHT, WIDTH), -1)
    for index, name in enumerate(sorted(RECTANGLES)):
        top, left, bottom, right = RECTANGLES[name]
        known[top:bottom, left:right] = index
    return known


def write_map_cube(folder: Path, **extra: np.ndarray) -> Path:
    return handmade_cubes.write_cube(folder / "scene.zarr", Cube(handmade_cubes.spectra(), GRID, extra=extra))


def write_sensor_cube(folder: Path, grid: Grid | None = None) -> Path:
    longitude, latitude = handmade_cubes.degrees_of(GRID)
    extra = {"longitude": longitude, "latitude": latitude} if grid is None else {}
    cube = Cube(handmade_cubes.spectra(), grid or Grid(HEIGHT, WIDTH), extra=extra)
    return handmade_cubes.write_cube(folder / "scene.zarr", cube)


def on_map(top: float, left: float, bottom: float, right: float) -> shapely.Polygon:
    a, _, c, _, e, f = GRID.transform
    return shapely.box(c + a * left, f + e * bottom, c + a * right, f + e * top)


def frame(rectangles: dict | None = None, field: str = "class") -> geopandas.GeoDataFrame:
    rectangles = RECTANGLES if rectangles is None else rectangles
    shapes = [on_map(*corners) for corners in rectangles.values()]
    return geopandas.GeoDataFrame({field: list(rectangles)}, geometry=shapes, crs=MAP_SYSTEM)


def write_raster(path: Path, values: np.ndarray, tags: dict[str, str], **place: object) -> Path:
    place = place or {"crs": MAP_SYSTEM, "transform": Affine(*GRID.transform)}
    height, width = values.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        profile = {"driver": "GTiff", "count": 1, "dtype": values.dtype, "height": height, "width": width}
        with rasterio.open(path, "w", **profile, **place) as raster:
            raster.write(values, 1)
            raster.update_tags(**tags)
    return path


def raster_of_rectangles() -> tuple[np.ndarray, dict[str, str]]:
    number = {"olivine": 3, "Alunite hydrated": 1, "kieserite": 7}
    values = np.zeros((HEIGHT, WIDTH), np.uint8)
    for name, (top, left, bottom, right) in RECTANGLES.items():
        values[top:bottom, left:right] = number[name]
    return values, {f"CLASS_{value}": name for name, value in number.items()}


def run(cube: Path, shapes: Path | None, **settings: object) -> tuple[np.ndarray, np.ndarray, dict]:
    out = cube.parent / "labels.zarr"
    chosen: Settings = validate({"labels": settings}, "test")
    labels_step.run(argparse.Namespace(cube=cube, shapes=shapes, out=out, one_of_several=False), chosen)
    group = store.read(out, "labels")
    return np.asarray(group["known"][...]), np.asarray(group["role"][...]), dict(group.attrs)


# Known classes


@pytest.mark.parametrize("suffix", ["gpkg", "shp", "geojson"])
def test_polygons_label_the_pixels_whose_centre_they_hold(tmp_path, suffix):
    path = tmp_path / f"shapes.{suffix}"
    shapes = frame()
    if suffix == "geojson":
        shapes = shapes.to_crs(mars_degrees(3_394_839.8133)).set_crs("IAU_2015:49900", allow_override=True)
    shapes.to_file(path)
    known, _, facts = run(write_map_cube(tmp_path), path)
    assert (known == expected_known()).all()
    assert facts["class_names"] == ["Alunite hydrated", "kieserite", "olivine"]
    assert facts["observed"] == [True, True, True]
    assert facts["scene"] == "scene"


def test_polygons_and_raster_give_the_same_known_classes(tmp_path):
    values, tags = raster_of_rectangles()
    raster = write_raster(tmp_path / "classes.tif", values, tags)
    frame().to_file(tmp_path / "shapes.gpkg")
    cube = write_map_cube(tmp_path)
    from_raster = run(cube, raster)
    from_polygons = run(cube, tmp_path / "shapes.gpkg")
    assert (from_raster[0] == from_polygons[0]).all()
    assert (from_raster[1] == from_polygons[1]).all()
    assert from_raster[2] | {"files": []} == from_polygons[2] | {"files": []}


@pytest.mark.parametrize(
    ("name", "others"), [("shapes.gpkg", ()), ("SHAPES.shp", (".cpg", ".dbf", ".prj", ".shx")), ("classes.tif", ())]
)
def test_the_store_names_the_label_files_with_their_hash(tmp_path, name, others):
    path = tmp_path / name
    write_raster(path, *raster_of_rectangles()) if path.suffix == ".tif" else frame().to_file(path)
    (tmp_path / "SHAPES.txt").write_text("notes")
    _, _, facts = run(write_map_cube(tmp_path), path)
    expected = [path, *(path.with_suffix(suffix) for suffix in others)]
    found = {item["name"]: (item["sha256"], item["bytes"]) for item in facts["files"]}
    assert facts["files"][0]["name"] == name
    assert found == {
        file.name: (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_size) for file in expected
    }


def test_no_labels_have_no_files(tmp_path):
    assert run(write_map_cube(tmp_path), None)[2]["files"] == []


def test_a_file_that_is_neither_polygons_nor_raster_is_refused_in_the_users_words(tmp_path):
    (tmp_path / "labels.docx").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(InputError, match=r"not a raster that GDAL reads; expected label polygons .*, a class raster"):
        run(write_map_cube(tmp_path), tmp_path / "labels.docx")


def test_sensor_space_and_map_space_give_the_same_known_classes(tmp_path):
    frame().to_file(tmp_path / "shapes.gpkg")
    known, _, _ = run(write_sensor_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert (known == expected_known()).all()


def test_a_layer_on_another_sphere_is_placed_by_longitude_and_latitude(tmp_path):
    """IAU's sphere is 1.35 km wider: a shift by coordinates would move these labels by tens of pixels."""
    shapes = frame().to_crs(mars_degrees(3_394_839.8133)).set_crs("IAU_2015:49900", allow_override=True)
    shapes.to_crs("IAU_2015:49910").to_file(tmp_path / "shapes.gpkg")
    known, _, _ = run(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert (known == expected_known()).all()


def test_a_layer_that_counts_longitude_to_360_meets_a_scene_that_counts_to_180(tmp_path):
    longitude, latitude = handmade_cubes.degrees_of(GRID)
    extra = {"longitude": longitude - 130.0, "latitude": latitude}
    cube = handmade_cubes.write_cube(
        tmp_path / "scene.zarr", Cube(handmade_cubes.spectra(), Grid(HEIGHT, WIDTH), extra=extra)
    )
    shapes = frame().to_crs(mars_degrees(3_394_839.8133)).set_crs("IAU_2015:49900", allow_override=True)
    shapes.geometry = shapes.geometry.translate(xoff=230.0)
    shapes.to_file(tmp_path / "shapes.gpkg")
    known, _, _ = run(cube, tmp_path / "shapes.gpkg")
    assert (known == expected_known()).all()


def mars_degrees(radius: float) -> CRS:
    return CRS.from_dict({"proj": "longlat", "R": radius, "no_defs": True})


@given(st.floats(-180.0, 180.0), st.floats(-88.0, 88.0), st.floats(3.35e6, 3.42e6))
def test_longitude_and_latitude_are_the_same_on_every_sphere(longitude, latitude, radius):
    ours, theirs = mars_degrees(radius), CRS.from_user_input("IAU_2015:49910")
    place = np.array([longitude]), np.array([latitude])
    np.testing.assert_allclose(mars.from_planetocentric(*place, ours), place, atol=1e-9)
    x, y = mars.from_planetocentric(*place, theirs)
    np.testing.assert_allclose(y, np.radians(place[1]) * 3_396_190.0, atol=1e-3)
    np.testing.assert_allclose(mars.to_planetocentric(x, y, theirs), place, atol=1e-9)


def test_pixels_under_two_classes_stay_unlabelled_and_are_counted(tmp_path, caplog):
    shapes = frame({"olivine": (1, 2, 9, 7), "pyroxene": (6, 5, 12, 9)})
    shapes.to_file(tmp_path / "shapes.gpkg")
    with caplog.at_level(logging.INFO):
        known, role, _ = run(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert (known[6:9, 5:7] == -1).all()
    assert (role[6:9, 5:7] == UNLABELLED).all()
    assert (known >= 0).sum() == 40 + 24 - 12
    assert "6 pixels under several classes were left unlabelled: 6 of olivine and pyroxene" in caplog.text


def test_overlapping_polygons_of_one_class_dispute_nothing(tmp_path):
    shapes = geopandas.GeoDataFrame(
        {"class": ["olivine", "olivine"]},
        geometry=[on_map(1, 2, 9, 7), on_map(6, 5, 12, 9)],
        crs=MAP_SYSTEM,
    )
    shapes.to_file(tmp_path / "shapes.gpkg")
    known, _, _ = run(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert (known >= 0).sum() == 40 + 24 - 6


def test_holes_in_polygons_stay_unlabelled(tmp_path):
    outer, hole = on_map(1, 1, 15, 8), on_map(4, 2, 6, 7)
    shapes = geopandas.GeoDataFrame({"class": ["a"]}, geometry=[outer.difference(hole)], crs=MAP_SYSTEM)
    shapes.to_file(tmp_path / "shapes.gpkg")
    known, _, _ = run(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert (known >= 0).sum() == 14 * 7 - 2 * 5
    assert (known[4:6, 2:7] == -1).all()


def test_only_valid_pixels_get_labels(tmp_path):
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[3, :] = False
    frame().to_file(tmp_path / "shapes.gpkg")
    values, tags = raster_of_rectangles()
    raster = write_raster(tmp_path / "classes.tif", values, tags)
    cube = write_map_cube(tmp_path, valid=valid)
    for path in (tmp_path / "shapes.gpkg", raster):
        known, role, _ = run(cube, path)
        assert (known[3] == -1).all()
        assert (role[3] == UNLABELLED).all()
        assert (known[4] == expected_known()[4]).all()


def test_no_shapes_gives_a_store_without_labels(tmp_path):
    known, role, facts = run(write_map_cube(tmp_path), None)
    assert (known == -1).all()
    assert (role == UNLABELLED).all()
    assert known.shape == (HEIGHT, WIDTH)
    assert (facts["class_names"], facts["observed"]) == ([], [])


def test_blanks_around_names_are_trimmed(tmp_path):
    frame({" olivine  rich ": (1, 2, 9, 7)}).to_file(tmp_path / "shapes.gpkg")
    assert run(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")[2]["class_names"] == ["olivine rich"]


def test_numbers_serve_as_class_names(tmp_path):
    shapes = frame()
    shapes["class"] = [12, 3, 5]
    shapes.to_file(tmp_path / "shapes.gpkg")
    known, _, facts = run(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert facts["class_names"] == ["12", "3", "5"]
    assert known[2, 3] == 0


# The split


def classes_of(counts: dict[str, int]) -> KnownClasses:
    names = tuple(sorted(counts))
    known = np.concatenate([np.full(7, -1), *(np.full(counts[name], i) for i, name in enumerate(names))])
    random = np.random.Generator(np.random.Philox(key=1))
    return KnownClasses(names, random.permutation(known)[:, None].astype(np.int16))


@given(
    st.dictionaries(st.text("abcxyz", min_size=1), st.integers(0, 60), min_size=1, max_size=4),
    st.floats(0.01, 1.0),
    st.integers(1, 12),
    st.integers(0, 2**63 - 1),
)
def test_every_observed_class_trains_its_share_and_holds_out_the_rest(counts, fraction, least, seed):
    classes = classes_of(counts)
    observed = [index % 2 == 0 for index in range(len(counts))]
    role = labels.choose_roles(classes, observed, seed, Labels(train_fraction=fraction, min_train=least))
    assert ((role == UNLABELLED) == (classes.known == -1)).all()
    for index, name in enumerate(classes.class_names):
        mine = role[classes.known == index]
        n_train = (mine == TRAIN).sum()
        assert n_train + (mine == HELD_OUT).sum() == counts[name]
        share = max(np.floor(fraction * counts[name] + 0.5), least)
        assert n_train == (min(share, counts[name]) if observed[index] else 0)


def test_split_is_seeded_and_a_class_keeps_its_pixels_when_others_come():
    one = classes_of({"olivine": 200})
    both = KnownClasses(("alunite", "olivine"), np.where(one.known == 0, 1, one.known).astype(np.int16))
    both.known[both.known == -1] = 0
    first = labels.choose_roles(one, [True], 7, Labels())
    assert (first == labels.choose_roles(one, [True], 7, Labels())).all()
    assert (first != labels.choose_roles(one, [True], 8, Labels())).any()
    joined = labels.choose_roles(both, [True, True], 7, Labels())
    assert ((joined == TRAIN)[one.known == 0] == (first == TRAIN)[one.known == 0]).all()


def test_split_draws_are_pinned():
    """The bytes of a published split must outlive a change of numpy."""
    classes = KnownClasses(("olivine",), np.zeros((8, 5), np.int16))
    role = labels.choose_roles(classes, [True], 2024, Labels())
    assert np.flatnonzero(role == TRAIN).tolist() == [0, 4, 10, 13, 21, 26, 30, 31]


def test_classes_not_observed_are_held_out_whole(tmp_path):
    frame().to_file(tmp_path / "shapes.gpkg")
    known, role, facts = run(write_map_cube(tmp_path), tmp_path / "shapes.gpkg", observed=["olivine"])
    assert facts["observed"] == [False, False, True]
    assert (role[known == 0] == HELD_OUT).all()
    assert (role[known == 2] == TRAIN).sum() == 8


def test_classes_that_are_only_named_are_not_observed(tmp_path):
    values, tags = raster_of_rectangles()
    path = write_raster(tmp_path / "classes.tif", values, tags | {"CLASS_9": "jarosite"})
    known, _, facts = run(write_map_cube(tmp_path), path)
    assert facts["class_names"] == ["Alunite hydrated", "jarosite", "kieserite", "olivine"]
    assert facts["observed"] == [True, False, True, True]
    assert known[2, 3] == 3


# Wrong inputs


def refusal(cube: Path, shapes: Path | None, **settings: object) -> str:
    with pytest.raises(GibbsiteError) as caught:
        run(cube, shapes, **settings)
    assert not (cube.parent / "labels.zarr").exists()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_missing_file_is_refused(tmp_path):
    assert "nowhere.gpkg: no such file" in refusal(write_map_cube(tmp_path), tmp_path / "nowhere.gpkg")


def test_a_file_that_is_neither_polygons_nor_raster_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("olivine in the north")
    assert "notes.txt" in refusal(write_map_cube(tmp_path), tmp_path / "notes.txt")


def test_empty_layer_is_refused(tmp_path):
    frame().iloc[:0].to_file(tmp_path / "shapes.gpkg", geometry_type="Polygon")
    assert "empty layer" in refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")


def test_features_without_shape_are_told_and_the_others_taken(tmp_path):
    layer = frame()
    whole = shapes.read(save(layer, tmp_path / "whole.gpkg"), "class", None)
    layer.loc[1, "geometry"] = None
    found = shapes.read(save(layer, tmp_path / "holed.gpkg"), "class", None)
    assert len(found.items) == len(whole.items) - 1
    assert whole.remarks == ()
    assert found.remarks == ("feature 2 has no shape, and labels nothing",)


def save(layer: geopandas.GeoDataFrame, path: Path) -> Path:
    layer.to_file(path)
    return path


def test_lines_are_refused(tmp_path):
    lines = frame()
    lines.geometry = lines.geometry.boundary
    lines.to_file(tmp_path / "shapes.gpkg")
    message = refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert "found LineString shapes, expected polygons or points" in message


def test_two_layers_are_refused_by_name(tmp_path):
    frame().to_file(tmp_path / "shapes.gpkg", layer="north")
    frame().to_file(tmp_path / "shapes.gpkg", layer="south")
    assert "2 layers with shapes (north, south)" in refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")


def test_missing_class_field_names_the_fields_there_are(tmp_path):
    frame(field="mineral").assign(area=1.5).to_file(tmp_path / "shapes.gpkg")
    message = refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert "no field 'class'" in message
    assert "its fields are mineral, area" in message


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_blank_class_name_is_refused(tmp_path, blank):
    shapes = frame()
    shapes["class"] = ["olivine", blank, "kieserite"]
    shapes.to_file(tmp_path / "shapes.gpkg")
    assert "empty class name" in refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")


def test_class_named_twice_names_both_spellings(tmp_path):
    shapes = frame()
    shapes["class"] = ["Olivine", "olivine ", "kieserite"]
    shapes.to_file(tmp_path / "shapes.gpkg")
    message = refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert "class named twice, as 'Olivine' and as 'olivine '" in message


def test_names_of_discovered_classes_are_refused(tmp_path):
    frame({"new-2": (1, 2, 9, 7)}).to_file(tmp_path / "shapes.gpkg")
    assert "kept for discovered classes" in refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")


def test_polygons_outside_the_scene_say_both_extents(tmp_path):
    shapes = frame()
    shapes.geometry = shapes.geometry.translate(xoff=50_000.0)
    shapes.to_file(tmp_path / "shapes.gpkg")
    message = refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert "lie outside the scene" in message
    assert "(x 311686 to 311848, y -1.26245e+06 to -1.26207e+06)" in message
    assert "(x 261695 to 261839, y -1.26245e+06 to -1.26206e+06)" in message


def test_polygons_between_pixel_centres_label_nothing_and_are_refused(tmp_path):
    frame({"olivine": (3.6, 2.6, 3.9, 2.9)}).to_file(tmp_path / "shapes.gpkg")
    assert "no labelled pixel" in refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")


def test_unknown_observed_class_is_refused_with_the_known_ones(tmp_path):
    frame().to_file(tmp_path / "shapes.gpkg")
    cube = write_map_cube(tmp_path)
    message = refusal(cube, tmp_path / "shapes.gpkg", observed=["olivine", "gypsum"])
    assert "labels.observed: found 'gypsum'" in message
    assert "Alunite hydrated, kieserite, olivine" in message
    with pytest.raises(SettingsError):
        run(cube, tmp_path / "shapes.gpkg", observed=["gypsum"])


def test_layer_without_coordinate_system_is_refused(tmp_path):
    shapes = frame().set_crs(None, allow_override=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shapes.to_file(tmp_path / "shapes.shp")
    assert "no coordinate system" in refusal(write_map_cube(tmp_path), tmp_path / "shapes.shp")


@pytest.mark.parametrize("system", ["EPSG:4326", "EPSG:3857", "IAU_2015:30100"])
def test_layers_of_earth_and_moon_are_refused(tmp_path, system):
    frame().set_crs(system, allow_override=True).to_file(tmp_path / "shapes.gpkg")
    message = refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")
    assert "expected Mars" in message


def test_a_scene_of_earth_is_labelled_in_its_own_system_and_in_no_other(tmp_path):
    earth = CRS("EPSG:32611").to_wkt()
    grid = Grid(HEIGHT, WIDTH, crs=earth, transform=GRID.transform)
    cube = handmade_cubes.write_cube(tmp_path / "scene.zarr", Cube(handmade_cubes.spectra(), grid))
    frame().set_crs("EPSG:32612", allow_override=True).to_file(tmp_path / "other.gpkg")
    assert "expected Mars" in refusal(cube, tmp_path / "other.gpkg")
    frame().set_crs(earth, allow_override=True).to_file(tmp_path / "shapes.gpkg")
    assert (run(cube, tmp_path / "shapes.gpkg")[0] == expected_known()).all()
    values, tags = raster_of_rectangles()
    path = write_raster(tmp_path / "classes.tif", values, tags, crs=earth, transform=Affine(*GRID.transform))
    assert (run(cube, path)[0] == expected_known()).all()


@pytest.mark.parametrize("system", ["IAU_2015:49901", "IAU_2015:49902", "IAU_2015:49911"])
def test_layers_on_a_flattened_mars_are_refused_because_files_forget_their_latitude(tmp_path, system):
    frame().set_crs(system, allow_override=True).to_file(tmp_path / "shapes.gpkg")
    assert "on a flattened Mars" in refusal(write_map_cube(tmp_path), tmp_path / "shapes.gpkg")


def test_west_positive_systems_are_refused():
    with pytest.raises(InputError, match="plain east and north"):
        mars.coordinate_system("IAU_2015:49911", "the layer")


def test_a_layer_in_the_scenes_own_flattened_system_needs_no_guess(tmp_path):
    flattened = CRS.from_dict({"proj": "eqc", "a": 3396190.0, "b": 3376200.0, "lon_0": 70}).to_wkt()
    grid = Grid(HEIGHT, WIDTH, crs=flattened, transform=GRID.transform)
    cube = handmade_cubes.write_cube(tmp_path / "scene.zarr", Cube(handmade_cubes.spectra(), grid))
    frame().set_crs(flattened, allow_override=True).to_file(tmp_path / "shapes.gpkg")
    assert (run(cube, tmp_path / "shapes.gpkg")[0] == expected_known()).all()


def test_polygons_for_a_scene_without_any_place_are_refused(tmp_path):
    frame().to_file(tmp_path / "shapes.gpkg")
    message = refusal(write_sensor_cube(tmp_path, Grid(HEIGHT, WIDTH)), tmp_path / "shapes.gpkg")
    assert "neither a map grid nor latitudes" in message


# Wrong rasters


def test_raster_of_other_shape_is_refused(tmp_path):
    values, tags = raster_of_rectangles()
    path = write_raster(tmp_path / "classes.tif", np.ascontiguousarray(values.T), tags)
    assert "9 lines × 23 samples, expected the scene's 23 × 9" in refusal(write_map_cube(tmp_path), path)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"crs": MAP_SYSTEM, "transform": Affine(*GRID.transform) @ Affine.translation(1, 0)}, "1 pixels"),
        ({"crs": "IAU_2015:49910", "transform": Affine(*GRID.transform)}, "pixels) from the scene's"),
        ({"crs": "EPSG:3857", "transform": Affine(*GRID.transform)}, "expected Mars"),
        ({"crs": None}, "has no map coordinates"),
    ],
)
def test_raster_of_other_georeference_is_refused(tmp_path, place, message):
    values, tags = raster_of_rectangles()
    path = write_raster(tmp_path / "classes.tif", values, tags, **place)
    assert message in refusal(write_map_cube(tmp_path), path)


def test_raster_of_sensor_pixels_is_taken_with_and_without_ground_points(tmp_path):
    values, tags = raster_of_rectangles()
    cube = write_sensor_cube(tmp_path)
    longitude, latitude = handmade_cubes.degrees_of(GRID)
    corners = [(0, 0), (0, 8), (22, 0), (22, 8)]
    for shift, is_taken in ((0.0, True), (0.5, False)):
        points = [
            GroundControlPoint(row + 0.5, col + 0.5, longitude[row, col] + shift, latitude[row, col])
            for row, col in corners
        ]
        path = write_raster(tmp_path / f"{shift}.tif", values, tags, gcps=points, crs="IAU_2015:49900")
        if is_taken:
            assert (run(cube, path)[0] == expected_known()).all()
        else:
            with pytest.raises(InputError, match="ground points lie elsewhere"):
                run(cube, path)
    plain = write_raster(tmp_path / "plain.tif", values, tags, crs=None)
    assert (run(cube, plain)[0] == expected_known()).all()
    with pytest.raises(InputError, match="is on a map grid, but the scene is not"):
        run(cube, write_raster(tmp_path / "map.tif", values, tags))


def test_raster_without_class_tags_is_refused(tmp_path):
    values, _ = raster_of_rectangles()
    path = write_raster(tmp_path / "classes.tif", values, {"AREA": "north", "CLASS_0": "unknown"})
    assert "no tag CLASS_<value>" in refusal(write_map_cube(tmp_path), path)


def test_raster_value_without_tag_is_refused(tmp_path):
    values, tags = raster_of_rectangles()
    del tags["CLASS_7"]
    path = write_raster(tmp_path / "classes.tif", values, tags)
    assert "value 7 has no name; add it (a tag CLASS_7" in refusal(write_map_cube(tmp_path), path)


def test_raster_with_one_name_for_two_values_is_refused(tmp_path):
    values, tags = raster_of_rectangles()
    cube = write_map_cube(tmp_path)
    path = write_raster(tmp_path / "classes.tif", values, tags | {"CLASS_7": "olivine"})
    assert "3 and 7 are both 'olivine'" in refusal(cube, path)
    path = write_raster(tmp_path / "other.tif", values, tags | {"CLASS_7": "OLIVINE"})
    assert "class named twice, as 'OLIVINE' and as 'olivine'" in refusal(cube, path)


def test_raster_of_fractions_is_refused(tmp_path):
    values, tags = raster_of_rectangles()
    path = write_raster(tmp_path / "classes.tif", values.astype(np.float32), tags)
    assert "found float32 values" in refusal(write_map_cube(tmp_path), path)


def test_raster_without_any_labelled_pixel_is_refused(tmp_path):
    values, tags = raster_of_rectangles()
    path = write_raster(tmp_path / "classes.tif", np.zeros_like(values), tags)
    assert "no labelled pixel" in refusal(write_map_cube(tmp_path), path)

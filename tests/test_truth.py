"""What a map is scored against: a raster of true classes, or the labels held out; wrong ones are refused early."""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import pytest

import handmade_cubes
from gibbsite import labels, raster, store, truth
from gibbsite.errors import GibbsiteError
from gibbsite.labels import HELD_OUT, NO_CLASS, TRAIN, KnownClasses
from gibbsite.scene import Grid
from gibbsite.settings import Settings
from gibbsite.steps import truth as truth_step
from handmade_cubes import HEIGHT, WIDTH, Cube

GRID = handmade_cubes.map_grid()
NAMES = ("alunite", "kieserite", "olivine")
VALUE = {"olivine": 3, "alunite": 1, "jarosite": 7}
"""Of the truth raster; jarosite was never labelled."""


def role_and_known() -> tuple[np.ndarray, np.ndarray]:
    """Olivine in part trained on, kieserite held out whole, alunite only named."""
    role, known = np.zeros((HEIGHT, WIDTH), np.uint8), np.full((HEIGHT, WIDTH), NO_CLASS, np.int16)
    known[1:9, 2:7], role[1:9, 2:7], role[3:5, 2:7] = 2, HELD_OUT, TRAIN
    known[14:16, 6:9], role[14:16, 6:9] = 1, HELD_OUT
    return role, known


def true_classes() -> np.ndarray:
    values = np.zeros((HEIGHT, WIDTH), np.uint16)
    values[0:10, 2:8], values[12:22, 0:4], values[12:14, 5:9] = VALUE["olivine"], VALUE["alunite"], VALUE["jarosite"]
    return values


def write_truth(path: Path, values: np.ndarray, grid: Grid = GRID, names: dict[str, int] = VALUE) -> Path:
    classes = [{"code": value, "name": name, "colour": "#111111"} for name, value in names.items()]
    raster.write_class_map(path, grid, classes, [(0, values)])
    return path


@pytest.fixture
def scene(tmp_path: Path) -> argparse.Namespace:
    """The flags of a scene with cube and labels, without a truth raster."""
    valid = np.ones((HEIGHT, WIDTH), bool)
    valid[0, 2:5] = False
    extra = {"valid": valid}
    cube = handmade_cubes.write_cube(tmp_path / "s.zarr", Cube(handmade_cubes.spectra(), GRID, extra=extra))
    role, known = role_and_known()
    labels.write(tmp_path / "labels.zarr", KnownClasses(NAMES, known), [False, False, True], role, scene="s")
    return argparse.Namespace(cube=cube, labels=tmp_path / "labels.zarr", raster=None, out=tmp_path / "truth.zarr")


def run(flags: argparse.Namespace) -> truth.Truth:
    truth_step.run(flags, Settings())
    return truth.read(flags.out)


def refusal(flags: argparse.Namespace) -> str:
    with pytest.raises(GibbsiteError) as caught:
        truth_step.run(flags, Settings())
    assert "\n" not in str(caught.value)
    assert not flags.out.exists()
    return str(caught.value)


def test_a_raster_scores_valid_pixels_of_all_its_classes_but_those_trained_on(scene, tmp_path):
    scene.raster = write_truth(tmp_path / "true.tif", true_classes())
    found = run(scene)
    role, _ = role_and_known()
    expected = np.full((HEIGHT, WIDTH), NO_CLASS)
    for name, value in VALUE.items():
        expected[true_classes() == value] = sorted(VALUE).index(name)
    expected[(role == TRAIN)] = NO_CLASS
    expected[0, 2:5] = NO_CLASS
    assert found.class_names == ("alunite", "jarosite", "olivine")
    assert (found.truth == expected).all()
    assert (found.scene, found.source) == ("s", "truth raster")


def test_the_files_of_a_raster_are_named_with_their_hash(scene, tmp_path):
    scene.raster = write_truth(tmp_path / "true.tif", true_classes())
    side = tmp_path / "true.tif.aux.xml"
    side.write_text("<PAMDataset><Metadata><MDI key='CLASS_9'>gypsum</MDI></Metadata></PAMDataset>")
    named = {item["name"]: item["sha256"] for item in run(scene).files}
    assert named == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (scene.raster, side)}


def test_without_a_raster_the_held_out_labels_are_scored_classes_held_out_whole_too(scene):
    found = run(scene)
    role, known = role_and_known()
    assert (found.truth == np.where(role == HELD_OUT, known, NO_CLASS)).all()
    assert set(found.truth.ravel().tolist()) == {NO_CLASS, 1, 2}
    assert found.class_names == NAMES
    assert (found.source, found.files) == ("held-out labels", ())


def test_a_scene_nobody_labelled_has_nothing_to_score(scene):
    empty = labels.no_classes(GRID)
    labels.write(scene.labels, empty, [], np.zeros((HEIGHT, WIDTH), np.uint8), scene="s")
    found = run(scene)
    assert found.class_names == ()
    assert (found.truth == NO_CLASS).all()


def test_a_wrong_truth_raster_is_refused_in_the_users_words(scene, tmp_path):
    scene.raster = tmp_path / "true.csv"
    assert "true.csv: no such file; expected a raster of true classes" in refusal(scene)
    scene.raster.write_text("1,2\n")
    assert "true.csv: not a raster that GDAL reads; expected a raster of true classes (GeoTIFF" in refusal(scene)
    scene.raster = write_truth(tmp_path / "true.tif", np.ascontiguousarray(true_classes().T), Grid(WIDTH, HEIGHT))
    assert f"{WIDTH} lines × {HEIGHT} samples, expected the scene's {HEIGHT} × {WIDTH}" in refusal(scene)
    scene.raster = write_truth(tmp_path / "bare.tif", true_classes(), names={})
    assert "bare.tif: no tag CLASS_<value>" in refusal(scene)
    scene.raster = write_truth(tmp_path / "empty.tif", np.zeros_like(true_classes()))
    assert "empty.tif: no pixel to score" in refusal(scene)


def test_labels_of_another_scene_are_refused(scene):
    role, known = role_and_known()
    labels.write(scene.labels, KnownClasses(NAMES, known), [False, False, True], role, scene="other")
    assert "labels of scene 'other' do not belong to the cube" in refusal(scene)
    labels.write(scene.labels, KnownClasses(NAMES, known[1:]), [False, False, True], role[1:], scene="s")
    assert "give both of one scene" in refusal(scene)


def test_a_truth_store_of_another_kind_is_refused(scene):
    with pytest.raises(GibbsiteError, match="found a store of kind 'labels'"):
        truth.read(scene.labels)
    assert store.read(scene.labels, "labels").attrs["scene"] == "s"

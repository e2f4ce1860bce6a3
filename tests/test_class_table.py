"""The table of classes, and what is known of them beside the map."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from gibbsite import class_table, zones
from gibbsite.errors import InputError
from gibbsite.scene import Grid
from handmade_results import map_grid

CLASSES = [
    {"code": 1, "name": "olivine", "is_known": True, "colour": "#102030", "n_components": 2},
    {"code": 2, "name": 'a, "b"\nc', "is_known": True, "colour": "#203040", "n_components": 1},
    {"code": 3, "name": "new-1", "is_known": False, "colour": "#ff0088", "n_components": 5},
]
CODE = np.array([[1, 1, 1, 0], [1, 3, 1, 1], [1, 1, 1, 1]], np.uint16)
MEANING = [
    {
        "code": 3,
        "suspected_artefact": True,
        "artefact_reasons": ["only a band at 2.1 µm", "2 detector columns"],
        "suspected_mixture": True,
        "mixture": [{"name": "olivine", "share": 0.6123}, {"name": "jarosite", "share": 0.3877}],
        "apart": 0.4567,
        "nearest_known": "olivine",
        "matches": [{"name": "jarosite", "score": 0.98765}, {"name": "alunite", "score": 0.5}],
    },
    {"code": 1, "suspected_artefact": False, "artefact_reasons": [], "nearest_known": None, "matches": []},
]


def table(meaning: class_table.Interpretation, grid: Grid | None = None) -> dict[str, dict[str, str]]:
    grid = grid or map_grid(3, 4)
    sieved = np.where(CODE == 3, 1, CODE).astype(np.uint16)
    probability = np.where(CODE > 0, 0.5 + 0.1 * CODE, np.nan)
    sizes = zones.measure(CODE, probability, grid, 4)
    n_specks = class_table.count_specks(CODE, sieved, 4)
    text = class_table.as_csv(CLASSES, sizes, np.array([0, 1, 0, 0]), n_specks, meaning)
    return {row["code"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def test_sizes_are_those_of_the_map_before_specks_are_merged() -> None:
    found = table({})
    assert [row["n_pixels"] for row in found.values()] == ["10", "0", "1"]
    assert [row["share"] for row in found.values()] == ["0.909091", "0.000000", "0.090909"]
    assert [row["mean_probability"] for row in found.values()] == ["0.6000", "", "0.8000"]
    assert [row["n_polygons"] for row in found.values()] == ["1", "0", "0"]
    assert [row["n_speck_pixels"] for row in found.values()] == ["0", "0", "1"]
    assert [row["n_components"] for row in found.values()] == ["2", "1", "5"]
    areas = [float(row["area_m2"]) for row in found.values()]
    assert areas[0] == pytest.approx(10 * areas[2], rel=1e-3)
    assert 310 < areas[2] < 324, "on the sphere, not on the map"


def test_names_come_back_as_they_were() -> None:
    assert table({})["2"]["name"] == 'a, "b"\nc'


def test_a_scene_that_lies_nowhere_has_no_areas() -> None:
    assert [row["area_m2"] for row in table({}, Grid(3, 4)).values()] == ["", "0.0", ""]


def test_interpretation_fills_its_columns_and_leaves_the_others_empty(tmp_path: Path) -> None:
    path = tmp_path / "interpretation.json"
    path.write_text(json.dumps(MEANING), encoding="utf-8")
    found = table(class_table.read_interpretation(path, CLASSES))
    columns = (
        *("nearest_known", "suspected_artefact", "artefact_reasons"),
        *("suspected_mixture", "mixture", "apart", "best_match", "match_score"),
    )
    assert [found["3"][name] for name in columns] == [
        *("olivine", "true", "only a band at 2.1 µm; 2 detector columns"),
        *("true", "0.61 olivine + 0.39 jarosite", "0.46", "jarosite", "0.9877"),
    ]
    assert [found["1"][name] for name in columns] == ["", "false", "", "", "", "", "", ""]
    assert [found["2"][name] for name in columns] == [""] * 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not an interpretation"),
        ("[1]", "not an interpretation"),
        ('[{"name": "x"}]', "not an interpretation"),
        ('[{"code": 9}]', "speaks of class 9, which the model does not have"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "interpretation.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        class_table.read_interpretation(path, CLASSES)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the interpretation"):
        class_table.read_interpretation(tmp_path / "absent.json", CLASSES)

"""Scores against truth: a hand-worked example, naive twins, sklearn, and each wrong input with one line."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import oracles
import strategies
from gibbsite import evaluate, raster, store, truth
from gibbsite.errors import GibbsiteError
from gibbsite.scene import Grid
from gibbsite.settings import Settings
from gibbsite.steps import evaluate as evaluate_step
from gibbsite.truth import HELD_OUT, RASTER, Truth

CLASSES = [
    {"code": 1, "name": "alunite", "is_known": True, "colour": "#aa0000"},
    {"code": 2, "name": "olivine", "is_known": True, "colour": "#00aa00"},
    {"code": 3, "name": "new-1", "is_known": False, "colour": "#0000aa"},
    {"code": 4, "name": "new-2", "is_known": False, "colour": "#00aaaa"},
]
HAND_MADE = np.array(
    [
        # alunite, olivine, new-1, new-2
        [30, 5, 0, 5],  # alunite (observed)
        [10, 50, 0, 0],  # olivine (observed)
        [2, 70, 20, 8],  # kieserite (never shown): most of it is called olivine, which must not count
        [0, 4, 0, 0],  # gypsum (never shown): no discovered class has any of it
    ]
)
GRID = Grid(31, 7)


# The maths


def test_mean_f1_of_a_hand_worked_example():
    is_known = np.array([True, True, False, False])
    column = evaluate.column_of_truth(
        ["alunite", "olivine", "kieserite", "gypsum"], [item["name"] for item in CLASSES], is_known.tolist()
    )
    assert column.tolist() == [0, 1, -1, -1]
    scores = evaluate.class_scores(HAND_MADE, column, is_known)
    expected = [2 * 30 / (42 + 40), 2 * 50 / (129 + 60), 2 * 20 / (20 + 100), 0.0]
    np.testing.assert_allclose(scores.f1, expected)
    assert scores.mean == pytest.approx(sum(expected) / 4)
    assert scores.matched.tolist() == [0, 1, 2, -1]


def test_a_known_class_never_stands_for_an_unobserved_one():
    counts = np.array([[90, 1]])
    scores = evaluate.class_scores(counts, np.array([-1]), np.array([True, False]))
    assert scores.f1[0] == pytest.approx(2 / (1 + 91))


def test_a_discovered_class_never_stands_for_an_observed_one():
    counts = np.array([[1, 90]])
    scores = evaluate.class_scores(counts, np.array([0]), np.array([True, False]))
    assert scores.f1[0] == pytest.approx(2 / (1 + 91))


def test_names_match_without_regard_to_case_and_blanks_but_only_known_ones():
    column = evaluate.column_of_truth(["Fe  Olivine", "new-1"], ["new-1", "fe olivine "], [False, True])
    assert column.tolist() == [1, -1]


@given(strategies.confusion(), st.randoms(use_true_random=False))
def test_scores_equal_those_of_the_naive_loop(counts, random):
    n_truth, n_predicted = counts.shape
    n_known = random.randint(0, min(n_truth, n_predicted))
    is_known = [index < n_known for index in range(n_predicted)]
    column = [index if index < n_known else -1 for index in range(n_truth)]
    found = evaluate.class_scores(counts, np.array(column), np.array(is_known))
    np.testing.assert_array_equal(found.f1, oracles.class_scores(counts, column, is_known))
    scored = found.f1[counts.sum(axis=1) > 0]
    assert ((scored >= 0) & (scored <= 1)).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=80))
def test_confusion_equals_counting_one_by_one_and_adds_up_over_scenes(pairs):
    truth, predicted = np.array(pairs, dtype=np.uint8).reshape(-1, 2).T
    whole = evaluate.confusion(truth, predicted, (4, 7))
    assert (whole == oracles.confusion(truth, predicted, (4, 7))).all()
    half = len(pairs) // 3
    parts = evaluate.confusion(truth[:half], predicted[:half], (4, 7)) + evaluate.confusion(
        truth[half:], predicted[half:], (4, 7)
    )
    assert (whole == parts).all(), "confusion of two scenes != sum of theirs"


@given(strategies.confusion())
def test_rand_index_and_mutual_information_equal_those_of_sklearn(counts):
    row, column = np.indices(counts.shape)
    truth, predicted = np.repeat(row.ravel(), counts.ravel()), np.repeat(column.ravel(), counts.ravel())
    np.testing.assert_allclose(evaluate.adjusted_rand_index(counts), adjusted_rand_score(truth, predicted), atol=1e-12)
    np.testing.assert_allclose(
        evaluate.normalised_mutual_information(counts),
        normalized_mutual_info_score(truth, predicted),
        atol=1e-9,
    )


def test_rand_index_holds_for_more_pairs_than_int64_products_can():
    counts = np.diag([3_000_000_000, 2_000_000_000, 5])
    assert evaluate.adjusted_rand_index(counts) == pytest.approx(1.0)


# The step


def write_inputs(folder: Path, code: np.ndarray, known: np.ndarray, scene: str = "s", source: str = RASTER) -> dict:
    """Map, truth and model on disk; the paths by flag."""
    folder.mkdir(exist_ok=True)
    paths = {"maps": folder / f"{scene}_class.tif", "truths": folder / f"{scene}.zarr"}
    raster.write_class_map(paths["maps"], Grid(*code.shape), CLASSES, [(0, code)])
    files = ({"name": f"{scene}.tif", "sha256": "ab" * 32, "bytes": 7},) if source == RASTER else ()
    truth.write(paths["truths"], Truth(scene, source, ("alunite", "gypsum", "kieserite", "olivine"), known, files))
    if not (folder / "model.zarr").exists():
        with store.create(folder / "model.zarr", "model", classes=CLASSES):
            pass
    return paths


def run(folder: Path, *scenes: dict) -> dict:
    flags = {name: [scene[name] for scene in scenes] for name in ("maps", "truths")}
    out = folder / "evaluation.json"
    evaluate_step.run(argparse.Namespace(**flags, model=folder / "model.zarr", out=out), Settings())
    return json.loads(out.read_text())


def hand_made_scene(seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Map and truth that give HAND_MADE, in a lopsided scene padded with pixels that must not count."""
    row_of = [0, 3, 2, 1]  # alunite, olivine, kieserite, gypsum among the sorted names
    cells = [
        (row_of[row], column + 1) for row, column in np.ndindex(HAND_MADE.shape) for _ in range(HAND_MADE[row, column])
    ]
    n_pixels = GRID.height * GRID.width
    padding = [(-1, 3), (3, 0)]  # not scored; not mapped
    rows = cells + [padding[index % 2] for index in range(n_pixels - len(cells))]
    order = np.random.Generator(np.random.Philox(key=seed)).permutation(n_pixels)
    known, code = np.array(rows)[order].T.reshape(2, GRID.height, GRID.width)
    return code.astype(np.uint16), known.astype(np.int16)


def test_step_scores_pixels_with_a_truth_and_a_mapped_class(tmp_path):
    found = run(tmp_path, write_inputs(tmp_path, *hand_made_scene()))
    by_name = {item["name"]: item for item in found["classes"]}
    assert found["truth_names"] == ["alunite", "gypsum", "kieserite", "olivine"]
    assert found["predicted_names"] == ["alunite", "olivine", "new-1", "new-2"]
    assert found["confusion"] == HAND_MADE[[0, 3, 2, 1]].tolist()
    assert found["n_pixels"] == HAND_MADE.sum()
    assert by_name["kieserite"] == {
        "name": "kieserite",
        "is_observed": False,
        "f1": pytest.approx(1 / 3),
        "n_pixels": 100,
        "matched": "new-1",
    }
    assert by_name["gypsum"]["matched"] is None
    assert by_name["olivine"]["is_observed"]
    assert found["mean_f1"] == pytest.approx((60 / 82 + 100 / 189 + 1 / 3) / 4)
    assert 0 < found["ari"] < 1
    assert 0 < found["nmi"] < 1


def test_two_scenes_are_scored_as_one_and_the_source_of_each_is_told(tmp_path):
    first = write_inputs(tmp_path, *hand_made_scene(), scene="a")
    second = write_inputs(tmp_path, *hand_made_scene(seed=9), scene="b", source=HELD_OUT)
    found = run(tmp_path, first, second)
    assert found["confusion"] == (2 * HAND_MADE[[0, 3, 2, 1]]).tolist()
    files = [{"name": "a.tif", "sha256": "ab" * 32, "bytes": 7}]
    assert found["scored"] == [
        {"scene": "a", "source": "truth raster", "n_pixels": int(HAND_MADE.sum()), "files": files},
        {"scene": "b", "source": "held-out labels", "n_pixels": int(HAND_MADE.sum()), "files": []},
    ]


def test_a_scene_without_anything_held_out_adds_nothing(tmp_path):
    first = write_inputs(tmp_path, *hand_made_scene(), scene="a")
    code, known = hand_made_scene()
    second = write_inputs(tmp_path, code, np.full_like(known, -1), scene="b", source=HELD_OUT)
    assert run(tmp_path, first, second)["confusion"] == run(tmp_path, first)["confusion"]
    nothing = run(tmp_path, second)
    assert nothing["n_pixels"] == 0
    assert nothing["mean_f1"] is nothing["ari"] is nothing["nmi"] is None
    assert nothing["classes"] == nothing["truth_names"] == []


def test_truth_classes_without_a_scored_pixel_do_not_count(tmp_path):
    code, known = hand_made_scene()
    known[known == 1] = -1
    found = run(tmp_path, write_inputs(tmp_path, code, known))
    assert found["truth_names"] == ["alunite", "kieserite", "olivine"]
    assert found["mean_f1"] == pytest.approx((60 / 82 + 100 / 185 + 1 / 3) / 3)


def refusal(folder: Path, *scenes: dict) -> str:
    with pytest.raises(GibbsiteError) as caught:
        run(folder, *scenes)
    assert not (folder / "evaluation.json").exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_truth_of_other_shape_is_refused(tmp_path):
    code, known = hand_made_scene()
    message = refusal(tmp_path, write_inputs(tmp_path, code, np.ascontiguousarray(known.T)))
    assert "s_class.tif: 31 × 7 pixels stand beside the truth of scene 's' with 7 × 31" in message


def test_truth_of_another_scene_is_refused(tmp_path):
    first = write_inputs(tmp_path, *hand_made_scene(), scene="a")
    second = write_inputs(tmp_path, *hand_made_scene(), scene="b")
    assert "stand beside the truth of scene 'b'" in refusal(tmp_path, first | {"truths": second["truths"]})


def test_unequal_numbers_of_files_are_refused(tmp_path):
    paths = write_inputs(tmp_path, *hand_made_scene())
    flags = argparse.Namespace(
        maps=[paths["maps"]] * 2, truths=[paths["truths"]], model=tmp_path / "model.zarr", out=tmp_path / "out.json"
    )
    with pytest.raises(GibbsiteError, match="found 2 --maps and 1 --truths"):
        evaluate_step.run(flags, Settings())


def test_a_map_of_another_model_is_refused(tmp_path):
    code, known = hand_made_scene()
    code[code == 2] = 9
    assert "value 9 belongs to no class; expected 1, 2, 3, 4" in refusal(tmp_path, write_inputs(tmp_path, code, known))


def test_missing_files_are_refused(tmp_path):
    paths = write_inputs(tmp_path, *hand_made_scene())
    assert "nowhere.tif: no such file" in refusal(tmp_path, paths | {"maps": tmp_path / "nowhere.tif"})
    assert "no such truth store" in refusal(tmp_path, paths | {"truths": tmp_path / "nowhere.zarr"})

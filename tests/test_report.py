"""The report: one page, self-contained, the same bytes for the same run."""

import argparse
import base64
import gzip
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gibbsite import store
from gibbsite.errors import InputError
from gibbsite.report import map_view
from gibbsite.settings import Fit, Report, Settings
from gibbsite.steps import report as step
from gibbsite.steps import spectra as spectra_step
from handmade_results import NAMES, Results, make_results, map_grid, sensor_grid

SETTINGS = Settings(report=Report(title='Crater "<b>" & rim'), fit=Fit(sweeps=61))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    made = make_results(tmp_path_factory.mktemp("results"))
    spectra_step.run(
        argparse.Namespace(
            cubes=[made.cube(scene) for scene in made.scenes],
            maps=[made.layer(scene, "class") for scene in made.scenes],
            model=made.model,
            out_dir=made.folder,
        ),
        Settings(),
    )
    truth = [*NAMES[:4], "alunite"]
    counts = (np.arange(30).reshape(5, 6) + 200 * np.eye(5, 6, dtype=int)).tolist()
    scores = [
        {
            "name": name,
            "is_observed": k < 4,
            "f1": 0.9 - 0.1 * k,
            "n_pixels": sum(counts[k]),
            "matched": NAMES[k],
        }
        for k, name in enumerate(truth)
    ]
    names = {"truth_names": truth, "predicted_names": list(NAMES)}
    whole = {
        "mean_f1": 0.7,
        "classes": scores,
        "confusion": counts,
        "ari": 0.61,
        "nmi": 0.52,
        "n_pixels": 1435,
    }
    store.write_json(made.folder / "evaluation.json", whole | names)
    return made


@pytest.fixture(scope="module")
def page(results: Results, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    step.run(arguments(results, out), SETTINGS)
    return out.read_text(encoding="utf-8")


def arguments(results: Results, out: Path) -> argparse.Namespace:
    return argparse.Namespace(
        model=results.model,
        chains=results.chains,
        cubes=[results.cube(scene) for scene in results.scenes],
        maps=[results.layer(scene, "class") for scene in results.scenes],
        spectra=results.folder / "spectra.csv",
        evaluation=results.folder / "evaluation.json",
        out=out,
    )


class Tags(HTMLParser):
    """All tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data


def document(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def objects(value: Any) -> list[dict[str, Any]]:
    """All bokeh objects in a document."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) and value.get("type") == "object" else []
    return own + [found for part in inside for found in objects(part)]


def test_the_page_loads_nothing(page: str) -> None:
    for tag, attributes in Tags(page).tags:
        for name in ("src", "href", "data", "srcset", "poster", "action"):
            address = attributes.get(name)
            assert address is None or address.startswith(("#", "data:")), f"<{tag} {name}={address}>"
    policy = next(a["content"] for t, a in Tags(page).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_the_page_names_discovered_classes_and_the_mean_f1(page: str) -> None:
    text = " ".join(Tags(page).text.split())
    assert "4 known classes were classified and 2 classes nobody labelled were discovered" in text
    assert "new-1" in text[: text.index("Map and spectra")]
    assert "mean F1 is 0.700" in text
    assert "Stands for alunite, which nobody labelled: F1 0.500" in text


def test_odd_names_and_titles_are_shown_as_they_are(page: str) -> None:
    tags = Tags(page)
    assert 'bassanite <hydrated & "dry">' in tags.text
    assert 'Crater "<b>" & rim' in tags.text
    assert not [tag for tag, _ in tags.tags if tag == "hydrated"]


def test_provenance_settings_and_rerun_are_on_the_page(page: str) -> None:
    text = Tags(page).text
    for fact in (
        "FRT0000AAAA_07_IF168J_MTR3",
        f"{1:064x}",
        "3.75 Hz",
        '"sweeps": 61',
        "snakemake --cores",
        "numpy",
    ):
        assert fact in text


def test_pictures_are_labelled_and_tables_have_headers(page: str) -> None:
    tags = Tags(page).tags
    assert all(attributes.get("aria-label") for _, attributes in tags if attributes.get("role") == "img")
    n_tables = sum(tag == "table" for tag, _ in tags)
    assert n_tables == sum(tag == "thead" for tag, _ in tags) > 3
    assert all(attributes.get("scope") for tag, attributes in tags if tag == "th")
    assert ("html", {"lang": "en"}) in tags


def test_every_figure_has_its_place_on_the_page(page: str) -> None:
    places = [attributes.get("id") for _, attributes in Tags(page).tags]
    item = document(page)["items"][0]
    assert set(item["roots"].values()) <= set(places)
    assert len(item["roots"]) == 2 + 2 + 3
    roots = document(page)["docs"]["report"]["roots"]
    assert [root["id"] for root in roots] == item["root_ids"]


def test_the_map_on_the_page_is_the_map(results: Results, page: str) -> None:
    images = [
        found["attributes"]["data"]["entries"]
        for found in objects(document(page))
        if found["name"] == "ColumnDataSource" and found["attributes"]["data"]["entries"][0][0] == "code"
    ]
    assert len(images) == 2
    for scene, columns in zip(results.scenes, images, strict=True):
        packed = columns[0][1][0]
        values = gzip.decompress(base64.b64decode(packed["array"]["data"]))
        code = np.frombuffer(values, packed["dtype"]).reshape(packed["shape"])
        # On a map bokeh counts rows from the south, in sensor space from the first line.
        expected = results.code[scene][::-1] if scene == results.scenes[0] else results.code[scene]
        assert_array_equal(code, expected)


def test_a_rerun_gives_the_same_bytes_in_this_and_in_a_fresh_process(
    results: Results, page: str, tmp_path: Path
) -> None:
    args = arguments(results, tmp_path / "again.html")
    step.run(args, SETTINGS)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    words = ["--model", args.model, "--chains", *args.chains, "--cubes", *args.cubes, "--maps", *args.maps]
    words += ["--spectra", args.spectra, "--evaluation", args.evaluation, "--out", tmp_path / "fresh.html"]
    words += ["--settings", SETTINGS.model_dump_json()]
    command = [sys.executable, "-m", "gibbsite.cli", "report", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "fresh.html").read_text(encoding="utf-8") == page


def test_a_page_without_truth_has_no_scores(results: Results, tmp_path: Path) -> None:
    args = arguments(results, tmp_path / "report.html")
    args.evaluation = None
    step.run(args, Settings())
    text = Tags((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert not re.search(r"\bF1\b", text)
    assert "Known and new classes" in text


def test_a_page_without_discoveries_says_so(results: Results, tmp_path: Path) -> None:
    known = [dict(item, is_known=True) for item in results.classes]
    with store.create(tmp_path / "model.zarr", "model", classes=known):
        pass
    args = arguments(results, tmp_path / "report.html")
    args.model = tmp_path / "model.zarr"
    step.run(args, Settings())
    text = " ".join(Tags((tmp_path / "report.html").read_text(encoding="utf-8")).text.split())
    assert "no new class was discovered" in text
    assert "Only new classes" not in text


def test_strange_scores_and_maps_in_the_wrong_order_are_refused(results: Results, tmp_path: Path) -> None:
    args = arguments(results, tmp_path / "report.html")
    args.maps = args.maps[::-1]
    with pytest.raises(InputError, match="give cubes and maps in the same order"):
        step.run(args, Settings())
    args = arguments(results, tmp_path / "report.html")
    args.evaluation = tmp_path / "scores.json"
    args.evaluation.write_text('{"mean_f1": 0.5}')
    with pytest.raises(InputError, match="the scores lack ari, classes"):
        step.run(args, Settings())
    assert not args.out.exists()


def test_a_large_map_is_decimated_by_the_smallest_factor_that_fits() -> None:
    code = np.arange(90 * 70, dtype=np.uint16).reshape(90, 70)
    view = map_view("S", code, np.full(code.shape, 0.5), map_grid(90, 70), max_pixels=720)
    assert view.factor == 3
    assert view.code.shape == (30, 24)
    assert_array_equal(view.code[:3, :2], code[1:10:3, 1:7:3])
    assert view.extent == (4_211.0, 4_211.0 + 18 * 72, -1_250_077.0 - 18 * 90, -1_250_077.0)
    assert (view.percent == 50).all()


def test_a_map_in_sensor_space_is_shown_with_its_first_line_on_top() -> None:
    code = np.ones((9, 4), np.uint16)
    view = map_view("S", code, np.full(code.shape, np.nan), sensor_grid(9, 4))
    assert (view.extent, view.is_map, view.factor) == ((0.0, 4.0, 9.0, 0.0), False, 1)
    assert view.code.dtype == np.uint8
    assert (view.percent == 0).all()

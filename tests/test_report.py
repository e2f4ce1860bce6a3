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
from bokeh.models import HoverTool, Text
from numpy.testing import assert_array_equal

from command_line import ROOT
from gibbsite import figures, interactive, pages, report, store
from gibbsite.errors import InputError
from gibbsite.palette import class_colours
from gibbsite.report import map_view
from gibbsite.settings import Fit, Report, Settings, Spectra
from gibbsite.spectra import ClassSpectra, Statistics
from gibbsite.steps import interpret as interpret_step
from gibbsite.steps import report as step
from gibbsite.steps import spectra as spectra_step
from gibbsite.truth import HELD_OUT, RASTER
from handmade_results import DIAGNOSTICS, NAMES, Results, make_results, map_grid, sensor_grid

TRUTH_FILE = {"name": "true & tried.tif", "sha256": "7e" * 32, "bytes": 4_321}
LABEL_FILE = {"name": "drawn.gpkg", "sha256": "1a" * 32, "bytes": 98_304}
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
    interpret_step.run(
        argparse.Namespace(
            cubes=[made.cube(scene) for scene in made.scenes],
            maps=[made.layer(scene, "class") for scene in made.scenes],
            model=made.model,
            spectra=made.folder / "spectra.csv",
            features=[],
            out=made.folder / "interpretation.json",
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
        "scored": [
            {"scene": made.scenes[0], "source": RASTER, "n_pixels": 1200, "files": [TRUTH_FILE]},
            {"scene": made.scenes[1], "source": HELD_OUT, "n_pixels": 235, "files": []},
        ],
    }
    for scene in made.scenes:
        with store.create(made.folder / "labels" / f"{scene}.zarr", "labels", scene=scene, files=[LABEL_FILE]):
            pass
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
        labels=[results.folder / "labels" / f"{scene}.zarr" for scene in results.scenes],
        spectra=results.folder / "spectra.csv",
        interpretation=results.folder / "interpretation.json",
        evaluation=results.folder / "evaluation.json",
        quick_looks=[],
        figures=None,
        timings=[],
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


def test_it_tells_how_far_the_chains_can_be_trusted(page: str) -> None:
    section = page[page.index('id="diagnostics-title"') : page.index('id="provenance-title"')]
    text = " ".join(re.sub(r"<[^>]+>", " ", section).split())
    assert "Mind: chains draw &lt;different&gt; maps." in text
    assert "Log joint 1.37 12 Number of classes – – Number of components 1.00 88" in text
    assert "1 and 2 0.61 98.8 %" in text
    assert "split 1 234 56 class merge 7 0" in text
    assert "class split" not in text, "a move that was never proposed is of no use to a reader"


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
    assert "Stands for alunite, which the model was never shown: F1 0.500" in text


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
        "numpy",
    ):
        assert fact in text


def test_the_command_to_run_it_again_is_that_of_the_readme(page: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (snakemake .*--configfile settings\.json)$", readme, re.MULTILINE)
    assert f"<pre>{command}</pre>" in page


def test_every_input_file_is_on_the_page_with_its_use_and_hash(page: str) -> None:
    row = '<td>{}</td><th scope="row">{}<br><span class="hash">{}</span>'
    assert row.format("truth", "true &amp; tried.tif", TRUTH_FILE["sha256"]) in page
    assert page.count(row.format("labels", "drawn.gpkg", LABEL_FILE["sha256"])) == 2, "both scenes have this file"
    assert row.format("cube", "frt0000bbbb.img", f"{1:064x}") in page


def test_the_page_says_what_was_scored(page: str, results: Results, tmp_path: Path) -> None:
    text = " ".join(Tags(page).text.split())
    assert "Against the truth the mean F1 is 0.700" in text
    assert (
        "Scored on 1 435 pixels that the model was not shown: 1 200 of frt0000aaaa from the truth raster "
        "true & tried.tif; 235 of frt0000bbbb from the held-out labels."
    ) in text
    assert "easier than the rest of the scene" in text
    args = arguments(results, tmp_path / "report.html")
    scores = json.loads(args.evaluation.read_text())
    args.evaluation = tmp_path / "evaluation.json"
    store.write_json(args.evaluation, scores | {"scored": scores["scored"][1:]})
    step.run(args, SETTINGS)
    assert "On held-out labels the mean F1 is" in " ".join(Tags(args.out.read_text(encoding="utf-8")).text.split())


def test_pictures_are_labelled_and_tables_have_headers(page: str) -> None:
    tags = Tags(page).tags
    assert all(attributes.get("aria-label") for _, attributes in tags if attributes.get("role") == "img")
    n_tables = sum(tag == "table" for tag, _ in tags)
    assert n_tables == sum(tag == "thead" for tag, _ in tags) > 3
    assert all(attributes.get("scope") for tag, attributes in tags if tag == "th")
    assert ("html", {"lang": "en"}) in tags


def test_the_page_shows_the_first_scenes_before_and_after_cleaning(
    results: Results, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Cleaning" not in Tags(page).text
    args = arguments(results, tmp_path / "report.html")
    args.quick_looks = [tmp_path / f"{scene}.png" for scene in results.scenes]
    with pytest.raises(InputError, match="run the features step"):
        step.run(args, SETTINGS)
    for path in args.quick_looks:
        path.write_bytes(f"picture of {path.stem}".encode())
    for n_shown in (len(results.scenes), 1):
        monkeypatch.setattr(report, "QUICK_LOOKS", n_shown)
        step.run(args, SETTINGS)
        shown = Tags(args.out.read_text(encoding="utf-8"))
        pictures = [attributes for tag, attributes in shown.tags if tag == "img"]
        assert [some["src"] for some in pictures] == [pages.picture(path) for path in args.quick_looks[:n_shown]]
        assert all(scene in str(some["alt"]) for some, scene in zip(pictures, results.scenes, strict=False))
        assert ("the others are in" in shown.text) == (n_shown == 1)
    args.quick_looks.pop()
    with pytest.raises(InputError, match="give one per scene"):
        step.run(args, SETTINGS)


def test_every_figure_has_its_place_on_the_page(page: str) -> None:
    places = [attributes.get("id") for _, attributes in Tags(page).tags]
    item = document(page)["items"][0]
    assert set(item["roots"].values()) <= set(places)
    assert len(item["roots"]) == 2 + 3 + 3
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
    words += [
        "--labels",
        *args.labels,
        "--spectra",
        args.spectra,
        "--interpretation",
        args.interpretation,
        "--evaluation",
        args.evaluation,
        "--out",
        tmp_path / "fresh.html",
    ]
    words += ["--settings", SETTINGS.model_dump_json()]
    command = [sys.executable, "-m", "gibbsite.cli", "report", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "fresh.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_page_without_truth_has_no_scores(results: Results, tmp_path: Path, is_empty: bool) -> None:
    args = arguments(results, tmp_path / "report.html")
    nothing = {"n_pixels": 0, "mean_f1": None, "classes": [], "confusion": [], "truth_names": [], "scored": []}
    scores = json.loads(args.evaluation.read_text()) | nothing
    args.evaluation = tmp_path / "evaluation.json" if is_empty else None
    store.write_json(tmp_path / "evaluation.json", scores)
    step.run(args, Settings())
    text = Tags((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert not re.search(r"\bF1\b", text)
    assert "Known and new classes" in text


def test_a_page_without_discoveries_says_so(results: Results, tmp_path: Path) -> None:
    known = [dict(item, is_known=True) for item in results.classes]
    with store.create(tmp_path / "model.zarr", "model", classes=known, diagnostics=DIAGNOSTICS):
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


def test_of_many_discovered_classes_only_the_largest_are_named_in_the_graphs() -> None:
    names = [*(f"known {k}" for k in range(3)), *(f"new-{k}" for k in range(1, 26))]
    colours = class_colours(3, 25)
    classes = [
        {"code": k + 1, "name": name, "is_known": k < 3, "colour": colours[k], "n_pixels": 100 - k, "n_components": 1}
        for k, name in enumerate(names)
    ]
    figures = interactive.spectra_figures(spectra_of(28), classes)
    for plot in (figures["mean"], figures["ratio"]):
        (names,) = [item.data_source.data for item in plot.renderers if isinstance(item.glyph, Text)]
        assert names["text"] == [f"new-{k}" for k in range(1, 9)]
        low, high = plot.y_range.start, plot.y_range.end
        apart = np.diff(np.sort(names["y"])) / (high - low)
        # 12 pixels of type in a graph of about 230.
        assert apart.min() > 12 / 230
        assert low < min(names["y"]) < max(names["y"]) < high


def spectra_of(n_classes: int) -> ClassSpectra:
    """Smooth spectra that hardly differ."""
    mean = 0.2 + 1e-4 * np.arange(n_classes)[:, None] + 0.1 * np.linspace(0, 1, 40) ** 2
    found = Statistics(mean, np.full_like(mean, 0.01), mean - 0.01, mean + 0.01, mean / mean.max())
    return ClassSpectra(np.linspace(1.0, 2.6, 40), np.full(mean.shape, 9), found, found)


def test_three_hundred_classes_are_as_few_glyphs_as_three() -> None:
    n_models = []
    for n in (3, 300):
        colours = class_colours(0, n)
        classes = [{"code": k + 1, "name": f"new-{k}", "is_known": False, "colour": colours[k]} for k in range(n)]
        text = interactive.document_json(interactive.spectra_figures(spectra_of(n), classes))
        n_models.append(len(objects(json.loads(text))))
    assert n_models[0] == n_models[1], "a page slows down with its models, not with its numbers"


def text_of_page(results: Results, folder: Path, meaning: list[dict[str, Any]]) -> str:
    """What a reader sees of the page that is made in the folder with this interpretation."""
    args = arguments(results, folder / "report.html")
    args.interpretation = folder / "interpretation.json"
    store.write_json(args.interpretation, meaning)
    step.run(args, Settings())
    return " ".join(Tags(args.out.read_text(encoding="utf-8")).text.split())


def test_a_suspected_artefact_is_told_on_its_card_with_the_reasons(results: Results, tmp_path: Path) -> None:
    meaning = json.loads((results.folder / "interpretation.json").read_text(encoding="utf-8"))
    meaning[4] |= {"suspected_artefact": True, "artefact_reasons": ["it lies in <one> column", "it is narrow"]}
    text = text_of_page(results, tmp_path, meaning)
    assert "Suspected artefact. It lies in <one> column. It is narrow." in text
    assert "1 discovered class is a suspected artefact of the instrument." in text
    assert text.count("artefact?") == 1
    assert meaning[4]["matches"][0]["name"] in text


def test_mixtures_are_told_on_their_cards_and_named_last(results: Results, tmp_path: Path) -> None:
    meaning = json.loads((results.folder / "interpretation.json").read_text(encoding="utf-8"))
    new = [item for item in meaning if not item["is_known"]]
    between = [{"name": "<olivine>", "share": 0.625}, {"name": "talc", "share": 0.375}]
    new[0] |= {"suspected_mixture": True, "mixture": between, "apart": 0.34}
    new[1] |= {"suspected_mixture": False, "mixture": between[:1], "apart": 2.71}
    text = text_of_page(results, tmp_path, meaning)
    assert "May be a mixture: 62 % <olivine> + 38 % talc (0.3 standard deviations off)." in text
    assert "No mixture of known or larger classes comes near: the nearest is 2.7 standard deviations off." in text
    assert "1 of them may be a mixture or a part of other classes." in text
    assert text.count("mixed?") == 1
    assert "Only new classes that are no mixtures" in text
    named = text[text.index("discovered") :]
    assert named.index(new[1]["name"]) < named.index(new[0]["name"])


def test_figures_of_hundreds_of_classes_stay_within_a_page_and_name_the_largest() -> None:
    colours = class_colours(0, 300)
    classes = [{"code": k, "name": f"new-{k}", "is_known": False, "colour": colours[k - 1]} for k in range(1, 301)]
    code = np.repeat(np.arange(1, 301), np.arange(1, 301))[:45_000].reshape(150, 300).astype(np.uint16)
    chart = figures._map(map_view("S", code, np.full(code.shape, 0.5), map_grid(150, 300)), classes)
    legend = chart.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [f"new-{k}" for k in range(220, 300)]
    assert legend.get_title().get_text() == "the largest 80 of 300 classes"
    names = [item["name"] for item in classes]
    scores = {"confusion": np.eye(300, dtype=int).tolist(), "truth_names": names, "predicted_names": names}
    assert max(figures._confusion(scores).get_size_inches()) <= 30.0


def test_figures_for_a_paper_are_the_same_bytes_again(results: Results, tmp_path: Path) -> None:
    args = arguments(results, tmp_path / "report.html")
    found = []
    for name in ("one", "two"):
        args.figures = tmp_path / name
        step.run(args, Settings())
        found.append({path.name: path.read_bytes() for path in args.figures.iterdir()})
    names = ("confusion", "map_frt0000aaaa", "map_frt0000bbbb", "traces")
    assert sorted(found[0]) == sorted(f"{name}.{kind}" for name in names for kind in ("pdf", "png"))
    assert found[0] == found[1]


def test_interpretations_of_other_classes_are_refused(results: Results, tmp_path: Path) -> None:
    args = arguments(results, tmp_path / "report.html")
    args.interpretation = tmp_path / "other.json"
    args.interpretation.write_text('[{"code": 1}]')
    with pytest.raises(InputError, match="not an interpretation of this model's classes"):
        step.run(args, Settings())
    assert not args.out.exists()


def test_the_scale_bar_stands_below_the_map_and_covers_no_pixel() -> None:
    code = np.ones((40, 90), np.uint16)
    view = map_view("S", code, np.full(code.shape, 0.5), map_grid(40, 90))
    plot = interactive.map_figure(0, view, [])
    left, right, bottom, top = view.extent
    per_pixel = (right - left) / 290  # on a phone
    assert (bottom - plot.y_range.start) / per_pixel > 12 + 2 * (2 + 2), "type, padding and margin of the bar"
    assert plot.width / plot.height == pytest.approx((right - left) / (top - plot.y_range.start), rel=0.01)


def test_a_cube_without_bands_in_the_wanted_range_has_no_matches_but_a_page(results: Results, tmp_path: Path) -> None:
    elsewhere = Settings(spectra=Spectra(wavelengths=(3.0, 3.5)))
    args = arguments(results, tmp_path / "report.html")
    scenes = {"cubes": args.cubes, "maps": args.maps, "model": args.model}
    spectra_step.run(argparse.Namespace(**scenes, out_dir=tmp_path), elsewhere)
    args.spectra, args.interpretation = tmp_path / "spectra.csv", tmp_path / "interpretation.json"
    told = {"spectra": args.spectra, "features": [], "out": args.interpretation}
    interpret_step.run(argparse.Namespace(**scenes, **told), elsewhere)
    step.run(args, elsewhere)
    meaning = json.loads(args.interpretation.read_text(encoding="utf-8"))
    assert all(item["matches"] == item["bands"] == [] for item in meaning)
    assert "Most like" not in Tags(args.out.read_text(encoding="utf-8")).text


@pytest.mark.parametrize("is_map", [True, False])
def test_the_pointer_tells_metres_on_a_map_and_pixel_numbers_elsewhere(is_map: bool) -> None:
    code = np.ones((4, 5), np.uint8)
    shown = np.arange(4), np.arange(5)
    view = interactive.MapView("nili", code, 90 * code, (5e5, 5.1e5, 4e6, 4.1e6), is_map, 1, *shown)
    plot = interactive.map_figure(0, view, [{"code": 1, "name": "olivine", "colour": "#123456"}])
    (hover,) = plot.select({"type": HoverTool})
    assert ({"$x", "$y"} & set(hover.formatters)) == (set() if is_map else {"$x", "$y"})
    assert ("m, " in hover.tooltips[2][1]) == is_map

"""The report in a real Chromium: it loads alone, shows the right spectrum, and lights classes on the map."""

import argparse
import base64
import io
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from gibbsite import store
from gibbsite.pixel_spectra import fill
from gibbsite.raster import rgba
from gibbsite.scene import open_cube
from gibbsite.settings import Settings
from gibbsite.spectra_files import read_table
from gibbsite.steps import interpret, report, spectra
from handmade_results import Results, make_results

pytestmark = pytest.mark.browser

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NEW = 5
"""Code of the first discovered class of the hand-made results."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return make_results(tmp_path_factory.mktemp("results"), {"frt0000aaaa": (480, 640)})


@pytest.fixture(scope="module")
def page(results: Results) -> Path:
    scenes = {
        "cubes": [results.cube(scene) for scene in results.scenes],
        "maps": [results.layer(scene, "class") for scene in results.scenes],
        "model": results.model,
    }
    folder = results.folder
    spectra.run(argparse.Namespace(**scenes, out_dir=folder), Settings())
    facts = {"spectra": folder / "spectra.csv", **scenes}
    interpret.run(argparse.Namespace(**facts, features=[], out=folder / "interpretation.json"), Settings())
    meaning = json.loads((folder / "interpretation.json").read_text(encoding="utf-8"))
    # Of the discovered classes all but the first may be mixtures.
    for item in meaning:
        between = item["code"] > NEW
        item |= {"suspected_mixture": between, "mixture": [{"name": "talc", "share": 1.0}] * between, "apart": 0.2}
    store.write_json(folder / "interpretation.json", meaning)
    told = {
        "labels": [],
        "chains": results.chains,
        "evaluation": None,
        "figures": None,
        "timings": [],
        "quick_looks": [],
    }
    told |= {"interpretation": folder / "interpretation.json", "out": folder / "report.html"}
    report.run(argparse.Namespace(**facts, **told), Settings())
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    if not (BROWSER and DRIVER):
        pytest.skip("no chromium with chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(flag)
    options.add_argument("--window-size=1300,2200")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def opened(browser: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    browser.get(page.as_uri())
    wait(browser, "return document.documentElement.dataset.ready === 'true'")
    return browser


def wait(browser: webdriver.Chrome, question: str, seconds: float = 120.0) -> None:
    """Until the page answers yes."""
    end = time.monotonic() + seconds
    while not browser.execute_script(question):
        assert time.monotonic() < end, f"the page never said yes to: {question}"
        time.sleep(0.1)


def data(browser: webdriver.Chrome, name: str) -> dict[str, Any]:
    """The columns of a data source of the page."""
    ask = """
        const columns = Object.entries(Bokeh.documents[0].get_model_by_name(arguments[0]).data)
        return Object.fromEntries(columns.map(([name, values]) => [name, Array.from(values)]))
    """
    return dict(browser.execute_script(ask, name))


def picture_of_map(browser: webdriver.Chrome) -> NDArray[np.int64]:
    """What is seen of the first map, (rows, cols, rgb)."""
    time.sleep(1.0)
    shot = browser.find_element(By.ID, "map-0").screenshot_as_png
    return np.rint(imread(io.BytesIO(shot))[..., :3] * 255).astype(int)


def move_to(browser: webdriver.Chrome, row: int, col: int) -> ActionChains:
    """The pointer on its way to the centre of a pixel of the first map."""
    frame = browser.find_element(By.ID, "map-0")
    view = json.loads(browser.find_element(By.ID, "pixels").get_attribute("textContent") or "")["scenes"][0]
    # The map fills its frame from the top; the strip with the scale bar is below it.
    scale = frame.rect["width"] / len(view["cols"])
    across = (col + 0.5) * scale - frame.rect["width"] / 2
    down = (row + 0.5) * scale - frame.rect["height"] / 2
    return ActionChains(browser).move_to_element_with_offset(frame, round(across), round(down))


def middle_of_class(results: Results, code: int) -> tuple[int, int]:
    """A pixel whose neighbours within 4 pixels are all of this class."""
    mask = results.code["frt0000aaaa"] == code
    rows, cols = np.nonzero(mask)
    for row, col in zip(rows[::7].tolist(), cols[::7].tolist(), strict=True):
        about = mask[row - 4 : row + 5, col - 4 : col + 5]
        if about.shape == (9, 9) and about.all():
            return row, col
    raise AssertionError(f"class {code} is nowhere wide enough")


def test_a_full_scene_is_below_15_mb(page: Path) -> None:
    assert page.stat().st_size < 15e6


def test_it_loads_without_an_error_and_without_any_request(opened: webdriver.Chrome, page: Path) -> None:
    errors = [entry for entry in opened.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert errors == []
    asked = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"]
    outside = [url for url in urls if not url.startswith(("data:", "blob:")) and url != page.as_uri()]
    assert outside == []


def test_pointing_at_a_pixel_shows_its_spectrum_and_its_class_mean(opened: webdriver.Chrome, results: Results) -> None:
    row, col = middle_of_class(results, NEW)
    move_to(opened, row, col).perform()
    wait(opened, "return document.getElementById('readout').textContent.includes('line')")
    told = opened.execute_script("return document.getElementById('readout').textContent")
    assert "new-1" in told
    found = opened.execute_script("return window.gibbsite.chosen")
    assert abs(found["row"] - row) <= 1
    assert abs(found["col"] - col) <= 1
    cube = open_cube(results.cube("frt0000aaaa"))
    good = cube["good_band"].values
    own = fill(cube["reflectance"].values[found["row"], found["col"]][None, good], cube["wavelength"].values[good])[0]
    shown = data(opened, "pixel-mean")
    drawn = np.array([value if value is not None else np.nan for value in shown["y"]], dtype=float)
    wavelength = np.array(shown["x"], dtype=float)[np.isfinite(drawn)]
    assert_allclose(wavelength, cube["wavelength"].values[good], atol=1e-6)
    assert_allclose(drawn[np.isfinite(drawn)], own, atol=0.001)
    assert np.isnan(drawn).sum() == 1, "the gap in the wavelengths stays open"
    mean = np.array(data(opened, "lit-mean")["y"], dtype=float)
    table = read_table(results.folder / "spectra.csv", results.classes)
    assert_allclose(mean[np.isfinite(mean)], table.reflectance.mean[NEW - 1], rtol=1e-5)


def test_a_click_keeps_the_pixel_and_the_keyboard_walks_on(opened: webdriver.Chrome, results: Results) -> None:
    row, col = middle_of_class(results, NEW)
    move_to(opened, row, col).click().perform()
    wait(opened, "return document.getElementById('readout').textContent.endsWith('kept')")
    kept = opened.execute_script("return window.gibbsite.chosen")
    opened.find_element(By.ID, "map-0").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    moved = opened.execute_script("return window.gibbsite.chosen")
    assert (moved["row"] - kept["row"], moved["col"] - kept["col"]) == (2, 1)
    opened.find_element(By.ID, "map-0").send_keys(Keys.ESCAPE)
    assert opened.execute_script("return window.gibbsite.chosen") is None


def test_pressing_a_class_lights_it_on_the_map_and_dims_the_others(opened: webdriver.Chrome, results: Results) -> None:
    opened.execute_script(
        "const o = document.getElementById('opacity'); o.value = 100; o.dispatchEvent(new Event('input'))"
    )
    before = picture_of_map(opened)
    opened.find_element(By.CSS_SELECTOR, f".chip[data-code='{NEW}']").click()
    after = picture_of_map(opened)

    def seen(picture: NDArray[np.int64], code: int) -> int:
        colour = rgba(str(results.classes[code - 1]["colour"]))[:3]
        return int((np.abs(picture - colour).max(axis=-1) <= 2).sum())

    for code in range(1, 7):
        assert seen(before, code) > 500
    assert seen(after, NEW) == pytest.approx(seen(before, NEW), rel=0.05)
    assert all(seen(after, code) < 0.05 * seen(before, code) for code in range(1, 7) if code != NEW)
    assert opened.find_element(By.CSS_SELECTOR, f".chip[data-code='{NEW}']").get_attribute("aria-pressed") == "true"
    opened.find_element(By.CSS_SELECTOR, "[data-show='all']").click()
    assert seen(picture_of_map(opened), 1) == pytest.approx(seen(before, 1), rel=0.05)


def test_new_classes_are_lit_together_and_mixtures_left_out(opened: webdriver.Chrome, results: Results) -> None:
    def lit() -> set[int]:
        chips = opened.find_elements(By.CSS_SELECTOR, ".chip[aria-pressed='true']")
        return {int(str(chip.get_attribute("data-code"))) for chip in chips}

    new = {int(str(item["code"])) for item in results.classes if not item["is_known"]}
    assert len(new) > 1
    for shown, codes in {"new": new, "unmixed": {NEW}, "all": set()}.items():
        opened.find_element(By.CSS_SELECTOR, f"[data-show='{shown}']").click()
        assert lit() == codes


def test_the_opacity_shows_the_composite_behind_the_classes(opened: webdriver.Chrome, results: Results) -> None:
    opened.execute_script(
        "const o = document.getElementById('opacity'); o.value = 0; o.dispatchEvent(new Event('input'))"
    )
    picture = picture_of_map(opened)
    for item in results.classes:
        assert (np.abs(picture - rgba(str(item["colour"]))[:3]).max(axis=-1) <= 2).mean() < 0.02
    assert picture[200:400, 200:400].std() > 5, "the composite has contrast"


def test_on_a_phone_nothing_is_wider_than_the_screen_and_names_are_whole(opened: webdriver.Chrome, page: Path) -> None:
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        opened.get(page.as_uri())
        wait(opened, "return document.documentElement.dataset.ready === 'true'")
        time.sleep(1.0)
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 390
        room = opened.execute_script("""
            const plot = Bokeh.documents[0].roots().find((root) => root.x_range.tags.includes("wavelength"))
            const names = plot.renderers.find((found) => found.tags.includes("names"))
            const pen = document.createElement("canvas").getContext("2d")
            pen.font = "bold 12px system-ui, sans-serif"
            const {x, text} = names.data_source.data
            const scale = plot.inner_width / (plot.x_range.end - plot.x_range.start)
            const widest = Math.max(...text.map((name) => pen.measureText(name).width))
            return names.visible ? (plot.x_range.end - x[0]) * scale - 6 - widest : 0
        """)
        assert room >= 0, "the names at the ends of the lines are clipped"
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_prints(opened: webdriver.Chrome) -> None:
    printed = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type/Page\n") >= 3 or len(printed) > 100_000

"""The QGIS project: paths and layers as XML, and what real QGIS makes of it where it is installed.

QGIS has its own Python (Debian: qgis, python3-qgis), so `qgis_eyes.py` looks at the project in a process of its own.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from gibbsite.scene import Grid
from handmade_results import MARS_SPHERE, map_grid, polar_grid, sensor_grid
from test_products import odd_classes, publish

NAMES = ["Fe/Mg smectite", 'bassanite <hydrated & "dry">', "ulexit (Ätna ≥ 火山)", "../../up.tif", "new-1"]
CLASSES = odd_classes(NAMES, 4)
GRIDS = {
    "map": map_grid(60, 47),
    "sensor": sensor_grid(60, 47),
    "pole": polar_grid(60, 47),
    "meridian": Grid(60, 47, MARS_SPHERE, (0.01, 0.0, 179.8, 0.0, -0.01, 12.0)),
}
CODE = (1 + np.arange(60 * 47).reshape(60, 47) // 500 % 5).astype(np.uint16)
EYES = Path(__file__).with_name("qgis_eyes.py")
NO_WAY_TO_EARTH = "Cannot create transform between"
"""QGIS says so of every layer on Mars, in projects of its own too: it looks for WGS 84, and there is no way there."""


def products(folder: Path, kind: str) -> Path:
    """The folder of a scene's products, moved since they were made."""
    (folder / "made").mkdir()
    return Path(shutil.move(publish(folder / "made", CODE, GRIDS[kind], CLASSES), folder / "moved away"))


def test_every_layer_is_named_relatively_and_is_there(tmp_path: Path) -> None:
    folder = products(tmp_path, "map")
    root = ET.parse(folder / "gibbsite.qgs").getroot()
    sources = [str(layer.findtext("datasource")) for layer in root.iter("maplayer")]
    assert len(sources) == 6
    assert all(source.startswith("./") for source in sources)
    assert all((folder / source.split("|")[0]).is_file() for source in sources)
    assert root.findtext("properties/Paths/Absolute") == "false"
    assert str(tmp_path) not in (folder / "gibbsite.qgs").read_text()
    in_tree = [str(node.get("id")) for node in root.iter("layer-tree-layer")]
    assert in_tree == [str(layer.findtext("id")) for layer in root.iter("maplayer")]
    assert in_tree[:3] == ["gibbsite_s_polygons", "gibbsite_s_class", "gibbsite_s_probability"]


def python_of_qgis() -> str:
    """The interpreter that QGIS's own library belongs to."""
    for python in ("/usr/bin/python3", shutil.which("python3") or "python3"):
        known = subprocess.run([python, "-c", "import qgis.core"], capture_output=True, check=False, timeout=120)
        if known.returncode == 0:
            return python
    pytest.skip("QGIS is not installed (Debian: apt-get install qgis python3-qgis)")


def seen(project: Path, picture: Path) -> dict[str, Any]:
    """What QGIS sees of a project."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "PROJ_LIB", "PROJ_DATA", "GDAL_DATA"}
    own = {key: value for key, value in os.environ.items() if key not in hidden}
    home = {"QT_QPA_PLATFORM": "offscreen", "HOME": str(picture.parent), "XDG_RUNTIME_DIR": str(picture.parent)}
    answer = subprocess.run(
        [python_of_qgis(), str(EYES), str(project), str(picture)],
        capture_output=True, text=True, check=False, timeout=300, env=own | home,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found | {"stderr": answer.stderr}


@pytest.mark.qgis
@pytest.mark.parametrize("kind", GRIDS)
def test_qgis_opens_everything_with_names_and_colours(tmp_path: Path, kind: str) -> None:
    folder = products(tmp_path, kind)
    found = seen(folder / "gibbsite.qgs", tmp_path / "picture.png")
    assert (found["is_read"], found["error"]) == (True, "")
    assert [text for _, text, _ in found["messages"] if not text.startswith(NO_WAY_TO_EARTH)] == []
    assert "GeoPackage" not in found["stderr"], "an old GDAL warns of GeoPackages newer than itself"
    expected = [
        [item["code"], item["colour"], item["name"] if item["is_known"] else f"{item['name']} (discovered)"]
        for item in CLASSES
    ]
    assert len(found["layers"]) == 6
    for name, layer in found["layers"].items():
        assert (layer["is_valid"], layer["error"]) == (True, ""), name
        assert "+R=33" in layer["crs"], "on Mars"
    for name in ("gibbsite_s_class", "gibbsite_s_polygons"):
        assert found["layers"][name]["classes"] == expected
        assert found["layers"][name]["alone"] == expected, "a layer opened by itself has its style too"
    assert found["layers"]["gibbsite_s_probability"]["range"] == [0.0, 1.0]
    assert found["layers"]["gibbsite_s_probability"]["alone"] == ["singlebandpseudocolor", 0.0, 1.0]
    assert found["shown"] == ["gibbsite_s_class"]
    assert found["order"][:2] == ["gibbsite_s_polygons", "gibbsite_s_class"]
    assert found["ellipsoid"].startswith("PARAMETER:339")


@pytest.mark.qgis
def test_qgis_paints_the_class_colours_where_the_classes_are(tmp_path: Path) -> None:
    folder = products(tmp_path, "map")
    found = seen(folder / "gibbsite.qgs", tmp_path / "picture.png")
    assert found["layers"]["gibbsite_s_class"]["extent"] == [4211.0, -1250077.0 - 60 * 18, 4211.0 + 47 * 18, -1250077.0]
    picture = np.asarray(Image.open(tmp_path / "picture.png").convert("RGB"))
    # The map is in the left part, its legend in the right; patches of all classes are larger than a legend's.
    chart = picture[:, : int(picture.shape[1] * 113 / 190)]
    share = []
    for item in CLASSES:
        colour = [int(item["colour"][i : i + 2], 16) for i in (1, 3, 5)]
        rows = np.flatnonzero((chart == colour).all(axis=-1).any(axis=1))
        assert len(rows), item["name"]
        share.append((chart == colour).all(axis=-1).sum())
    true = np.bincount(CODE.ravel(), minlength=6)[1:]
    np.testing.assert_allclose(np.array(share) / sum(share), true / true.sum(), atol=0.02)

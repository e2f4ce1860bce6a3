"""One self-contained page with maps, spectra, classes, diagnostics, scores and provenance."""

import argparse
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite import figures, interpretation, mapped_scenes, page_pixels, pages, raster, report, store, timings
from gibbsite.errors import InputError
from gibbsite.interactive import TRACED, Trace
from gibbsite.pixel_spectra import Coder
from gibbsite.products import scene_name
from gibbsite.rows import blocks_of
from gibbsite.scene import open_cube
from gibbsite.settings import Settings
from gibbsite.spectra import Classes, Floats, positions_of
from gibbsite.spectra_files import read_table
from gibbsite.versions import installed

log = logging.getLogger(__name__)

SCORES = {"mean_f1", "classes", "confusion", "truth_names", "predicted_names", "ari", "nmi", "n_pixels", "scored"}
"""What the page reads of an evaluation."""

SHAPING = {"seed", "ingest", "clean", "features", "labels", "fit", "select", "spectra", "interpret"}
"""Settings that shape the maps; the page tells them, to run it again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument("--model", type=Path, required=True, help="model of the select step")
    parser.add_argument(
        "--chains", type=Path, nargs="+", required=True, metavar="CHAIN.zarr", help="chains of the fit step"
    )
    mapped_scenes.add_arguments(parser, "; S_probability.tif is taken from beside them")
    parser.add_argument(
        "--labels",
        type=Path,
        nargs="+",
        default=[],
        metavar="LABELS.zarr",
        help="labels of the same scenes, whose files the page names; left out: none",
    )
    parser.add_argument(
        "--quick-looks",
        type=Path,
        nargs="+",
        default=[],
        metavar="S.png",
        help="pictures of the same scenes before and after cleaning, made by `features`; left out: none",
    )
    parser.add_argument("--spectra", type=Path, required=True, help="spectra.csv of the spectra step")
    parser.add_argument("--interpretation", type=Path, help="interpretation.json of the interpret step; left out: none")
    parser.add_argument("--evaluation", type=Path, help="scores of the evaluate step, when there are some")
    parser.add_argument(
        "--figures", type=Path, metavar="DIR", help="folder for the figures as PNG and PDF; left out: none"
    )
    parser.add_argument(
        "--timings",
        type=Path,
        nargs="+",
        default=[],
        metavar="TSV",
        help=f"tables of seconds per sweep of the same chains, for {timings.PAGE} beside the page; left out: none",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="report.html", help="the page to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the page, and its figures when asked for."""
    pairs = mapped_scenes.pairs(args)
    if args.timings and len(args.timings) != len(args.chains):
        raise InputError(f"found {len(args.timings)} tables of times for {len(args.chains)} chains; give one per chain")
    model = store.read(args.model, "model").attrs
    classes = model["classes"]
    evaluation = _read_evaluation(args.evaluation) if args.evaluation else None
    spectra = read_table(args.spectra, classes)
    max_pixels = min(report.MAP_PIXELS, report.PAGE_PIXELS // len(args.maps))
    scenes = [_read_scene(classes, max_pixels, *pair) for pair in pairs]
    coder, composite, scenes = _read_pixels(args.cubes, scenes, spectra.wavelength, settings.report.composite)
    files = _files_of_scenes(args.labels, evaluation)
    scenes = [replace(scene, files=(*scene.files, *files.get(scene.view.name, ()))) for scene in scenes]
    scenes = _with_quick_looks(scenes, args.quick_looks)
    chains = [store.read(path, "chain") for path in args.chains]
    facts = report.Facts(
        title=settings.report.title,
        classes=classes,
        scenes=scenes,
        spectra=spectra,
        interpretation=interpretation.read(args.interpretation, classes) if args.interpretation else [],
        coder=coder,
        composite=composite,
        traces=[_trace(chain) for chain in chains],
        hyper=[_hyper(chain) for chain in chains],
        settings=settings.model_dump(mode="json", include=SHAPING),
        evaluation=evaluation if evaluation and evaluation["n_pixels"] else None,
        diagnostics=model["diagnostics"],
        versions=model.get("versions") or installed(),
        timings=timings.PAGE if args.timings else None,
    )
    page = report.render(facts)
    with store.writing_together(args.figures) if args.figures else nullcontext() as folder:
        if folder:
            figures.write_run(folder, scenes, classes, facts.traces, facts.evaluation)
        if args.timings:
            of_chains = zip((int(chain.attrs["chain"]) for chain in chains), args.timings, strict=True)
            store.write_text(args.out.with_name(timings.PAGE), timings.page(list(of_chains)))
        store.write_text(args.out, page)
    log.info("wrote %s", args.out)


def _read_scene(classes: Classes, max_pixels: int, cube_path: Path, map_path: Path) -> report.Scene:
    """The scene as the page shows it."""
    cube, code = mapped_scenes.open_pair(cube_path, map_path)
    probability = raster.stored(map_path.with_name(f"{scene_name(map_path)}_probability.tif"))
    if code.shape != probability.shape:
        raise InputError(
            f"{probability.path}: found {probability.shape[0]} × {probability.shape[1]} pixels, the class map has "
            f"{code.shape[0]} × {code.shape[1]}; give both layers of one scene"
        )
    count = np.zeros(2**16, np.int64)
    for rows in blocks_of(code.shape[0]):
        count += np.bincount(code[rows].ravel(), minlength=len(count))
    present = np.flatnonzero(count)
    positions_of(present, classes, str(map_path))
    n_pixels = {int(value): int(count[value]) for value in present if value}
    view = report.map_view(cube.attrs["scene"], code, probability, raster.read_grid(map_path), max_pixels)
    provenance = cube.attrs["provenance"]
    files = tuple({"use": "cube"} | file for file in provenance.get("files", ()))
    return report.Scene(view, code.shape, n_pixels, provenance, files)


def _read_pixels(
    cubes: Sequence[Path], scenes: Sequence[report.Scene], wavelength: Floats, wanted: tuple[float, float, float]
) -> tuple[Coder, list[float], list[report.Scene]]:
    """The coder of the pixels' spectra, the wavelengths of the composite, and the scenes with both in their views."""
    factor = report.spectra_factor([scene.view for scene in scenes])
    middle = slice(factor // 2, None, factor)
    shown, pictures, shades = [], [], [0.0, 0.0, 0.0]
    for path, scene in zip(cubes, scenes, strict=True):
        own = open_cube(path)["wavelength"].values
        band = np.array([np.abs(own - value).argmin() for value in wavelength], np.intp)
        view = scene.view
        rows, cols = (axis[middle] if axis.size > factor // 2 else axis[:1] for axis in (view.rows, view.cols))
        shown.append(page_pixels.Shown(path, rows, cols, band))
        chosen = page_pixels.nearest_bands(own, band, wanted)
        shades = own[chosen].tolist()
        pictures.append(page_pixels.composite(path, view.rows, view.cols, chosen))
    coder = page_pixels.coder_of(shown, wavelength)
    codes = [page_pixels.encode(item, coder, wavelength) for item in shown]
    views = [
        replace(scene.view, composite=picture, spectra=code, spectra_factor=factor)
        for scene, picture, code in zip(scenes, pictures, codes, strict=True)
    ]
    return coder, shades, [replace(scene, view=view) for scene, view in zip(scenes, views, strict=True)]


def _files_of_scenes(labels: Sequence[Path], evaluation: Mapping[str, Any] | None) -> dict[str, list[dict[str, Any]]]:
    """Scene -> the files its labels and its truth were read from."""
    found: dict[str, list[dict[str, Any]]] = {}
    stores = [store.read(path, "labels").attrs for path in labels]
    for use, sources in (("labels", stores), ("truth", evaluation["scored"] if evaluation else ())):
        for source in sources:
            named = [{"use": use} | file for file in source.get("files", ())]
            found.setdefault(source["scene"], []).extend(named)
    return found


def _with_quick_looks(scenes: Sequence[report.Scene], paths: Sequence[Path]) -> list[report.Scene]:
    """The scenes, the first of them with their pictures before and after cleaning."""
    if paths and len(paths) != len(scenes):
        raise InputError(f"found {len(paths)} quick looks for {len(scenes)} scenes; give one per scene")
    try:
        looks = [pages.picture(path) for path in paths[: report.QUICK_LOOKS]]
    except OSError as error:
        raise InputError(f"{error.filename}: cannot read ({error.strerror}); run the features step") from None
    first = [replace(scene, quick_look=look) for scene, look in zip(scenes, looks, strict=False)]
    return [*first, *scenes[len(first) :]]


def _trace(chain: Any) -> Trace:
    recorded = [name for name in TRACED if f"trace_{name}" in chain]
    values = {name: np.asarray(chain[f"trace_{name}"][:], dtype=np.float64) for name in recorded}
    return Trace(chain=int(chain.attrs["chain"]), **values)


def _hyper(chain: Any) -> dict[str, Any]:
    """Number of the chain, and the hyper-parameters of its best sweep where it tells them."""
    best = dict(chain["best"].attrs) if "best" in chain else {}
    told = {name: best[name] for name in ("sweep", "kappa0", "degrees", "alpha", "gamma") if name in best}
    spread = {"kappa1": 1.0 / best["spread"]} if best.get("spread") else {}
    return {"chain": int(chain.attrs["chain"])} | told | spread


def _read_evaluation(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read the scores ({error}); run the evaluate step") from None
    missing = SCORES - set(found) if isinstance(found, dict) else SCORES
    if missing:
        raise InputError(f"{path}: the scores lack {', '.join(sorted(missing))}; run the evaluate step anew")
    return dict(found)

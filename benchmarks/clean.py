"""Cleaning and features: speed on a whole FRT, errors against noise-free spectra, detection of mixed-in minerals.

Usage: python benchmarks/clean.py speed FOLDER      a simulated FRT (made there if absent, 1.5 GB), TRR3 to features
       python benchmarks/clean.py once FOLDER       that alone, once, to measure its memory
       python benchmarks/clean.py truth             simulated scenes against their noise-free spectra
       python benchmarks/clean.py mica FOLDER       the CRISM type spectra in FOLDER, mixed into a simulated scene
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from gibbsite import features, kernels
from gibbsite.clean import light as slant
from gibbsite.cleaned import Block, CleanedScene, clean_source
from gibbsite.observation import open_observation
from gibbsite.scene import Grid
from gibbsite.settings import Simulate, validate
from gibbsite.simulate.detector import L
from gibbsite.simulate.fields import key, uniform
from gibbsite.simulate.instrument import Scenery, sensor_recorder
from gibbsite.simulate.observation import write_observation
from gibbsite.sources import Source, Strips, of_observation
from gibbsite.steps import basis as basis_step
from gibbsite.steps import features as features_step
from gibbsite.threads import n_threads

TIMES = 9
"""Runs of everything that is compared."""
NONE = {"incidence": False, "despike": False, "despike_columns": False, "destripe": False, "smile": False}

# ---------------------------------------------------------------------------------------------------- speed


def timed(work: Callable[[], object], times: int = 5) -> tuple[float, float]:
    """Shortest wall time and shortest processor time, all threads, of a few runs."""
    wall, processor = [], []
    for _ in range(times):
        start = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    return min(wall), min(processor)


def in_turn(work: dict[str, Callable[[], object]], before: Callable[[], object]) -> dict[str, np.ndarray]:
    """Wall and processor seconds (TIMES, 2) of each, done in turn: what the machine does meanwhile meets all alike.

    Work that is done in another process answers with these itself.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(TIMES):
        for name, call in work.items():
            before()
            start = time.perf_counter(), time.process_time()
            answer = call()
            here = time.perf_counter() - start[0], time.process_time() - start[1]
            taken[name].append(answer if isinstance(answer, tuple) else here)
    return {name: np.array(times) for name, times in taken.items()}


def told(times: np.ndarray) -> str:
    """Best and median of seconds (n, 2), in milliseconds."""
    (wall, processor), (middle, _) = 1000 * times.min(axis=0), 1000 * np.median(times, axis=0)
    return f"{wall:.0f} ({processor:.0f}) / {middle:.0f}"


def whole(folder: Path, out: Path) -> tuple[CleanedScene, features.Basis]:
    """From the TRR3 file to the features store, without a cube store between."""
    chosen, label = validate({}, "defaults"), next(folder.glob("*l_trr3.lbl"))
    source = of_observation(open_observation(label, next(folder.glob("*ddr1.lbl")), None), chosen.ingest)
    scene = clean_source(source, chosen)
    learnt = basis_step.learn([scene], chosen.features)
    features_step.write(out, scene, learnt)
    return scene, learnt


def new_stores() -> Iterator[Path]:
    """Places for stores where none was before: to put one in another's place is to remove that, too."""
    folder = Path(tempfile.mkdtemp())
    return (folder / f"{number}.zarr" for number in itertools.count())


def once(folder: Path) -> None:
    """The peak memory of one run, in a process of its own; what started it does not count."""
    whole(folder, next(new_stores()))
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(f"peak memory of one run: {int(peak.split()[1]) / 2**20:.2f} GB")


READ_ONCE = """
import sys, time
import numpy as np
start = time.perf_counter(), time.process_time()
np.array(np.memmap(sys.argv[1], "<f4", "r"))
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""


def read_once(image: Path) -> tuple[float, float]:
    """Wall and processor seconds of reading the file in a process that has read nothing before."""
    told = subprocess.run([sys.executable, "-c", READ_ONCE, str(image)], check=True, capture_output=True, text=True)
    wall, processor = map(float, told.stdout.split())
    return wall, processor


def forget(path: Path) -> None:
    """Drop the file's pages from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def speed(folder: Path) -> None:
    """Whole runs beside reading the file, warm and cold, and the processor time of each step on one thread."""
    if not list(folder.glob("*_trr3.lbl")):
        write_observation(Simulate(lines=480, binning=1), 3, folder)
    image = next(folder.glob("*l_trr3.img"))
    new = new_stores()
    scene, learnt = whole(folder, next(new))  # compiles
    print(f"{image.stat().st_size / 1e6:.0f} MB, {n_threads()} threads; wall (processor) ms, best / median of {TIMES}")
    for state in ("warm", "cold"):
        del scene, learnt  # a mapped page cannot be dropped
        taken = in_turn(
            {
                "memmap, copy, once in a process": lambda: read_once(image),
                "memmap, copy": lambda: np.array(np.memmap(image, "<f4", "r")),
                "memmap, copy into memory that was given back just now": lambda: np.array(np.memmap(image, "<f4", "r")),
                "memmap, sum": lambda: np.memmap(image, "<f4", "r").sum(),
                "TRR3 to features": lambda: whole(folder, next(new)) and None,
            },
            lambda state=state: forget(image) if state == "cold" else None,
        )
        scene, learnt = whole(folder, next(new))
        everything = taken.pop("TRR3 to features")
        print(f"{state}: TRR3 to features {told(everything)}")
        for name, read in taken.items():
            best, middle = (f(read[:, 0]) / f(everything[:, 0]) for f in (np.min, np.median))
            print(f"  {name}: {told(read)}: {best:.2f} of it by the best runs, {middle:.2f} by the medians")
    subprocess.run([sys.executable, __file__, "once", str(folder)], check=True)
    phases(folder, new)
    shares(scene, learnt, np.memmap(image, "<f4", "r")[: 480 * 438 * 640].reshape(480, 438, 640))


def phases(folder: Path, new: Iterator[Path]) -> None:
    """Processor time of the stages of a whole run, all threads."""
    chosen, label = validate({}, "defaults"), next(folder.glob("*l_trr3.lbl"))
    product = open_observation(label, next(folder.glob("*ddr1.lbl")), None)
    source = of_observation(product, chosen.ingest)
    scene = clean_source(source, chosen)
    learnt = basis_step.learn([scene], chosen.features)
    work = {
        "labels, headers, WA record, DDR": lambda: open_observation(label, next(folder.glob("*ddr1.lbl")), None),
        "survey": lambda: of_observation(product, chosen.ingest),
        "plan, gains of the columns": lambda: clean_source(source, chosen),
        "basis": lambda: basis_step.learn([scene], chosen.features),
        "features": lambda: features_step.write(next(new), scene, learnt),
    }
    for name, call in work.items():
        wall, processor = timed(call, 3)
        print(f"  {name}: {1000 * wall:.0f} ({1000 * processor:.0f})")


def shares(scene: CleanedScene, learnt: features.Basis, cube: np.ndarray) -> None:
    """Processor time of each step on strips of 24 lines, scaled to the scene."""
    rows, made, source = slice(96, 120), scene.corrections, scene.source
    stored, light = np.ascontiguousarray(cube[rows]), 1 / slant.cosine(source.incidence[rows])
    strips = source.read(rows, made.band, light)
    lines = [strips(start)[0] for start in range(64, 576, 64)]
    counts = np.zeros((24, kernels.LANES), np.int32)
    middle, limit = np.ones((len(made.band), 640), np.float32), np.full(len(made.band), np.float32(0.01))
    sums = np.zeros((2, *middle.shape), np.float32)
    project = features.strip_projection(learnt)
    made_of = [kernels.combine_bands_of_strip(some, made.smile.start, scene._strip_weights[3]) for some in lines]
    has_gaps = np.zeros(24, bool)
    nm = source.wavelength[made.band]
    work = {
        "read, mask, cos i": lambda k: strips(64 * k),
        "bridge gaps": lambda k: kernels.bridge_gaps(lines[k], has_gaps, nm),
        "despike along": lambda k: kernels.despike_spectra(
            lines[k], made.spikes.windows, made.spikes.sigma, 0, 24, counts
        ),
        "despike down": lambda k: kernels.despike_columns(lines[k], made.spikes.sigma, 0, 24, counts),
        "destripe and smile": lambda k: kernels.combine_bands_of_strip(
            lines[k], made.smile.start, scene._strip_weights[3]
        ),
        "project, error": lambda k: project(made_of[k]),
        "ratios of columns (pass of its own)": lambda k: kernels.add_level_ratios(
            lines[k], lines[k], 64 * k, middle, limit, sums
        ),
    }
    limits, listed = np.array([-0.05, 1.5], np.float32), np.ones(438, bool)
    survey = timed_thread(lambda: kernels.survey_stored(stored, limits, np.float32(65535), listed))
    print(f"  survey of bands and pixels: {1000 * survey * 20:.0f} ms of one core per scene")
    for name, call in work.items():
        taken = timed_thread(lambda call=call: [call(k) for k in range(8)])
        print(f"  {name}: {1000 * taken * 20 * 10 / 8:.0f} ms of one core per scene")


def timed_thread(call: Callable[[], object]) -> float:
    """Shortest processor time of five calls, in this thread, after one that compiles."""
    call()
    taken = []
    for _ in range(5):
        start = time.thread_time()
        call()
        taken.append(time.thread_time() - start)
    return min(taken)


# ---------------------------------------------------------------------------------------------------- truth


class Scene:
    """A simulated L image in memory: what was recorded, and the same without noise, spikes and stripes."""

    def __init__(self, seed: int, settings: Simulate, shortest: float = 1.0, longest: float = 2.6) -> None:
        recorder = sensor_recorder(L, settings, seed)
        self.recorder, n_samples = recorder, 640 // settings.binning
        centre = recorder.channels.wavelength[:, n_samples // 2]
        self.band = np.flatnonzero((centre >= shortest) & (centre <= longest))[::-1]
        self.wavelength = centre[self.band]
        scenery = Scenery.of(settings, seed)
        self.truth = np.empty((settings.lines, len(self.band), n_samples), np.float32)
        self.seen, self.spike = np.empty_like(self.truth), np.zeros(self.truth.shape, bool)
        for y in range(settings.lines):
            pixels = scenery.pixels(np.full(n_samples, y), np.arange(n_samples))
            self.truth[y] = (recorder.spectra(pixels) * pixels.light)[self.band]
            self.seen[y] = recorder.record(pixels, shaded=True)[self.band]
            where = pixels.line[None], pixels.sample[None], recorder.channels.channel[self.band, None]
            self.spike[y] = uniform(recorder.stream[1], *where) < recorder.spike_rate
        self.inside = L.scene_columns(settings.binning)

    def source(self, lines: np.ndarray) -> Source:
        """A source of these lines (line, band, sample)."""
        height, _, width = lines.shape
        valid = np.broadcast_to(self.inside, (height, width)).copy()
        column = np.broadcast_to(np.arange(width, dtype=np.int16), (height, width))
        by_column = np.where(self.inside[:, None], self.recorder.channels.wavelength[self.band].T, np.nan)

        def read(rows: slice, band: np.ndarray, factor: np.ndarray) -> Strips:
            stored = np.ascontiguousarray(lines[rows], np.float32)
            everything = np.array([-np.inf, np.inf, np.nan], np.float32)
            return lambda start: kernels.take_stored(stored, band, everything, factor, start)

        good = np.ones(len(self.band), bool)
        return Source(
            Path("simulated"), "simulated", Grid(height, width), self.wavelength, good, valid, column, None, by_column,
            16, read,
        )  # fmt: skip

    def cleaned(self, lines: np.ndarray, **chosen: object) -> tuple[np.ndarray, np.ndarray]:
        """These lines cleaned, and the values despiked per pixel."""
        scene = clean_source(self.source(lines), validate({"clean": NONE | chosen}, "benchmark"))
        blocks: list[Block] = list(scene.blocks())
        return np.concatenate([b.lines for b in blocks]), np.concatenate([b.n_despiked for b in blocks])


def rms(found: np.ndarray, expected: np.ndarray, where: np.ndarray | None = None) -> float:
    """Root mean square of the relative error of what is finite, each pixel's brightness set aside."""
    # A pixel outside the scene is NaN, and stays so without a warning.
    error = found / found.mean(axis=1, keepdims=True) / (expected / expected.mean(axis=1, keepdims=True)) - 1
    return float(np.sqrt(np.nanmean(error[where] ** 2 if where is not None else error**2)))


def depth(spectra: np.ndarray, wavelength: np.ndarray, centre: float, half: float = 0.06) -> np.ndarray:
    """Band depth (line, sample) at a wavelength, against the line between its shoulders; three bands averaged each."""
    level = []
    for place in (centre - half, centre, centre + half):
        nearest = int(np.abs(wavelength - place).argmin())
        level.append(spectra[:, nearest - 1 : nearest + 2].mean(axis=1))
    return 1 - 2 * level[1] / (level[0] + level[2])


def truth() -> None:
    """How far each correction brings spectra to the noise-free ones, and what it does to absorptions."""
    for lines, seed in ((160, 2), (320, 5)):
        scene = Scene(seed, Simulate(lines=lines, binning=10))
        print(
            f"{lines} lines × {len(scene.inside)} samples, seed {seed}: {scene.spike.mean():.1e} of the values spikes"
        )
        spikes(scene)
        stripes_and_ratio(scene)
        absorptions(scene)


def spikes(scene: Scene) -> None:
    """Spikes found and values spoilt, by the number of standard deviations."""
    spike = scene.spike & scene.inside
    for sigma in (4, 5, 6, 8, 10):
        found, _ = scene.cleaned(scene.seen, despike=True, despike_columns=True, despike_sigma=sigma)
        changed = (found != scene.seen) & scene.inside
        before, after = rms(scene.seen, scene.truth, spike), rms(found, scene.truth, spike)
        print(
            f"  despike_sigma {sigma}: finds {(changed & spike).sum() / spike.sum():.3f}, spoils"
            f" {(changed & ~spike).sum() / (~spike & scene.inside).sum():.1e}, error of spikes ÷ {before / after:.1f}"
        )


def stripes_and_ratio(scene: Scene) -> None:
    """Errors by column: what is left when the lines are averaged, which takes the noise out."""
    seen, _ = scene.cleaned(scene.seen, despike=True, despike_columns=True)
    striped, _ = scene.cleaned(scene.seen, despike=True, despike_columns=True, destripe=True)

    def by_column(found: np.ndarray) -> float:
        ratio = found[:, :, scene.inside] / scene.truth[:, :, scene.inside]
        level = np.nanmean(ratio / ratio.mean(axis=1, keepdims=True), axis=0)
        smooth = np.stack([np.convolve(row, np.ones(9) / 9, "same") for row in level])[:, 8:-8]
        return float(np.std(level[:, 8:-8] - smooth))

    before, after = by_column(seen), by_column(striped)
    print(f"  destripe: stripes {before:.5f} -> {after:.5f}, ÷ {before / after:.2f}")
    ratio, _ = scene.cleaned(scene.seen, despike=True, despike_columns=True, ratio=True)
    expected = ratio_of_truth(scene)
    plain, left = residue(scene, seen), residue(scene, ratio)
    error = rms(ratio[:, :, scene.inside], expected[:, :, scene.inside])
    print(
        f"  ratio: what is not straight in the bland half of the pixels (air, stripes) {plain:.5f} -> {left:.5f},"
        f" ÷ {plain / left:.2f}; error against the noise-free ratio {error:.5f}"
    )


def ratio_of_truth(scene: Scene) -> np.ndarray:
    """The noise-free spectra divided by their own bland pixels."""
    return scene.cleaned(scene.truth, ratio=True)[0]


def residue(scene: Scene, found: np.ndarray) -> float:
    """How crooked the bland half of the pixels still is: the root of their mean square distance from straight lines."""
    score = kernels.crookedness(scene.truth, scene.wavelength)
    bland = (score < np.median(score[:, scene.inside])) & scene.inside
    left = kernels.crookedness(np.ascontiguousarray(found), scene.wavelength)
    return float(np.sqrt(np.nanmean(left[bland])))


def absorptions(scene: Scene) -> None:
    """Depths of the bands at 1.9, 2.2 and 2.3 µm before and after, where they are deep."""
    chains = {"despike": {"despike": True, "despike_columns": True}, "all but ratio": {"destripe": True}}
    chains["all but ratio"] |= chains["despike"]
    chains["smoothed over 7"] = chains["all but ratio"] | {"smooth": 7}
    for name, chosen in chains.items():
        found, _ = scene.cleaned(scene.seen, **chosen)
        parts = []
        for centre in (1.91, 2.21, 2.31):
            true, mine = (depth(spectra, scene.wavelength, centre) for spectra in (scene.truth, found))
            deep = (true > max(0.03, np.quantile(true[:, scene.inside], 0.98) / 2)) & scene.inside
            off = mine[deep].mean() / true[deep].mean() - 1
            parts.append(f"{centre} µm {100 * true[deep].mean():.1f} % deep, off by {100 * off:+.1f} %")
        print(f"  bands, {name}: " + "; ".join(parts))


# ---------------------------------------------------------------------------------------------------- mica

ABUNDANCE = (0.01, 0.02, 0.05, 0.10, 0.20)
PATCH = 12
"""Pixels of each mineral and abundance."""


def mica(folder: Path) -> None:
    """Detection of the type spectra at small abundances, by a filter matched to each in the space of the features."""
    scene = Scene(4, Simulate(lines=320, binning=10))
    names, shapes = type_spectra(folder, scene.wavelength)
    with_minerals, place = planted(scene, shapes)
    chosen = {"despike": True, "despike_columns": True, "destripe": True, "smile": True}
    made = clean_source(scene.source(with_minerals), validate({"clean": NONE | chosen}, "benchmark"))
    lines = np.concatenate([block.lines for block in made.blocks()])
    _, shapes = type_spectra(folder, made.wavelength)
    for method, n_features in (("pca", 10), ("pca", 20), ("mnf", 10), ("mnf", 20), ("mnf", 40)):
        asked = validate({"features": {"method": method, "n_features": n_features}}, "benchmark").features
        share = detected(lines, place, scene, (basis_step.learn([made], asked), shapes))
        print(f"{method} {n_features}: share of {len(names)} type spectra detected, by abundance")
        print("  " + "  ".join(f"{a:.0%}: {np.mean(row):.2f}" for a, row in zip(ABUNDANCE, share.T, strict=True)))
        if (method, n_features) == ("mnf", 20):
            for name, row in zip(names, share, strict=True):
                print(f"  {name}: " + " ".join("+" if hit else "-" for hit in row))


def type_spectra(folder: Path, wavelength: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Names and ratioed spectra (n, band) of the tables in the folder, at these wavelengths (µm)."""
    names, shapes = [], []
    for path in sorted(folder.glob("*.tab")):
        table = np.loadtxt(path, delimiter=",", usecols=(0, 1))
        known = (table[:, 1] < 60000) & (table[:, 1] > 0)
        if (known & (table[:, 0] > 1.0) & (table[:, 0] < 2.6)).sum() < 100:
            continue
        names.append(path.stem.removeprefix("crism_typespec_"))
        shapes.append(np.interp(wavelength, table[known, 0], table[known, 1]))
    return names, np.array(shapes)


def bland_ground(scene: Scene) -> np.ndarray:
    """(line, sample) The straightest third of the scene's true spectra."""
    score = kernels.crookedness(scene.truth, scene.wavelength)
    return (score < np.quantile(score[:, scene.inside], 0.35)) & scene.inside


def planted(scene: Scene, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The recorded scene with minerals mixed in, and (line, sample) 1 + mineral · 5 + abundance where, else 0.

    A type spectrum ratioed to bland ground, mixed at abundance a, multiplies the ground by 1 + a (ratio - 1).
    """
    lines = scene.seen.copy()
    ground = np.flatnonzero(bland_ground(scene).ravel())
    order = np.argsort(uniform(key(4, "benchmark mica"), ground), kind="stable")
    place = np.zeros(lines.shape[0] * lines.shape[2], np.int64)
    for number in range(len(shapes) * len(ABUNDANCE)):
        place[ground[order[number * PATCH : (number + 1) * PATCH]]] = 1 + number
    place = place.reshape(lines.shape[0], lines.shape[2])
    for y, x in zip(*np.nonzero(place), strict=True):
        mineral, level = divmod(int(place[y, x]) - 1, len(ABUNDANCE))
        lines[y, :, x] *= (1 + ABUNDANCE[level] * (shapes[mineral] / shapes[mineral].mean() - 1)).astype(np.float32)
    return lines, place


def detected(lines: np.ndarray, place: np.ndarray, scene: Scene, made: tuple[features.Basis, np.ndarray]) -> np.ndarray:
    """(n_minerals, n_abundances) Whether half of a mineral's pixels stand out at a false-alarm rate of 1 %.

    They stand out along the direction in which the mineral moves the mean ground, over the covariance of the ground's
    features; the threshold is the 99 % quantile of bland ground without minerals.
    """
    learnt, shapes = made
    value = features.project_lines(lines, learnt)[0].transpose(0, 2, 1)
    ground = bland_ground(scene) & (place == 0) & np.isfinite(value).all(axis=2)
    mean = lines.transpose(0, 2, 1)[ground].mean(axis=0)
    spread = np.cov(value[ground].T)
    hit = np.zeros((len(shapes), len(ABUNDANCE)), bool)
    for mineral, shape in enumerate(shapes):
        moved = learnt.axes @ (mean * (shape / shape.mean() - 1) / learnt.scale)
        direction = np.linalg.solve(spread, moved)
        limit = np.quantile(value[ground] @ direction, 0.99)
        for level in range(len(ABUNDANCE)):
            mine = value[place == 1 + mineral * len(ABUNDANCE) + level]
            hit[mineral, level] = np.mean(mine @ direction > limit) >= 0.5
    return hit


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "once", "truth", "mica"])
    parser.add_argument("folder", nargs="?", type=Path)
    args = parser.parse_args()
    with threadpool_limits(1):
        {"speed": speed, "once": once, "truth": lambda _: truth(), "mica": mica}[args.what](args.folder)

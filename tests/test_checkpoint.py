"""A chain that goes on from a checkpoint is the chain that was never killed; other settings and pixels are refused."""

import json
import logging
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from command_line import BIN, TOY, Run, environment, gibbsite
from gibbsite import chain, checkpoint, sampling, tiles
from gibbsite.checkpoint import Checkpoint
from gibbsite.errors import InputError, OutputError
from gibbsite.sampling import Chain
from gibbsite.state import Rules
from gibbsite.tiles import Tile
from handmade_chains import clusters, prior, rules, state_of
from small_disks import mounted

SWEEPS = 60
SETTINGS = {
    "fit": TOY["fit"] | {"sweeps": SWEEPS, "start_components": 24, "split_every": 5},
    "cluster": TOY["cluster"] | {"checkpoint_seconds": 0.0},
}


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict[str, bytes]]:
    """A run up to its first chain, and that chain's bytes."""
    folder = tmp_path_factory.mktemp("whole")
    run = Run(folder, folder / "observation")
    for name in ("simulate", "ingest", "basis", "features", "labels", "fit"):
        assert gibbsite(*run.words(name, run), settings=SETTINGS | {"simulate": {"lines": 24, "binning": 10}}) == 0
    return run, files(run.chain)


def start_fit(
    run: Run, out: Path, kept: Path, number: int = 1, settings: Mapping[str, Any] = SETTINGS
) -> subprocess.Popen[str]:
    words = [str(word) for word in run.words("fit", run)]
    words[words.index("--out") + 1] = str(out)
    words[words.index("--chain") + 1] = str(number)
    command = [str(BIN / "gibbsite"), *words, "--checkpoint", str(kept), "--settings", json.dumps(settings)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True)


def fit_with_kills(run: Run, out: Path, kept: Path, n_kills: int) -> tuple[int, str]:
    """How often a fit was killed before it was let go on to its end, and what it said then."""
    chance, killed = random.Random(7), 0
    for _ in range(n_kills):
        process = start_fit(run, out, kept)
        before = kept.stat().st_mtime_ns if kept.exists() else 0
        while process.poll() is None and (not kept.exists() or kept.stat().st_mtime_ns == before):
            time.sleep(0.002)
        time.sleep(0.3 * chance.random())
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
    process = start_fit(run, out, kept)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    return killed, said


@pytest.mark.parametrize("n_kills", [2, pytest.param(10, marks=pytest.mark.cluster)])
def test_a_killed_fit_goes_on_to_the_same_bytes(whole: tuple[Run, dict[str, bytes]], tmp_path: Path, n_kills: int):
    run, expected = whole
    killed, said = fit_with_kills(run, tmp_path / "1.zarr", tmp_path / "kept" / "1.zarr", n_kills)
    assert killed > 0
    assert "goes on from sweep" in said
    assert files(tmp_path / "1.zarr") == expected
    assert not (tmp_path / "kept").exists(), "a complete chain needs no checkpoint"


def test_an_interrupted_fit_keeps_what_it_has(whole: tuple[Run, dict[str, bytes]], tmp_path: Path, capfd) -> None:
    run, expected = whole
    process = start_fit(run, tmp_path / "1.zarr", tmp_path / "kept.zarr")
    while process.poll() is None and not (tmp_path / "kept.zarr").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
    process.communicate()
    begun, _ = chain.read_chain(tmp_path / "kept.zarr")
    assert 0 < begun.last.sweep < SWEEPS

    words = [*run.words("fit", Run(tmp_path, run.observation)), "--checkpoint", tmp_path / "kept.zarr"]
    words[words.index("--out") + 1] = tmp_path / "1.zarr"
    other = SETTINGS | {"fit": SETTINGS["fit"] | {"kappa1": 0.25}, "seed": 4}
    assert gibbsite(*words, settings=other) == 1
    said = capfd.readouterr().err
    assert "settings.fit.kappa1 was 0.5, is 0.25; settings.seed was 1, is 4" in said
    assert f"to go on from sweep {begun.last.sweep}, or delete the checkpoint" in said
    assert not (tmp_path / "1.zarr").exists()
    # As many labelled pixels of each class, but others.
    given = words[words.index("--labels") + 1]
    shutil.copytree(given, tmp_path / "moved" / Path(given).name)
    group = zarr.open_group(tmp_path / "moved" / Path(given).name, mode="r+")
    for name in ("known", "role"):
        group[name][...] = np.roll(group[name][...], 1, axis=1)
    with_others = [tmp_path / "moved" / Path(given).name if word == given else word for word in words]
    assert gibbsite(*with_others, settings=SETTINGS) == 1
    assert "labels was '" in capfd.readouterr().err
    # The number of chains is none of its business.
    assert gibbsite(*words, settings=SETTINGS | {"fit": SETTINGS["fit"] | {"chains": 3}}) == 0
    assert files(tmp_path / "1.zarr") == expected


@pytest.mark.cluster
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_fit_leaves_a_checkpoint_and_no_worker(
    whole: tuple[Run, dict[str, bytes]], tmp_path: Path, number: signal.Signals
) -> None:
    run, expected = whole
    workers = {"kind": "local", "workers": 2, "threads": 1, "tile_pixels": 256, "min_workers": 2}
    on_workers = SETTINGS | {"cluster": workers | {"checkpoint_seconds": 0.0}}
    process = start_fit(run, tmp_path / "1.zarr", tmp_path / "kept.zarr", settings=on_workers)
    while process.poll() is None and not (tmp_path / "kept.zarr").exists():
        time.sleep(0.002)
    assert len(members(process.pid)) >= 3, "the command and its two workers"
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + number, said
    assert "what there is of the chain is kept" in said
    assert "Traceback" not in said
    end = time.monotonic() + 10.0
    while members(process.pid) and time.monotonic() < end:
        time.sleep(0.1)
    assert members(process.pid) == [], "processes of the fit are left over"
    process = start_fit(run, tmp_path / "1.zarr", tmp_path / "kept.zarr", settings=on_workers)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    assert "goes on from sweep" in said
    assert files(tmp_path / "1.zarr") == expected


def members(session: int) -> list[int]:
    """Processes of a session, without those that have ended and only wait to be noticed."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def example(n_known: int = 1) -> tuple[Chain, Rules, Tile]:
    pixels, label = clusters(600, 3, 4)
    known = np.where((np.arange(600) % 5 == 0) & (label == 0), 0, -1).astype(np.int16)
    pixels = Tile(0, pixels.feature, known)
    chosen = rules(600, n_known=n_known, birth_block=100, class_rule="reach")
    state = state_of(pixels, label, np.arange(4), chosen, prior(3))
    reads = (lambda task, *_: tiles.tally(pixels, task), pixels.part)
    return sampling.sample(sampling.begin(state), chosen, (1, 4), reads, lambda _: None), chosen, pixels


def changed_feature(pixels: Tile) -> Tile:
    feature = pixels.feature.copy()
    feature[5, 1] += 1
    return Tile(0, feature, pixels.known)


def changed_label(pixels: Tile) -> Tile:
    known = pixels.known.copy()
    known[np.flatnonzero(known >= 0)[0]] = -1
    return Tile(0, pixels.feature, known)


@pytest.mark.parametrize(("change", "what"), [(changed_feature, "pixels"), (changed_label, "labels")])
def test_other_pixels_and_labels_are_refused(change: Callable[[Tile], Tile], what: str) -> None:
    done, chosen, pixels = example()
    checkpoint.check_pixels(done.last, chosen, lambda task, *_: tiles.tally(pixels, task), Path("kept.zarr"))
    other = change(pixels)
    with pytest.raises(InputError, match=f"kept.zarr: a checkpoint of other {what}"):
        checkpoint.check_pixels(done.last, chosen, lambda task, *_: tiles.tally(other, task), Path("kept.zarr"))


def test_a_full_disk_leaves_the_last_checkpoint_and_the_chain_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done, _, _ = example()
    kept = Checkpoint(tmp_path / "kept.zarr", 0.0, {"chain": 1})
    kept.keep(done)
    before = files(tmp_path / "kept.zarr")

    def fail(*_: object, **__: object) -> None:
        raise OutputError("kept.zarr: cannot write (No space left on device)")

    with caplog.at_level(logging.INFO):
        with monkeypatch.context() as full:
            full.setattr(chain, "write_chain", fail)
            kept.keep(done)
            kept.keep(done)
            assert files(tmp_path / "kept.zarr") == before
        kept.keep(done)
    assert [record.getMessage() for record in caplog.records] == [
        "no checkpoint of sweep 4, nor of later ones: kept.zarr: cannot write (No space left on device)",
        "checkpoints are written again, from sweep 4 on",
    ]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    with mounted(tmp_path / "small", "size=2m") as folder:
        yield folder


def test_a_disk_that_is_full_for_real_keeps_the_last_checkpoint(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done, _, _ = example()
    kept = Checkpoint(small_disk / "kept.zarr", 0.0, {"chain": 1})
    kept.keep(done)
    before = files(small_disk / "kept.zarr")
    with suppress(OSError):
        (small_disk / "other").write_bytes(b"x" * 4_000_000)
    assert not kept.write()
    assert "No space left on device" in caplog.text
    assert files(small_disk / "kept.zarr") == before
    (small_disk / "other").unlink()
    assert kept.write()
    begun = kept.read()
    assert begun is not None
    assert begun.trace == done.trace


def test_a_kill_between_the_two_moves_of_a_write_loses_nothing(tmp_path: Path) -> None:
    done, _, _ = example()
    kept = Checkpoint(tmp_path / "kept.zarr", 0.0, {"chain": 1})
    kept.keep(done)
    (tmp_path / "kept.zarr").rename(tmp_path / ".kept.zarr.4711.old")
    (tmp_path / ".kept.zarr.4711.part").mkdir()
    begun = kept.read()
    assert begun is not None
    assert begun.trace == done.trace
    assert [path.name for path in tmp_path.iterdir()] == ["kept.zarr"]


def test_without_a_path_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done, _, _ = example()
    kept = Checkpoint(None, 0.0, {})
    kept.keep(done)
    kept.remove()
    assert kept.read() is None
    assert not list(tmp_path.iterdir())

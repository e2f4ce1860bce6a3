"""From chains to a model: class sizes, the paper's three scenarios, and how far the chains can be trusted."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import TOY, Run, gibbsite
from gibbsite import chain, gibbs, sampling, statistics, store, tiles
from gibbsite.sampling import Chain
from gibbsite.state import Rules
from gibbsite.statistics import Statistics
from gibbsite.steps import select
from gibbsite.tiles import Tile
from handmade_chains import STEP, clusters, prior, rules, state_of


def counted(n: list[int], n_pinning: list[list[int]]) -> Statistics:
    pins = np.array(n_pinning)
    return replace(statistics.zeros(len(n), 1, pins.shape[1]), n=np.array(n), n_pinning=pins)


def test_the_three_scenarios_are_counted_per_class() -> None:
    # Class 0 is known, with one pinned component of two; class 1 known, all pinned; class 2 discovered, with a stray.
    pins = [[5, 0], [0, 0], [1, 2], [1, 0], [0, 0]]
    found = select.count_pixels(np.array([0, 0, 1, 2, 2]), 3, [counted([40, 7, 30, 9, 4], pins)])
    np.testing.assert_array_equal(found, [[40, 7], [30, 0], [0, 13]])


def test_a_component_counts_as_pinned_in_the_passes_in_which_it_is() -> None:
    passes = [counted([10, 4], [[3], [1]]), counted([12, 2], [[4], [0]])] * 2
    np.testing.assert_array_equal(select.count_pixels(np.array([0, 0]), 1, passes), [[13, 1]])


@given(st.integers(1, 7), st.integers(1, 9), st.integers(0, 1000))
def test_averaged_sizes_lose_no_pixel(n_passes: int, n_components: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    class_of = np.sort(generator.integers(0, 4, n_components))
    passes = [
        counted(
            generator.multinomial(200, np.full(n_components, 1 / n_components)).tolist(),
            generator.integers(0, 2, (n_components, 2)).tolist(),
        )
        for _ in range(n_passes)
    ]
    found = select.count_pixels(class_of, 4, passes)
    assert found.sum() == 200
    exact = np.zeros((4, 2))
    for one in passes:
        for k, n, pins in zip(class_of, one.n, one.n_pinning, strict=True):
            exact[k, 0 if k < 2 and pins[k] > 0 else 1] += n / n_passes
    assert (np.abs(found - exact) < 1).all(), "a mean is rounded up or down, not further"


@dataclass(frozen=True)
class Example:
    pixels: Tile
    label: np.ndarray
    rules: Rules
    chains: dict[int, tuple[Chain, int]]


@pytest.fixture(scope="module")
def example() -> Example:
    """Three short chains on four clear clusters of which two are known; the third chain sees one class everywhere."""
    pixels, label = clusters(900, 3, 4)
    known = np.where((np.arange(900) % 5 == 0) & (label < 2), label, -1).astype(np.int16)
    pixels = replace(pixels, known=known)
    chosen = rules(900, n_known=2, birth_block=100, class_rule="evidence")
    reads = (lambda task, *_: tiles.tally(pixels, task), pixels.part)
    chains = {}
    for number in (1, 2):
        own = replace(chosen, seed=number)
        first = state_of(pixels, label, np.arange(4), own, prior(3))
        chains[number] = (sampling.sample(sampling.begin(first), own, (8, 24), reads, lambda *_: None), 8)
    merged = np.where(known == 1, 1, 0)
    one = state_of(pixels, merged, np.arange(2), chosen, prior(3))
    chains[5] = (replace(chains[1][0], best=one), 8)
    return Example(pixels, label, chosen, chains)


def test_chains_that_agree_and_one_that_does_not_are_told_apart(example: Example) -> None:
    judged = select.diagnose(example.chains, example.rules, example.pixels.part)
    pairs = {tuple(pair["chains"]): pair for pair in judged["pairs"]}
    assert set(pairs) == {(1, 2), (1, 5), (2, 5)}
    assert pairs[1, 2]["rand_index"] > 0.9
    assert pairs[1, 2]["same_verdict"] > 0.98
    assert pairs[1, 5]["rand_index"] < 0.8
    n_known = (example.label < 2).mean()
    # The chain of one class calls everything known.
    assert abs(pairs[1, 5]["same_verdict"] - n_known) < 0.02
    (concern,) = [text for text in judged["concerns"] if "different maps" in text]
    assert "1 and 5" in concern
    assert "1 and 2" not in concern


def test_a_judgement_is_plain_json_and_says_how_much_it_saw(example: Example) -> None:
    judged = select.diagnose(example.chains, example.rules, example.pixels.part)
    assert json.loads(json.dumps(judged, allow_nan=False)) == judged
    assert judged["n_draws"] == 3 * 16
    assert judged["n_sampled_pixels"] == 900
    assert set(judged["traces"]) == {"log_joint", "n_classes", "n_components"}
    assert all(found["r_hat"] > 0.9 for found in judged["traces"].values())
    assert judged == select.diagnose(example.chains, example.rules, example.pixels.part), "seeded: the same every time"


def test_chains_too_short_to_judge_say_so(example: Example) -> None:
    short = {number: (one, len(one.trace) - 2) for number, (one, _) in example.chains.items()}
    judged = select.diagnose(short, example.rules, example.pixels.part)
    assert judged["traces"]["log_joint"] == {"r_hat": None, "bulk_size": None}
    assert any("too few sweeps" in text for text in judged["concerns"])


def test_one_chain_is_judged_without_pairs(example: Example) -> None:
    judged = select.diagnose({1: example.chains[1]}, example.rules, example.pixels.part)
    assert judged["pairs"] == []
    assert judged["traces"]["log_joint"]["r_hat"] is not None


def test_a_sample_of_many_pixels_is_spread_over_all_of_them() -> None:
    n_pixels = 1_234_567
    asked: list[tuple[int, int]] = []

    def read(first: int, stop: int) -> Tile:
        asked.append((first, stop))
        return Tile(first, np.zeros((stop - first, 1), np.int16), np.full(stop - first, -1, np.int16))

    chosen = rules(n_pixels)
    assert len(select.sample_pixels(chosen, read)) == select.SAMPLE_PIXELS
    first, stop = np.array(asked).T
    assert first.min() >= 0
    assert stop.max() <= n_pixels
    assert (first[1:] >= stop[:-1]).all(), "no pixel twice"
    # One run in each two-hundredth of the scene.
    np.testing.assert_array_equal(first * 200 // n_pixels, np.arange(200))
    again, asked[:] = list(asked), []
    select.sample_pixels(chosen, read)
    assert asked == again
    asked.clear()
    select.sample_pixels(replace(chosen, seed=6), read)
    assert asked != again, "another seed, another sample"


def test_discovered_classes_are_ordered_by_their_mean_size_over_the_polish(example: Example) -> None:
    pixels, label = example.pixels, example.label
    state = state_of(pixels, label, np.arange(4), example.rules, prior(3))
    _, draws = sampling.polish(state, example.rules, 1, lambda task, *_: tiles.tally(pixels, task))
    size = state.statistics.n
    # The last pass finds class 2 larger, the mean of all passes class 3.
    last = replace(state.statistics, n=np.array([size[0], size[1], 300, 100]))
    before = replace(state.statistics, n=np.array([size[0], size[1], 50, 350]))
    state = replace(state, statistics=last)
    model = select.assemble(state, draws, ("olivine", "talc"), STEP, "basis", [before, last])
    assert [facts["n_pixels"] for facts in model.classes[2:]] == [225, 175]
    np.testing.assert_array_equal(model.centre[0], draws[0].centre[[0, 1, 3, 2]])
    assert [facts["n_classified"] for facts in model.classes] == [size[0], size[1], 0, 0]
    assert [facts["n_new_component"] for facts in model.classes] == [0, 0, 0, 0]


def test_counts_of_moves_are_read_from_the_trace() -> None:
    sizes = {"log_joint": -1.0, "n_classes": 1, "n_components": 1, "n_born": 0, "kappa0": 0.1, "kappa1": 0.5}
    trace = [gibbs.Info(**sizes, split_proposed=3, split_accepted=1), gibbs.Info(**sizes, split_proposed=2)]
    found = chain.moves_of(trace)
    np.testing.assert_array_equal(found["split"], [[3, 2], [1, 0]])
    np.testing.assert_array_equal(found["merge"], [[0, 0], [0, 0]])


def test_every_traced_name_is_one_of_the_sampler() -> None:
    assert set(select.TRACED) <= {name for name in gibbs.Info.__dataclass_fields__}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A toy scene taken to two chains and a model."""
    folder = tmp_path_factory.mktemp("select")
    out = Run(folder, folder / "observation")
    settings = TOY | {"fit": TOY["fit"] | {"sweeps": 16}}
    for step in ("simulate", "ingest", "basis", "features", "labels", "fit"):
        assert gibbsite(*out.words(step, out), settings=settings) == 0, step
    fitted = ["--features", out.features, "--labels", out.labels]
    second = folder / "chains" / "2.zarr"
    assert gibbsite("fit", *fitted, "--chain", 2, "--out", second, settings=settings) == 0
    words = ["select", "--chains", out.chain, second, *fitted, "--out", out.model]
    assert gibbsite(*words, settings=settings) == 0
    return out


def test_the_model_carries_diagnostics_and_scenarios(run: Run) -> None:
    facts = store.read(run.model, "model").attrs
    judged = facts["diagnostics"]
    assert [pair["chains"] for pair in judged["pairs"]] == [[1, 2]]
    assert judged["n_draws"] == 2 * 9
    assert any("few independent draws" in text for text in judged["concerns"]), "nine sweeps are not enough"
    n_pixels = store.read(run.features, "features")["pixel"].shape[0]
    assert sum(one["n_pixels"] for one in facts["classes"]) == n_pixels
    for one in facts["classes"]:
        if one["is_known"]:
            assert one["n_classified"] + one["n_new_component"] == one["n_pixels"]
            assert one["n_classified"] > 0, "labelled pixels pin their component"
        else:
            assert (one["n_classified"], one["n_new_component"]) == (0, 0)


def test_select_says_in_one_line_how_far_chains_can_be_trusted(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        assert gibbsite(*run.words("select", replace(run, folder=tmp_path)), settings=TOY) == 0
    told = [record.getMessage() for record in caplog.records if record.name == "gibbsite.steps.select"]
    assert sum("log joint R-hat" in line and "effective draws" in line for line in told) == 1
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [line for line in warned if "few independent draws" in line]

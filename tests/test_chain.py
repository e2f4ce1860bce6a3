"""Chains, models and starts: written and read back, and sound on easy data."""

from pathlib import Path

import numpy as np
import pytest

from gibbsite import chain, plan, sampling, start, tiles
from gibbsite.errors import GibbsiteError, SettingsError
from gibbsite.model import Model, read_model, write_model
from gibbsite.sampling import Chain
from gibbsite.settings import Fit
from gibbsite.start import Pins
from gibbsite.steps.select import assemble
from gibbsite.tiles import Tile
from handmade_chains import STEP, clusters, prior, rules

N_PIXELS = 1200


def sampled() -> tuple[Chain, Pins, Tile, np.ndarray]:
    """A short chain on four clear clusters, two of them known."""
    pixels, label = clusters(N_PIXELS, 3, 4)
    known = np.where((np.arange(N_PIXELS) % 4 == 0) & (label < 2), label, -1).astype(np.int16)
    labelled = Tile(0, pixels.feature[known >= 0], known[known >= 0])
    chosen = rules(N_PIXELS, n_known=2, birth_block=200, class_rule="predictive")
    learnt = start.learn(labelled, chosen, prior(3), 5, 0.2)
    pins = learnt.pins
    assert pins is not None
    pixels = pins.apply(Tile(0, pixels.feature, known))
    reads = (lambda task, *_: tiles.tally(pixels, task), pixels.part)
    first = start.first_state(learnt, chosen, prior(3), (10, 6), reads)
    return sampling.sample(sampling.begin(first), chosen, (3, 12), reads, lambda *_: None), pins, pixels, label


@pytest.fixture(scope="module")
def example() -> tuple[Chain, Pins, Tile, np.ndarray]:
    return sampled()


def test_chain_read_back_is_the_chain_written(example, tmp_path: Path) -> None:
    done, pins, _, _ = example
    chain.write_chain(tmp_path / "1.zarr", done, pins, chain=1, known=["a", "b"])
    back, facts = chain.read_chain(tmp_path / "1.zarr")
    assert facts["known"] == ["a", "b"]
    assert back.trace == done.trace
    assert back.log_joint == done.log_joint == max(info.log_joint for info in done.trace[3:])
    for one, other in ((back.best, done.best), (back.last, done.last)):
        assert one.statistics.total.tobytes() == other.statistics.total.tobytes()
        assert (one.sweep, one.next_class_id, one.prior.kappa0) == (
            other.sweep,
            other.next_class_id,
            other.prior.kappa0,
        )
        np.testing.assert_array_equal(one.anchors.order, other.anchors.order)
        np.testing.assert_array_equal(one.block_label, other.block_label)


def test_pins_read_back_find_the_same_outliers(example, tmp_path: Path) -> None:
    done, pins, pixels, label = example
    chain.write_chain(tmp_path / "1.zarr", done, pins, chain=1)
    back = chain.read_pins(tmp_path / "1.zarr")
    assert back is not None
    known = np.where((np.arange(N_PIXELS) % 4 == 0) & (label < 2), label, -1).astype(np.int16)
    tile = Tile(0, pixels.feature, known)
    np.testing.assert_array_equal(back.apply(tile).known, pins.apply(tile).known)
    chain.write_chain(tmp_path / "2.zarr", done, None, chain=2)
    assert chain.read_pins(tmp_path / "2.zarr") is None


def test_a_fifth_of_each_known_class_does_not_pin(example) -> None:
    _, _, pixels, label = example
    for k in (0, 1):
        n_labelled = ((np.arange(N_PIXELS) % 4 == 0) & (label == k)).sum()
        n_pinning = (pixels.known == k).sum()
        assert n_pinning == n_labelled - int(0.2 * n_labelled)


def test_clear_clusters_are_found_and_known_ones_keep_their_name(example) -> None:
    done, _, pixels, label = example
    chosen = rules(N_PIXELS, n_known=2, class_rule="predictive")
    state, draws = sampling.polish(done.best, chosen, 4, lambda task, *_: tiles.tally(pixels, task))
    model = assemble(state, draws, ("olivine", "talc"), STEP, "basis")
    from gibbsite import maps

    code = maps.certainty(maps.class_probabilities(pixels.feature, model.draws(), STEP), 2).code
    assert (code[label == 0] == 1).mean() > 0.95
    assert (code[label == 1] == 2).mean() > 0.95
    assert (code[label > 1] > 2).mean() > 0.95, "unknown clusters must not be given to known classes"
    assert [facts["name"] for facts in model.classes][:3] == ["olivine", "talc", "new-1"]
    sizes = [facts["n_pixels"] for facts in model.classes[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(facts["n_pixels"] for facts in model.classes) == N_PIXELS


def test_model_read_back_is_the_model_written(example, tmp_path: Path) -> None:
    done, _, pixels, _ = example
    chosen = rules(N_PIXELS, n_known=2)
    state, draws = sampling.polish(done.best, chosen, 2, lambda task, *_: tiles.tally(pixels, task))
    model = assemble(state, draws, ("olivine", "talc"), STEP, "basis")
    write_model(tmp_path / "model.zarr", model)
    back = read_model(tmp_path / "model.zarr")
    for name in ("class_of", "log_weight", "mean", "centre", "whiten"):
        np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
    assert isinstance(back, Model)
    assert back.classes == model.classes


def test_chains_of_one_seed_differ_and_repeat() -> None:
    assert plan.chain_seed(1, 1) != plan.chain_seed(1, 2) != plan.chain_seed(2, 1)
    one, other = sampled()[0], sampled()[0]
    assert one.trace == other.trace


@pytest.mark.parametrize(
    ("fit", "message"),
    [(Fit(degrees=2.0), "must be above n_features - 1 = 4"), (Fit(c2=3.0), "must be above the number of features, 5")],
)
def test_impossible_priors_are_refused(fit: Fit, message: str) -> None:
    def prepare() -> None:
        plan.first_prior(fit, 5)
        plan.chain_rules(fit, 1, (10, 5, 0), STEP)

    with pytest.raises(SettingsError, match=message):
        prepare()


def test_a_store_of_another_kind_is_refused(tmp_path: Path) -> None:
    from gibbsite import store

    with store.create(tmp_path / "x.zarr", "model"):
        pass
    with pytest.raises(GibbsiteError, match="found a store of kind 'model'"):
        chain.read_chain(tmp_path / "x.zarr")

"""The parts of the paper's experiments: protocol and scores, simulated tables, peers, plan, checksums."""

import io

import numpy as np
import pandas as pd
import pytest

from gibbsite.errors import InputError
from gibbsite.experiments import catalogue, checksums, data, peers, plan, protocol, simulated, summary, trial
from gibbsite.experiments.ablations import VARIANTS
from gibbsite.experiments.page import cell
from gibbsite.experiments.plan import Trial
from gibbsite.experiments.protocol import NO_LABEL, NOTHING, Case
from gibbsite.experiments.table import Table, whitened
from gibbsite.settings import Experiments, Fit


def handmade(sizes: tuple[int, ...] = (50, 30, 20)) -> Table:
    """Classes that lie far apart, the largest first."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    x = np.random.default_rng(5).normal(size=(len(truth), 2)) + 50.0 * np.eye(len(sizes), 2)[truth]
    return Table(x + 100.0 * (truth == 2)[:, None], truth, ("a", "b", "c")[: len(sizes)])


# ---------------------------------------------------------------------------------------------------- protocol


def test_a_fifth_of_each_observed_class_is_labelled_rightly_and_nothing_else():
    table = handmade()
    task = protocol.pose(table, Case((0, 2)), seed=3)
    shown = task.label != NO_LABEL
    assert np.array_equal(task.label[shown], task.table.truth[shown])
    assert np.bincount(task.label[shown], minlength=3).tolist() == [10, 0, 4]
    assert sorted(map(tuple, task.table.x)) == sorted(map(tuple, table.x))


def test_the_seed_decides_which_rows_are_labelled():
    first, again, other = (protocol.pose(handmade(), Case((0,)), seed) for seed in (1, 1, 2))
    assert np.array_equal(first.table.x, again.table.x)
    assert not np.array_equal(first.table.x, other.table.x)


def test_classes_are_observed_from_the_most_abundant_on():
    assert [case.observed for case in protocol.most_abundant(handmade((20, 50, 30)), (0, 2, 3))] == [
        (), (1, 2), (1, 2, 0),
    ]  # fmt: skip
    assert [(case.hidden, case.observed) for case in protocol.each_hidden(handmade())] == [
        (0, (1, 2)), (1, (0, 2)), (2, (0, 1)),
    ]  # fmt: skip


def test_given_rows_are_all_labelled_and_the_others_all_scored():
    table = simulated.rare_cells(5.0, 4000)
    (case,) = protocol.first_sample(table)
    task = protocol.pose(table, case, seed=1)
    assert case.observed == (0,)
    assert np.array_equal(task.label == 0, task.table.is_given)
    score = protocol.score(task, task.table.truth)
    assert score.n_rows.tolist() == [4000, 10, 10]
    assert score.f1.tolist() == [1.0, 1.0, 1.0]


def test_scores_follow_the_paper_by_hand():
    # Rows without label: 8 of a (observed), 4 of b and 4 of c (unseen).
    table = Table(np.zeros((18, 1)), np.repeat([0, 1, 2], [10, 4, 4]), ("a", "b", "c"))
    label = np.array([0, 0] + [NO_LABEL] * 16)
    task = protocol.Task(table, label, (0,))
    found = np.array([0, 0] + [0] * 6 + [7, 7] + [7, 7, 7, 0] + [NOTHING] * 4)
    score = protocol.score(task, found)
    assert score.f1 == pytest.approx([2 * 6 / (8 + 7), 2 * 3 / (4 + 5), 0.0])
    assert score.n_classes == 3
    # Class 7 stands for b (F1 .67), so it is no false discovery; two of eight rows of a were lost to it.
    assert score.n_false == 0
    assert score.false_share == pytest.approx(2 / 8)


def test_a_new_class_that_stands_for_nothing_unseen_is_a_false_discovery():
    table = Table(np.zeros((20, 1)), np.repeat([0, 1], [10, 10]), ("a", "b"))
    task = protocol.Task(table, np.where(np.arange(20) % 5 == 0, table.truth, NO_LABEL), (0, 1))
    found = np.where(np.arange(20) < 5, 9, table.truth)
    score = protocol.score(task, found)
    assert score.n_false == 1
    assert score.false_share == pytest.approx(4 / 16)


# ---------------------------------------------------------------------------------------------------- tables


def test_simulated_tables_have_the_numbers_of_the_appendix():
    drawn = simulated.two_layers(1000)
    assert drawn.table.x.shape == (3000, 2)
    assert len(drawn.class_of) == 70
    assert drawn.table.names == tuple(str(k) for k in range(10))
    assert np.bincount(drawn.class_of, weights=drawn.size).tolist() == np.bincount(drawn.table.truth).tolist()
    assert np.array_equal(drawn.table.x, simulated.two_layers(1000).table.x)


def test_components_scatter_about_their_class_by_kappa1():
    # Mahalanobis distances of component means from the mean of their class, over many tables: m - 1 of m degrees.
    squares, degrees = 0.0, 0
    for seed in range(60):
        drawn = simulated.two_layers(seed)
        for k in range(10):
            mean = drawn.mean[drawn.class_of == k]
            away = (mean - mean.mean(0)) @ np.linalg.inv(np.linalg.cholesky(drawn.covariance[k] / simulated.KAPPA1)).T
            squares, degrees = squares + (away**2).sum(), degrees + 2 * (len(mean) - 1)
    # A chi-square over its degrees; four standard deviations either way.
    assert squares / degrees == pytest.approx(1.0, abs=4 * np.sqrt(2 / degrees))


def test_whitened_columns_are_uncorrelated_of_variance_one_and_of_one_sign():
    generator = np.random.default_rng(1)
    x = generator.normal(size=(300, 4)) @ generator.normal(size=(4, 4)) + 7.0
    x = np.column_stack([x, np.full(300, 3.0)])
    white = whitened(x, 3)
    assert white.shape == (300, 3)
    assert white.T @ white / 300 == pytest.approx(np.eye(3), abs=1e-9)
    assert whitened(x[::-1], 3)[::-1] == pytest.approx(white, abs=1e-9)


# ---------------------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("name", [*peers.PEERS])
def test_every_peer_labels_far_classes_rightly_and_open_ones_leave_the_hidden_class_out(name):
    table = handmade((100, 100, 100))
    task = protocol.pose(table, Case((0, 1)), seed=2)
    score = protocol.score(task, peers.PEERS[name](task, 1))
    if name in ("lda", "forest", "label-spreading"):
        # A closed set has no place for what it was not shown.
        assert score.f1[2] == 0.0
    elif name != "forest-threshold":
        # Trees know no distance: a forest may be sure of what it has never seen.
        assert score.f1[2] > 0.9
    assert score.f1[0] > 0.6


def test_clusters_are_named_by_their_labelled_rows():
    label = np.array([4, 4, NO_LABEL, NO_LABEL, NO_LABEL, NO_LABEL, 2, NO_LABEL])
    found = peers.name_clusters(np.array([0, 0, 0, 1, 1, 1, 2, 2]), label)
    assert found[:3].tolist() == [4, 4, 4]
    assert found[6:].tolist() == [2, 2]
    assert len(set(found[3:6])) == 1
    assert found[3] > 4


def test_the_settings_name_exactly_the_peers_there_are():
    assert set(Experiments().peers) == set(peers.PEERS) == set(peers.TITLES)


@pytest.mark.parametrize("name", [*VARIANTS])
def test_every_variant_is_made_of_settings_that_exist(name):
    variant = VARIANTS[name]
    assert Fit.model_validate(variant.fit).model_dump().items() >= variant.fit.items()
    changed = [bool(value) for value in (variant.fit, variant.estimator, variant.n_features, variant.label_share)]
    assert sum(changed) == (name != "default"), "one thing at a time"


def test_the_sweep_that_reaches_99_percent_of_the_rise():
    assert trial.sweeps_to_reach(np.array([0.0, 50.0, 98.9, 99.1] + [100.0] * 20)) == 4
    assert trial.sweeps_to_reach(np.full(30, 7.0)) == 1


# ---------------------------------------------------------------------------------------------------- plan


def test_the_name_of_a_trial_leads_back_to_it():
    for one in plan.trials(Experiments(data="nowhere")):
        assert Trial.parse(one.name) == one


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("benchmarks/salinas/ai2gmm", "expected EXPERIMENT/TABLE/METHOD/REPEAT"),
        ("tables/salinas/ai2gmm/1", "the experiment one of simulated"),
        ("benchmarks/salinas/no-splits/1", "no method is called 'no-splits'"),
        ("ablations/salinas/igmm/1", "no method is called 'igmm'"),
    ],
)
def test_a_trial_that_cannot_be_is_refused(name, told):
    with pytest.raises(InputError, match=told):
        Trial.parse(name)


def test_what_the_folder_of_data_lacks_is_left_out_and_named(tmp_path):
    settings = Experiments(data=str(tmp_path), benchmarks=["salinas", "vowel"], discovery=["gvhd"], peer_tables=[])
    assert {one.table for one in plan.trials(settings)} & {"salinas", "vowel", "gvhd-1"} == set()
    assert {"salinas", "vowel", "gvhd-1", "gvhd-12", "cytometry-fcs"} <= set(plan.missing_tables(settings))
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "uci_vowel.npz").touch()
    assert "vowel" in {one.table for one in plan.trials(settings)}


def test_gvhd_stands_for_its_twelve_samples():
    assert len(catalogue.each(["salinas", "gvhd"])) == 13


def test_a_table_that_is_named_twice_is_tried_once(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "gvhd.npz").touch()
    asked = plan.trials(Experiments(data=str(tmp_path), discovery=["gvhd", "gvhd-1"], benchmarks=["gvhd-1", "gvhd"]))
    assert len(asked) == len(set(asked))
    assert sum(one.experiment == "discovery" for one in asked) == 12 * (3 + 8)


def _saved(array) -> bytes:
    """As np.save writes it."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\n"), "cannot read it"),
        (lambda path: path.write_bytes(b""), "cannot read it"),
        (lambda path: np.savez(path, X=np.zeros((3, 9))), "expected an .npz file with X, y"),
        (lambda path: path.write_bytes(_saved(np.zeros(3))), "expected an .npz file with X, y"),
    ],
    ids=["pointer", "empty", "without y", "one array"],
)
def test_a_table_that_is_no_table_is_refused_in_one_line(tmp_path, spoil, told):
    path = tmp_path / "tables" / "uci_segment.npz"
    path.parent.mkdir()
    spoil(path)
    with pytest.raises(InputError, match=told):
        data.load("segment", tmp_path)


# ---------------------------------------------------------------------------------------------------- summaries


def scores_of(**f1: dict[str, float]) -> pd.DataFrame:
    """Scores of one case per method: method -> F1 of each class."""
    return pd.DataFrame(
        {"experiment": "benchmarks", "table": "vowel", "method": method, "repeat": 1, "observed": 5, "hidden": "",
         "class": name, "is_observed": 1, "n_rows": 10, "f1": value, "n_classes": 3, "n_components": 9, "n_false": 1,
         "false_share": 0.1, "sweeps_to_99": 20.0}
        for method, of_class in f1.items() for name, value in of_class.items()
    )  # fmt: skip


def test_a_line_of_the_benchmarks_holds_ours_beside_the_programs():
    found = summary.benchmarks(scores_of(igmm={"1": 0.2, "2": 0.4}, ai2gmm={"1": 0.5, "2": 0.6}))
    (line,) = found.to_dict("records")
    assert line["table"] == "vowel"
    assert (line["igmm"], line["ai2gmm"]) == (0.3, 0.55)
    assert (line["igmm_program"], line["i2gmm_program"], line["ai2gmm_program"]) == (0.40, 0.45, 0.47)


def test_an_ablation_is_paired_with_the_default_of_the_same_table_and_seed():
    found = pd.concat(
        [
            scores_of(default={"1": 0.5}, bind={"1": 0.7}),
            scores_of(default={"1": 0.9}, bind={"1": 0.8}).assign(repeat=2),
        ]
    )
    line = summary.ablations(found).set_index("variant").loc["bind"]
    assert line["change"] == pytest.approx(0.05)
    assert line["standard_error"] == pytest.approx(0.15)


def test_discovery_counts_hidden_classes_with_an_f1_above_one_half():
    scores = scores_of(ai2gmm={"1": 0.51, "2": 0.5, "3": 1.0})
    scores["hidden"] = ["1", "2", "1"]
    (line,) = summary.discovery(scores).to_dict("records")
    assert (line["hidden"], line["found"]) == (2, 1)
    assert line["mean_f1_of_hidden"] == pytest.approx(0.505)


def test_false_classes_of_the_search_for_rare_cells_count_however_small():
    scores = scores_of(ai2gmm={"common": 1.0, "rare 1": 0.9, "rare 2": 0.1}).assign(n_classes=6, n_false=0)
    (line,) = summary.cytometry(scores).to_dict("records")
    assert (line["classes"], line["false_classes"], line["rows_lost"]) == (6, 4, 0.1)


def test_times_of_the_papers_tables_stand_beside_the_papers():
    seconds = pd.DataFrame({"experiment": "benchmarks", "table": ["flc1", "vowel"], "method": "i2gmm", "seconds": 3.0})
    assert summary.timings({"benchmarks": seconds})["paper"].fillna(0).tolist() == [35 * 60, 0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, ".500"),
        (1.0, "1.000"),
        (None, ""),
        (float("nan"), ""),
        (63.0, "63"),
        (-0.05, "-.050"),
        (10.3, "10.300"),
        (-20.5, "-20.500"),
    ],
)
def test_numbers_of_the_page_read_as_in_a_paper(value, text):
    assert cell(value) == text


# ---------------------------------------------------------------------------------------------------- checksums


def published(folder, f1: float):
    """Results with one table, one figure, the page, and times that do not count."""
    for name, text in (
        ("tables/peers.csv", f"method,f1\nlda,{f1}\n"), ("figures/a.png", "picture"), ("experiments.html", "<html>"),
        ("timings.csv", f"{f1}"),
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / checksums.NAME).write_text(checksums.sums(folder))
    return folder / checksums.NAME


def test_the_same_results_verify_and_times_do_not_count(tmp_path):
    theirs = published(tmp_path / "theirs", 0.5)
    published(tmp_path / "ours", 0.5)
    (tmp_path / "ours" / "timings.csv").write_text("other")
    assert checksums.differences(tmp_path / "ours", theirs) == []
    assert set(checksums.read(theirs)) == {"tables/peers.csv", "figures/a.png", "experiments.html"}


def test_other_results_are_told_with_the_largest_difference(tmp_path):
    theirs = published(tmp_path / "theirs", 0.5)
    published(tmp_path / "ours", 0.625)
    (tmp_path / "ours" / "figures" / "a.png").unlink()
    told = {one.name: one.found for one in checksums.differences(tmp_path / "ours", theirs)}
    assert told["figures/a.png"] == "is not there"
    assert "largest difference 0.125, in f1" in told["tables/peers.csv"]
    assert "experiments.html" not in told

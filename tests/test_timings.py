"""How long it took: a page beside the report, so that the report is the same bytes whatever the clock says."""

import argparse
import re
from pathlib import Path

import pytest

from gibbsite import progress, timings
from gibbsite.errors import InputError
from gibbsite.progress import Timing, read_timings
from gibbsite.settings import Settings
from gibbsite.steps import report as step
from gibbsite.steps import spectra as spectra_step
from handmade_results import Results, make_results


def write_table(path: Path, rows: list[Timing]) -> Path:
    path.write_text(progress.HEADER + "".join(map(str, rows)))
    return path


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    rows = [Timing(1, 0.5, 0.125), Timing(2, 0.25, 0.0)]
    assert read_timings(write_table(tmp_path / "1_sweeps.tsv", rows)) == rows


@pytest.mark.parametrize(
    "text", [None, "", "sweep\tseconds\n1\t2\n", progress.HEADER + "1\tlong\t0\n", progress.HEADER]
)
def test_no_table_or_another_file_is_no_times(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "1_sweeps.tsv"
    if text is not None:
        path.write_text(text)
    assert read_timings(path) == []
    assert "No times were recorded of chain 3." in timings.page([(3, path)])


def test_the_page_tells_seconds_and_the_share_of_dask(tmp_path: Path) -> None:
    one = write_table(tmp_path / "1.tsv", [Timing(k, 0.2 + 0.1 * (k == 3), 0.05) for k in range(1, 5)])
    two = write_table(tmp_path / "2.tsv", [Timing(1, 2.0, 1.0)])
    page = timings.page([(1, one), (2, two)])
    rows = [re.findall(r">([^<>]+)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]
    assert rows[1] == ["1", "4", "0.9", "0.200", "0.300", "22.2&#8239;%"]
    assert rows[2] == ["2", "1", "2.0", "2.000", "2.000", "50.0&#8239;%"]
    whole, dask = re.findall(r'<path class="\w+" d="([^"]+)"', page)[2:]
    assert whole == "M0 120L0.0 0.0L600.0 0.0L600 120Z", "one sweep fills the chart of its own height"
    assert dask == "M0 120L0.0 60.0L600.0 60.0L600 120Z"


def test_a_long_first_sweep_does_not_flatten_the_others(tmp_path: Path) -> None:
    table = write_table(tmp_path / "1.tsv", [Timing(1, 9.0, 0.1), Timing(2, 0.5, 0.25), Timing(3, 0.25, 0.0)])
    page = timings.page([(1, table)])
    whole, dask = re.findall(r'<path class="\w+" d="([^"]+)"', page)
    assert whole == "M0 120L0.0 0.0L200.0 0.0L200.0 0.0L400.0 0.0L400.0 60.0L600.0 60.0L600 120Z"
    assert "L200.0 60.0L400.0 60.0" in dask
    assert "the first, in which kernels may be compiled, took 9.000 s and is cut off" in page


def test_a_long_chain_is_drawn_with_few_steps(tmp_path: Path) -> None:
    table = write_table(tmp_path / "1.tsv", [Timing(k, 1.0, 0.0) for k in range(1, 5001)])
    page = timings.page([(1, table)])
    assert len(page) < 60_000
    assert ">5000<" in page


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    made = make_results(tmp_path_factory.mktemp("results"), {"frt0000aaaa": (21, 17)})
    paths = {"cubes": [made.cube("frt0000aaaa")], "maps": [made.layer("frt0000aaaa", "class")]}
    spectra_step.run(argparse.Namespace(**paths, model=made.model, out_dir=made.folder), Settings())
    return made


def arguments(results: Results, out: Path, tables: list[Path]) -> argparse.Namespace:
    return argparse.Namespace(
        model=results.model, chains=results.chains, cubes=[results.cube("frt0000aaaa")],
        maps=[results.layer("frt0000aaaa", "class")], labels=[], spectra=results.folder / "spectra.csv",
        interpretation=None, evaluation=None, figures=None, timings=tables, quick_looks=[],
        out=out / "report.html",
    )  # fmt: skip


def test_the_report_links_to_the_times_and_does_not_depend_on_them(results: Results, tmp_path: Path) -> None:
    pages = []
    for run, seconds in (("first", 0.5), ("second", 0.75)):
        (tmp_path / run).mkdir()
        tables = [write_table(tmp_path / run / f"{chain}.tsv", [Timing(1, seconds, 0.1)]) for chain in (1, 2)]
        step.run(arguments(results, tmp_path / run, tables), Settings())
        pages.append([(tmp_path / run / name).read_bytes() for name in ("report.html", "timings.html")])
    assert pages[0][0] == pages[1][0], "the report tells the time"
    assert pages[0][1] != pages[1][1]
    assert b'<a href="timings.html">' in pages[0][0]
    assert b'<a href="report.html">' in pages[0][1]


def test_without_tables_there_is_no_page_and_no_link(results: Results, tmp_path: Path) -> None:
    step.run(arguments(results, tmp_path, []), Settings())
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "timings.html" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_table_less_than_chains_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found 1 tables of times for 2 chains; give one per chain"):
        step.run(arguments(results, tmp_path, [tmp_path / "1.tsv"]), Settings())

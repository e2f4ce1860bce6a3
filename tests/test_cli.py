"""The command line as typed: help, exit codes, one-line errors, settings."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from command_line import BIN, TOY, Run, environment, gibbsite, typed
from gibbsite import __version__, settings
from gibbsite.cli import GRACE, STEPS
from gibbsite.errors import GibbsiteError, SettingsError

HELP_IN_A_NEW_PROCESS = """
import contextlib, io, sys, time
from gibbsite.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(["--help"])
heavy = {"numpy", "scipy", "xarray", "zarr", "rasterio", "geopandas", "bokeh", "matplotlib", "numba", "dask"}
print(time.process_time(), *sorted(heavy & set(sys.modules)))
"""


@pytest.fixture
def step(monkeypatch):
    """Lets `gibbsite simulate` do something else: called with what its `run` shall do."""

    def replace(action):
        from gibbsite.steps import simulate

        monkeypatch.setattr(simulate, "run", lambda _args, _settings: action())

    return replace


# ---------------------------------------------------------------------------------------------------- help


def test_help_names_every_step_and_where_to_read_on():
    answer = typed("gibbsite", "--help")
    assert answer.returncode == 0
    assert answer.stderr == ""
    for name, summary in STEPS.items():
        # Long lines are folded.
        assert re.search(rf"^ +{name}\s+{re.escape(summary[:30])}", answer.stdout, re.MULTILINE)
    assert "gibbsite STEP --help" in answer.stdout
    assert "config/config.yaml" in answer.stdout


def test_help_answers_at_once_and_loads_no_heavy_library():
    answer = subprocess.run(
        [sys.executable, "-c", HELP_IN_A_NEW_PROCESS], capture_output=True, text=True, check=True, timeout=60
    )
    seconds, *heavy = answer.stdout.split()
    assert heavy == []
    assert float(seconds) < 1.5


@pytest.mark.parametrize("name", STEPS)
def test_each_step_explains_each_of_its_flags(name, capsys):
    assert gibbsite(name, "--help") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: gibbsite {name} ")
    for flag in {"--settings", "--debug", *re.findall(r"--[a-z-]+", text)} - {"--help"}:
        help_text = re.search(rf"^  {flag}(?: \S[^\n]*?)??(?: {{2,}}|\n {{10,}})(\S.*)", text, re.MULTILINE)
        assert help_text, f"{flag} has no help"
    assert "--out" in text


def test_the_version_is_the_package_s(capsys):
    assert gibbsite("--version") == 0
    assert capsys.readouterr().out == f"gibbsite {__version__}\n"


# ---------------------------------------------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["polish"], "invalid choice: 'polish'"),
        ([], "required: STEP"),
        (["ingest"], "required: CUBE, --out"),
        (["ingest", "cube.img", "--out", "a.zarr", "--sweeps", "3"], "unrecognized arguments: --sweeps 3"),
        (["fit", "--features", "f", "--labels", "l", "--chain", "one", "--out", "c"], "invalid int value: 'one'"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_was_wrong(words, complaint, capsys):
    assert gibbsite(*words) == 2
    streams = capsys.readouterr()
    assert complaint in streams.err
    assert streams.out == ""


def test_an_error_the_user_can_mend_is_one_line_and_exit_code_1(tmp_path):
    answer = typed("gibbsite", "ingest", tmp_path / "absent.img", "--out", tmp_path / "a.zarr")
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr == f"gibbsite: error: {tmp_path / 'absent.img'}: no such file; check the path\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [0, -3])
def test_a_chain_is_numbered_from_1(number, tmp_path, capsys):
    assert (
        gibbsite("fit", "--features", "f", "--labels", "l", "--chain", str(number), "--out", str(tmp_path / "c")) == 1
    )
    assert f"--chain: found {number}, expected the number of a chain; give 1 or more" in capsys.readouterr().err


def test_debug_shows_the_traceback_before_the_line(tmp_path):
    answer = typed("gibbsite", "ingest", tmp_path / "absent.img", "--out", tmp_path / "a.zarr", "--debug")
    assert answer.returncode == 1
    assert "Traceback (most recent call last)" in answer.stderr
    assert "InputError" in answer.stderr
    assert answer.stderr.splitlines()[-1].startswith("gibbsite: error: ")


def test_a_message_of_several_lines_is_printed_as_one(step, capsys):
    def fail():
        raise GibbsiteError("first line\n   second\tline\n")

    step(fail)
    assert gibbsite("simulate", "--out", "nowhere") == 1
    assert capsys.readouterr().err == "gibbsite: error: first line second line\n"


def test_a_fault_of_gibbsite_exits_3_without_traceback_and_asks_for_debug(step, capsys):
    step(lambda: {}["absent"])
    assert gibbsite("simulate", "--out", "nowhere") == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("gibbsite: error: unexpected KeyError: 'absent'")
    assert "--debug" in line


def test_ctrl_c_exits_130_without_traceback(step, capsys):
    def interrupt():
        raise KeyboardInterrupt

    step(interrupt)
    assert gibbsite("simulate", "--out", "nowhere") == 130
    assert capsys.readouterr().err == "gibbsite: error: interrupted; nothing half-written was left\n"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Run:
    """A run up to its first chain."""
    folder = tmp_path_factory.mktemp("fitted")
    run = Run(folder, folder / "observation")
    for name in ("simulate", "ingest", "basis", "features", "labels", "fit"):
        assert gibbsite(*run.words(name, run), settings=TOY | {"simulate": {"lines": 24, "binning": 10}}) == 0
    return run


HEARING = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
"""Becomes the command in its arguments, with Ctrl-C heard."""


def ended(command: list[str], busy: str, number: signal.Signals) -> tuple[int, float, list[str]]:
    """Exit code, seconds and last words of a command that gets a signal after it said `busy` on stderr."""
    process = subprocess.Popen(
        # A shell that runs the tests in its background has Ctrl-C ignored, and children inherit that.
        [sys.executable, "-c", HEARING, *command],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        assert any(busy in line for line in process.stderr), "the command ended before it was busy"
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        return process.returncode, time.monotonic() - sent, said.splitlines()
    finally:
        process.kill()


SOON = GRACE + 5.0
"""Seconds; those beyond the grace are for a machine that does other things too."""


@pytest.mark.parametrize(
    ("cluster", "number", "code"),
    [
        ({"kind": "local"}, signal.SIGTERM, 143),
        ({"kind": "none"}, signal.SIGINT, 130),
        pytest.param({"kind": "local", "workers": 2}, signal.SIGTERM, 143, marks=pytest.mark.cluster),
    ],
)
def test_an_interrupted_fit_ends_soon_and_leaves_the_earlier_chain(cluster, number, code, fitted):
    run = fitted
    before = {path: path.read_bytes() for path in run.chain.rglob("*") if path.is_file()}
    endless = {"fit": TOY["fit"] | {"sweeps": 10**6}, "cluster": cluster}
    command = [str(BIN / "gibbsite"), *map(str, run.words("fit", run)), "--settings", json.dumps(endless)]
    found, seconds, said = ended(command, "sweep 1/", number)
    assert found == code, said
    assert seconds < SOON
    assert said[-1] == "gibbsite: error: interrupted; nothing half-written was left"
    assert not [line for line in said if "Traceback" in line]
    assert {path: path.read_bytes() for path in run.chain.rglob("*") if path.is_file()} == before
    assert [path.name for path in run.chain.parent.iterdir()] == [run.chain.name]


BUSY = """
import hashlib, sys
from concurrent.futures import ThreadPoolExecutor
from gibbsite import cli, store
from gibbsite.steps import simulate

def kernel():  # minutes without an instruction of Python, and without its lock, like a kernel of numba
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2 * 10**8)

def run(args, settings):
    with store.writing_together(args.out) as part, store.writing(args.out / "one.txt") as one:
        (part / "other.txt").write_text("half")
        one.write_text("half")
        print("busy", file=sys.stderr, flush=True)
        {how}

simulate.run = run
sys.exit(cli.main())
"""


@pytest.mark.parametrize("how", ["kernel()", "ThreadPoolExecutor(1).submit(kernel).result()"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_busy_kernel_does_not_keep_an_interrupted_step_alive(how, number, code, tmp_path):
    command = [sys.executable, "-c", BUSY.format(how=how), "simulate", "--out", str(tmp_path / "out")]
    found, seconds, said = ended(command, "busy", number)
    assert (found, said) == (code, ["gibbsite: error: interrupted; nothing half-written was left"])
    assert seconds < SOON
    assert list((tmp_path / "out").iterdir()) == []


# ---------------------------------------------------------------------------------------------------- settings


def refusal(*sources: str) -> str:
    """The line with which settings are refused."""
    with pytest.raises(SettingsError) as caught:
        settings.load(sources)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_settings_every_key_has_its_default():
    assert settings.load([]) == settings.Settings()


def test_settings_come_from_a_file_from_inline_json_and_from_several(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("seed: 7\nfit:\n  sweeps: 12  # few\nlabels:\n  observed: [olivine]\n")
    assert settings.load([str(path)]).fit.sweeps == 12
    assert settings.load([str(path)]).labels.observed == ["olivine"]
    merged = settings.load([str(path), '{"fit": {"alpha": 2}}', '{"cluster": {"kind": "none"}}'])
    assert merged.seed == 7
    assert merged.cluster.kind == "none"
    assert merged.fit == settings.Fit(alpha=2), "a later section replaces the earlier one whole"


@pytest.mark.parametrize("number", ["1e-05", "1E-5", "1.0e-5", "+1.e-5", "100e-7", ".1e-4"])
def test_powers_of_ten_are_numbers_in_files_and_inline(number, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"fit:\n  alpha: {number}\n  degrees: {number}\ningest:\n  valid_range: [{number}, 1e0]\n")
    assert settings.load([str(path)]).fit == settings.Fit(alpha=1e-5, degrees=1e-5)
    assert settings.load([str(path)]).ingest.valid_range == (1e-5, 1.0)


def test_what_json_writes_inline_json_reads():
    given = {"fit": {"alpha": 1e-05, "gamma": 1e16 / 1e9}}
    assert "1e-05" in json.dumps(given), "else this test shows nothing"
    assert settings.load([json.dumps(given)]).fit == settings.Fit(alpha=1e-05, gamma=1e7)


def test_inline_settings_that_are_no_json_are_refused():
    text = refusal("{fit: {sweeps: 3}}")
    assert text.startswith("--settings: not valid JSON (Expecting property name enclosed in double quotes")
    assert text.endswith("put names and words in double quotes")


def test_an_empty_settings_file_changes_nothing(tmp_path):
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing yet\n")
    assert settings.load([str(path)]) == settings.Settings()


@pytest.mark.parametrize(
    ("given", "named", "found", "allowed"),
    [
        pytest.param("fit: {sweep: 3}", "'fit.sweep'", "unknown key", "sweeps", id="unknown key"),
        pytest.param("fits: {}", "'fits'", "unknown key", "fit, select", id="unknown section"),
        pytest.param("fit: {sweeps: many}", "fit.sweeps", "'many'", "valid integer", id="word for a number"),
        pytest.param("fit: {sweeps: '7'}", "fit.sweeps", "'7'", "valid integer", id="number in quotes"),
        pytest.param("fit: {alpha: '0.5'}", "fit.alpha", "'0.5'", "valid number", id="share in quotes"),
        pytest.param("fit: {sweeps: 1e2}", "fit.sweeps", "'1e2'", "valid integer", id="power for a count"),
        pytest.param("fit: {alpha: 1e-5.2}", "fit.alpha", "'1e-5.2'", "valid number", id="power of a share"),
        pytest.param("fit: {sweeps: 2.5}", "fit.sweeps", "2.5", "valid integer", id="part of a sweep"),
        pytest.param("fit: {sweeps: true}", "fit.sweeps", "True", "valid integer", id="claim for a number"),
        pytest.param("fit: {sweeps: null}", "fit.sweeps", "None", "valid integer", id="no value"),
        pytest.param("fit: {sweeps: 0}", "fit.sweeps", "0", "greater than or equal to 1", id="no sweep"),
        pytest.param("fit: [1, 2]", "fit:", "[1, 2]", "keys of its own: model, chains", id="list for a section"),
        pytest.param("fit: {model: gmm}", "fit.model", "'gmm'", "'igmm', 'i2gmm' or 'ai2gmm'", id="no such word"),
        pytest.param("fit: {alpha: .nan}", "fit.alpha", "nan", "finite", id="not a number"),
        pytest.param("labels: {train_fraction: 1.2}", "labels.train_fraction:", "1.2", "equal to 1", id="share"),
        pytest.param("labels: {observed: olivine}", "labels.observed:", "'olivine'", "valid list", id="no list"),
        pytest.param("ingest: {valid_range: [1, 0]}", "ingest", "[1.0, 0.0]", "must rise", id="range that falls"),
        pytest.param("ingest: {valid_range: [1]}", "ingest.valid_range:", "[1]", "more", id="half a range"),
        pytest.param("clean: {destripe: maybe}", "clean.destripe:", "'maybe'", "'auto'", id="no such choice"),
        pytest.param("simulate: {binning: 3}", "simulate.binning:", "3", "1, 2, 5 or 10", id="no such binning"),
        pytest.param("seed: -1", "seed:", "-1", "greater than or equal to 0", id="negative seed"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_found_and_what_is_allowed(given, named, found, allowed, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(given)
    text = refusal(str(path))
    assert text.startswith(f"{path}: ")
    assert named in text
    assert found in text
    assert allowed in text


def test_all_wrong_settings_are_named_at_once_with_their_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("fit:\n  sweep: 3\n  chains: none\nseed: 0.5\n")
    text = refusal(str(path))
    assert text.startswith(f"{path}: ")
    for part in ("'fit.sweep'", "fit.chains: found 'none'", "seed: found 0.5"):
        assert part in text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"fit: [1, 2\n", "not valid YAML"), (b"- fit\n", "found list"), (b"\xff\xfe\x00", "not valid YAML")],
)
def test_a_settings_file_that_is_no_mapping_is_refused(content, complaint, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    text = refusal(str(path))
    assert text.startswith(f"{path}: ")
    assert complaint in text


def test_a_section_whose_keys_were_all_deleted_keeps_its_defaults(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("seed: 7\nproducts:\nfit:\n  # sweeps: 20\n")
    assert settings.load([str(path)]) == settings.Settings(seed=7)


def test_a_missing_settings_file_is_refused(tmp_path):
    text = refusal(str(tmp_path / "absent.yaml"))
    assert text == f"{tmp_path / 'absent.yaml'}: cannot read settings (No such file or directory)"


def test_wrong_settings_stop_a_step_before_it_writes(tmp_path, capsys):
    assert gibbsite("simulate", "--out", tmp_path / "observation", settings={"simulate": {"line": 48}}) == 1
    assert capsys.readouterr().err.startswith("gibbsite: error: --settings: unknown key 'simulate.line'; known keys")
    assert list(tmp_path.iterdir()) == []

"""Results appear whole or not at all, and the earlier one stays until then."""

import os
from pathlib import Path

import pytest

from gibbsite import store
from gibbsite.errors import InputError, OutputError


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def write_folder(path: Path, text: str) -> None:
    with store.writing(path) as part:
        part.mkdir()
        (part / "data").write_text(text)


def test_a_file_appears_when_the_block_ends_and_not_before(tmp_path):
    with store.writing(tmp_path / "deep" / "er" / "a.txt") as part:
        part.write_text("whole")
        assert not (tmp_path / "deep" / "er" / "a.txt").exists()
    assert (tmp_path / "deep" / "er" / "a.txt").read_text() == "whole"
    assert names(tmp_path) == ["deep", "deep/er", "deep/er/a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_failed_block_leaves_the_earlier_folder_and_no_trace(tmp_path, error):
    def write_half() -> None:
        with store.writing(tmp_path / "a.zarr") as part:
            part.mkdir()
            (part / "data").write_text("half")
            raise error

    write_folder(tmp_path / "a.zarr", "old")
    with pytest.raises((error, OutputError)):
        write_half()
    assert names(tmp_path) == ["a.zarr", "a.zarr/data"]
    assert (tmp_path / "a.zarr" / "data").read_text() == "old"


def test_a_folder_takes_the_place_of_an_earlier_one_whole(tmp_path):
    write_folder(tmp_path / "a.zarr", "old")
    (tmp_path / "a.zarr" / "stray").write_text("of the earlier run")
    write_folder(tmp_path / "a.zarr", "new")
    assert names(tmp_path) == ["a.zarr", "a.zarr/data"]
    assert (tmp_path / "a.zarr" / "data").read_text() == "new"


@pytest.mark.parametrize("n_moves", [0, 1])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failure_between_the_moves_brings_the_earlier_folder_back(tmp_path, monkeypatch, n_moves, error):
    write_folder(tmp_path / "a.zarr", "old")
    move, calls = os.replace, []

    def failing(source, target):
        calls.append(source)
        if len(calls) == n_moves + 1:
            raise error
        move(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises((error, OutputError)):
        write_folder(tmp_path / "a.zarr", "new")
    assert names(tmp_path) == ["a.zarr", "a.zarr/data"]
    assert (tmp_path / "a.zarr" / "data").read_text() == "old"


def test_files_written_together_appear_together_and_leave_others_alone(tmp_path):
    (tmp_path / "other.txt").write_text("other")
    with store.writing_together(tmp_path) as part:
        store.write_text(part / "a.txt", "a")
        store.write_json(part / "b.json", {"b": 1})
        assert not (tmp_path / "a.txt").exists()
    assert names(tmp_path) == ["a.txt", "b.json", "other.txt"]


def test_two_jobs_of_one_process_id_do_not_meet_in_the_folder_they_share(tmp_path):
    with store.writing_together(tmp_path) as one:
        (one / "a.txt").write_text("half")
        with store.writing_together(tmp_path) as other:
            (other / "b.txt").write_text("whole")
        assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["b.txt"]
        (one / "a.txt").write_text("whole")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "whole", "b.txt": "whole"}


def test_of_files_written_together_none_appears_when_the_last_fails(tmp_path):
    def write_one() -> None:
        with store.writing_together(tmp_path) as part:
            store.write_text(part / "a.txt", "new")
            raise RuntimeError

    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(RuntimeError):
        write_one()
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_an_error_names_the_place_the_user_knows(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"/file/a.txt: cannot write \(.+\); check the folder") as caught:
        store.write_text(tmp_path / "file" / "a.txt", "text")
    assert ".part" not in str(caught.value)


def test_an_error_among_files_written_together_names_the_place_the_user_knows(tmp_path):
    def write_two() -> None:
        with store.writing_together(tmp_path / "out") as part:
            store.write_text(part / "a.txt", "a")
            store.write_text(part / "a.txt" / "b.txt", "b")

    with pytest.raises(OutputError, match="cannot write") as caught:
        write_two()
    assert str(caught.value).startswith(f"{tmp_path / 'out' / 'a.txt' / 'b.txt'}: ")
    assert names(tmp_path) == ["out"]


def test_a_store_of_another_layout_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "CONTRACT", 99)
    with store.create(tmp_path / "a.zarr", "cube"):
        pass
    monkeypatch.undo()
    with pytest.raises(InputError, match=rf"layout 99\), expected 'cube' \(layout {store.CONTRACT}\)"):
        store.read(tmp_path / "a.zarr", "cube")

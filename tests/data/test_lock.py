"""data/ and its lock, with the real git and the real dvc in throw-away repositories."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from fr3e.cli.data import data_ensure
from fr3e.config.scenario import RealData
from fr3e.data import dvc, lock
from fr3e.data.assemble import assemble
from fr3e.data.benchmarks import write_benchmarks
from fr3e.errors import UserError
from tests.conftest import ROOT
from tests.data.small import make_mirror

pytest.importorskip("dvc", reason="dvc is not in this environment")


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def dvc_status(folder: Path) -> str:
    return run(folder, sys.executable, "-m", "dvc", "status")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository as this project has it, with data/ assembled from the small mirror and locked, mirror/ beside it."""
    folder = tmp_path_factory.mktemp("template") / "repository"
    folder.mkdir()
    run(folder, "git", "init", "-q")
    shutil.copytree(ROOT / ".dvc", folder / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp", "config.local"))
    for name in (".dvcignore", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    table = make_mirror(folder / "mirror")
    (folder / "config").mkdir()
    shutil.copy(table, folder / "config/sources.yaml")
    write_benchmarks(folder / "mirror", folder / "data/benchmarks", None, table)
    assemble(folder / "mirror", folder / "data", RealData(sources=str(table)))
    lock.add(folder / "data")
    return folder


@pytest.fixture
def repo(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(template, tmp_path / "repository", symlinks=True)
    monkeypatch.chdir(tmp_path / "repository")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "repository"


@pytest.fixture
def clone(repo: Path) -> Path:
    """A fresh clone: the lock, but neither data nor DVC's cache."""
    shutil.rmtree(repo / "data")
    shutil.rmtree(repo / ".dvc/cache")
    return repo


DATA, LOCK = Path("data"), Path("data.dvc")


def test_the_lock_is_dvcs_own_file_with_rows_beside(repo):
    content = yaml.safe_load(LOCK.read_text())
    assert content["outs"][0]["path"] == "data" and content["outs"][0]["nfiles"] == 6
    files = content["meta"]["files"]
    assert files["train.parquet"] == {
        "md5": hashlib.md5(Path("data/train.parquet").read_bytes()).hexdigest(),
        "rows": 4,
    }
    assert files["dropped.parquet"]["rows"] == 5 and "rows" not in files["manifest.json"]
    assert lock.folder_digest(lock.digests(DATA)) == content["outs"][0]["md5"]
    assert dvc_status(repo).startswith("Data and pipelines are up to date")


def test_committed_settings():
    config = (ROOT / ".dvc/config").read_text()
    assert "analytics = false" in config and "remote" not in config and "url" not in config


def test_check_is_silent_about_equal_data(repo, capsys):
    lock.check(DATA, LOCK)
    assert capsys.readouterr().out == "data: 6 files, as locked by data.dvc\n"


def test_one_changed_byte_is_noticed(repo):
    content = bytearray(Path("data/manifest.json").read_bytes())
    content[100] ^= 1
    Path("data/manifest.json").write_bytes(content)
    with pytest.raises(UserError, match=r"data differs from data\.dvc: manifest\.json differs; restore it"):
        lock.check(DATA, LOCK)
    with pytest.raises(UserError, match=r"dvc status: changed: data\.dvc"):
        lock.status(repo)


def test_files_and_rows_that_differ_are_named(repo):
    table = pq.read_table("data/train.parquet")
    pq.write_table(table.slice(0, 3), "data/train.parquet")
    pq.write_table(pq.read_table("data/dropped.parquet"), "data/dropped.parquet", compression="none")
    Path("data/benchmarks/gsm8k.parquet").unlink()
    Path("data/extra.txt").write_text("x")
    found = {difference.file: difference for difference in lock.compare(DATA, LOCK)}
    assert set(found) == {"train.parquet", "dropped.parquet", "benchmarks/gsm8k.parquet", "extra.txt"}
    assert str(found["train.parquet"]) == "train.parquet differs in its rows (3 rows, 4 locked)"
    assert "the locked rows in other bytes" in str(found["dropped.parquet"])
    assert str(found["benchmarks/gsm8k.parquet"]) == "benchmarks/gsm8k.parquet is missing (no rows, 2 locked)"
    assert str(found["extra.txt"]) == "extra.txt is not in the lock"


def test_a_fresh_clone_is_told_what_is_missing_and_the_ways_to_it(clone):
    with pytest.raises(UserError) as caught:
        lock.check(DATA, LOCK)
    message = str(caught.value)
    assert message.startswith("data is not here (data.dvc locks 6 files with 13 rows)")  # 4 + 5 + 2 + 2
    for way in ("`fr3e data ensure`", "--mirror DIR", "dvc pull"):
        assert way in message


def test_status_of_a_clone_without_data_is_clean_and_says_so(clone):
    assert "not in cache" in dvc_status(clone)  # what plain dvc says, and why there is a status of our own
    assert lock.status(clone) == "dvc status: clean, 0 tracked and here; not here: data.dvc"
    assert not DATA.exists()


def test_status_counts_what_is_here(repo):
    assert lock.status(repo) == "dvc status: clean, 1 tracked and here"


def test_ensure_uses_data_that_are_here(repo):
    before = {path: path.stat().st_mtime_ns for path in DATA.rglob("*")}
    lock.ensure(DATA, LOCK, None, False)
    assert before == {path: path.stat().st_mtime_ns for path in DATA.rglob("*")}


def test_ensure_assembles_from_a_mirror_and_dvc_is_clean(clone):
    before = (LOCK.read_text(), LOCK.stat().st_mtime_ns)
    lock.ensure(DATA, LOCK, Path("mirror"), False)
    lock.check(DATA, LOCK)
    assert (LOCK.read_text(), LOCK.stat().st_mtime_ns) == before
    assert dvc_status(clone).startswith("Data and pipelines are up to date")
    assert not [path for path in clone.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.slow
def test_ensure_pulls_where_a_remote_is_configured(repo, tmp_path):
    run(repo, sys.executable, "-m", "dvc", "remote", "add", "--local", "-d", "store", str(tmp_path / "store"))
    run(repo, sys.executable, "-m", "dvc", "push", "data.dvc")
    shutil.rmtree(repo / "data")
    shutil.rmtree(repo / ".dvc/cache")
    shutil.rmtree(repo / "mirror")
    lock.ensure(DATA, LOCK, None, False)
    lock.check(DATA, LOCK)


@pytest.mark.slow
def test_where_the_remote_holds_another_mix_than_the_scenarios_it_is_made(repo, tmp_path):
    run(repo, sys.executable, "-m", "dvc", "remote", "add", "--local", "-d", "store", str(tmp_path / "store"))
    run(repo, sys.executable, "-m", "dvc", "push", "data.dvc")
    shutil.rmtree(repo / "data")
    lock.ensure(DATA, LOCK, Path("mirror"), True, wanted=RealData(remove_overlap=True))
    assert json.loads((DATA / "manifest.json").read_text())["mix"]["overlap"] == "latex"


@pytest.mark.slow
def test_a_remote_that_lacks_the_data_is_an_error_with_dvcs_reason(clone, tmp_path):
    (tmp_path / "store").mkdir()
    run(clone, sys.executable, "-m", "dvc", "remote", "add", "--local", "-d", "store", str(tmp_path / "store"))
    with pytest.raises(UserError, match=r"dvc pull data\.dvc: .+"):
        lock.ensure(DATA, LOCK, None, False)


def test_a_difference_stops_unless_accepted(clone):
    rows = json.loads(Path("mirror/train/deep2.json").read_text())
    rows[-1]["answer"] = "8"
    Path("mirror/train/deep2.json").write_text(json.dumps(rows))
    with pytest.raises(UserError, match=r"train\.parquet differs .*\(4 rows, 4 locked\).*--accept-difference"):
        lock.ensure(DATA, LOCK, Path("mirror"), False)
    lock.ensure(DATA, LOCK, Path("mirror"), True)
    with pytest.raises(UserError, match=r"differs from data\.dvc"):
        lock.check(DATA, LOCK)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"remove_overlap": True}, "mix.overlap (with remove_overlap: true) 'keep' instead of 'latex'"),
        ({"mix": {"copies": "all"}}, "mix.copies 'first' instead of 'all'"),
        ({"mix": {"parts": {"deepscaler": {}}}}, "mix.parts {"),
        ({"mix": {"parts": {"deepscaler": {}, "simplelr": {"levels": [3, 4, 5]}}}}, "the order of mix.parts"),
    ],
)
def test_data_that_are_here_but_made_otherwise_than_the_scenario_says_stop(repo, change, words):
    lock.ensure(DATA, LOCK, None, False, wanted=RealData())
    for accept in (False, True):
        with pytest.raises(UserError) as caught:
            lock.ensure(DATA, LOCK, None, accept, wanted=RealData(**change))
        message = str(caught.value)
        assert words in message and "`fr3e data version data`" in message and "--accept-difference" in message
        assert "\n" not in message


def test_data_of_another_place_than_the_scenarios_table_names_stop(repo):
    table = Path("config/sources.yaml").read_text()
    Path("other.yaml").write_text(table.replace("someone/some-data", "someone/else"))
    with pytest.raises(UserError, match=r"place of simplelr 'someone/some-data@01234567' instead of \['someone/else@"):
        lock.ensure(DATA, LOCK, None, False, wanted=RealData(sources="other.yaml"))


def test_the_scenarios_section_reaches_the_assembly_and_an_accepted_difference_leaves_a_trace(clone):
    Path("mirror/sources.yaml").rename("elsewhere.yaml")
    Path("config/sources.yaml").unlink()
    section = {"kind": "real", "sources": "elsewhere.yaml", "mirror": "mirror", "remove_overlap": True}
    Path("plan.yaml").write_text(yaml.safe_dump({"data": section}))
    with pytest.raises(UserError, match=r"data differs from data\.dvc: .*train\.parquet .*\(3 rows, 4 locked\)"):
        data_ensure(config=Path("plan.yaml"), stamp=Path("stamp.json"))
    assert not Path("stamp.json").exists()
    Path("plan.yaml").write_text(yaml.safe_dump({"data": {**section, "accept_difference": True}}))
    data_ensure(config=Path("plan.yaml"), stamp=Path("stamp.json"))
    stamp = json.loads(Path("stamp.json").read_text())
    assert "train.parquet differs (3 rows, 4 locked)" in stamp.pop("accepted_difference")
    assert len(stamp) == 6
    lock.add(DATA)  # `fr3e data version data`
    Path("plan.yaml").write_text(yaml.safe_dump({"data": section}))
    data_ensure(config=Path("plan.yaml"), stamp=Path("stamp.json"))
    assert "accepted_difference" not in json.loads(Path("stamp.json").read_text())


def test_a_broken_mirror_leaves_nothing_behind(clone):
    Path("mirror/train/deep2.json").write_text("[")
    with pytest.raises(UserError, match=r"deep2\.json: not JSON"):
        lock.ensure(DATA, LOCK, Path("mirror"), False)
    assert not DATA.exists()
    assert not [path for path in clone.iterdir() if path.name.endswith(".tmp")]


def test_no_mirror_and_no_network(clone, monkeypatch):
    monkeypatch.setenv("FR3E_GITHUB_RAW", "http://127.0.0.1:1")
    with pytest.raises(UserError, match=r"aime24/test\.jsonl is missing .*--mirror DIR"):
        lock.ensure(DATA, LOCK, None, False)
    assert not DATA.exists()


def test_add_keeps_times_and_tracks_a_checkpoint_under_results(repo):
    folder = Path("results/demo/runs/a/model")
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "manifest.json"):
        (folder / name).write_bytes(name.encode() * 1000)
        os.utime(folder / name, (1_600_000_000, 1_600_000_000))
    os.utime(folder, (1_600_000_000, 1_600_000_000))
    assert lock.add(folder) == Path("results/demo/runs/a/model.dvc")
    assert {path.stat().st_mtime for path in (folder, *folder.iterdir())} == {1_600_000_000}
    assert lock.status(repo) == "dvc status: clean, 2 tracked and here"
    assert run(repo, "git", "status", "--porcelain", "-uall", "results").split() == [
        "??", "results/demo/runs/a/.gitignore", "??", "results/demo/runs/a/model.dvc",
    ]  # fmt: skip
    shutil.rmtree(folder)
    lock.pull(folder)
    assert (folder / "manifest.json").read_bytes() == b"manifest.json" * 1000


def test_add_again_renews_the_lock(repo):
    (DATA / "train.parquet").write_bytes((DATA / "dropped.parquet").read_bytes())
    lock.add(DATA)
    assert yaml.safe_load(LOCK.read_text())["meta"]["files"]["train.parquet"]["rows"] == 5
    lock.check(DATA, LOCK)


def test_errors_for_people(repo, tmp_path):
    with pytest.raises(UserError, match="nothing: no such file or folder"):
        lock.add(Path("nothing"))
    with pytest.raises(UserError, match=r"nothing\.dvc: no such file"):
        lock.pull(Path("nothing"))
    with pytest.raises(UserError, match="not inside a DVC repository"):
        dvc.repository(tmp_path)
    LOCK.write_text("outs: []\n")
    with pytest.raises(UserError, match=r"data\.dvc: not a DVC lock"):
        lock.check(DATA, LOCK)


def test_calls_wait_for_each_other(repo):
    order: list[str] = []

    def hold() -> None:
        with dvc.one_at_a_time(repo):
            order.append("first in")
            time.sleep(0.5)
            order.append("first out")

    thread = threading.Thread(target=hold)
    thread.start()
    while not order:
        time.sleep(0.01)
    with dvc.one_at_a_time(repo):
        order.append("second in")
    thread.join()
    assert order == ["first in", "first out", "second in"]


def test_a_lock_that_is_never_let_go_ends_in_a_message(repo):
    file = repo / ".dvc/tmp/fr3e.lock"
    file.parent.mkdir(exist_ok=True)
    with open(file, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(UserError, match=r"fr3e\.lock: held by another process"), dvc.one_at_a_time(repo, wait=0.3):
            pass


@pytest.mark.slow
def test_two_processes_adding_at_once_both_succeed(repo):
    for name in ("a", "b"):
        Path(f"results/{name}").mkdir(parents=True)
        Path(f"results/{name}/x").write_text(name)
    script = "import sys; from pathlib import Path; from fr3e.data.lock import add; add(Path(sys.argv[1]))"
    started = [subprocess.Popen([sys.executable, "-c", script, f"results/{name}"]) for name in ("a", "b")]
    assert [process.wait() for process in started] == [0, 0]
    assert Path("results/a.dvc").exists() and Path("results/b.dvc").exists()

"""Fetching from real HTTP servers on this machine: pinned paths, resuming, retries, checks, and what is left alone."""

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from fr3e.data import fetch as fetching
from fr3e.data.fetch import fetch
from fr3e.errors import UserError
from tests.data.small import REVISION, make_mirror


class Server:
    """Serves a folder by path; `faults` are consumed one per request: a status, or "cut" for half a body."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: list[int | str] = []
        self.requests: list[tuple[str, str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.answer(body=False)

            def do_GET(self) -> None:
                self.answer(body=True)

            def answer(self, body: bool) -> None:
                asked = self.headers.get("Range")
                outer.requests.append((self.command, self.path, asked))
                fault = outer.faults.pop(0) if body and outer.faults else None
                content = outer.files.get(self.path)
                if isinstance(fault, int) or content is None:
                    self.send_response(fault if isinstance(fault, int) else 404)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                start = int(match.group(1)) if asked and (match := re.match(r"bytes=(\d+)-", asked)) else 0
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(content) - start))
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
                self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", REVISION)
                self.end_headers()
                if body:
                    self.wfile.write(
                        content[start : start + (len(content) - start) // 2] if fault == "cut" else content[start:]
                    )

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    monkeypatch.setenv("FR3E_GITHUB_RAW", server.url)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.setattr(fetching.time, "sleep", lambda seconds: None)
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def small(tmp_path: Path, server: Server) -> Path:
    """The small mirror, pinned by checksum, with its files on the server under both places' paths."""
    folder = tmp_path / "mirror"
    table = yaml.safe_load(make_mirror(folder).read_text())
    for source in table["sources"].values():
        place = source["places"][0]
        for file in place["files"]:
            content = (folder / file["local"]).read_bytes()
            file["sha256"] = hashlib.sha256(content).hexdigest()
            server.files[f"/{place['github']}/{REVISION}/{file['path']}"] = content
            server.files[f"/datasets/someone/hub-data/resolve/{REVISION}/{file['path']}"] = content
        hub = {key: value for key, value in place.items() if key != "github"}
        source["places"].append({**hub, "hub": "someone/hub-data"})
    (folder / "sources.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
    return folder


def compare(small: Path, out: Path) -> None:
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) == 5
    for path in files:
        assert path.read_bytes() == (small / path.relative_to(out)).read_bytes()


def test_everything_from_the_pinned_commit(small, server, tmp_path):
    fetch(small / "sources.yaml", tmp_path / "raw", None, None)
    compare(small, tmp_path / "raw")
    assert all(f"/{REVISION}/" in path for _, path, _ in server.requests)


def test_nothing_is_fetched_that_is_there_and_right(small, server, tmp_path):
    fetch(small / "sources.yaml", tmp_path / "raw", None, None)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "raw").rglob("*.json*")}
    server.requests.clear()
    (tmp_path / "raw/train/deep1.json").write_text("[]")
    fetch(small / "sources.yaml", tmp_path / "raw", None, None)
    assert [path.rsplit("/", 1)[1] for _, path, _ in server.requests] == ["deep1.json"]
    compare(small, tmp_path / "raw")
    changed = {path.name for path, time in times.items() if path.stat().st_mtime_ns != time}
    assert changed == {"deep1.json"}


def test_a_broken_transfer_goes_on_where_it_broke(small, server, tmp_path):
    server.faults = ["cut"]
    fetch(small / "sources.yaml", tmp_path / "raw", None, ["gsm8k"])
    ranges = [asked for _, _, asked in server.requests]
    size = (small / "benchmarks/gsm8k/test.jsonl").stat().st_size
    assert ranges == [None, f"bytes={size // 2}-"]
    assert not list((tmp_path / "raw").rglob("*.part"))


def test_a_killed_download_goes_on_in_the_next_run(small, server, tmp_path):
    part = tmp_path / "raw/benchmarks/gsm8k/test.jsonl.part"
    part.parent.mkdir(parents=True)
    part.write_bytes((small / "benchmarks/gsm8k/test.jsonl").read_bytes()[:10])
    fetch(small / "sources.yaml", tmp_path / "raw", None, ["gsm8k"])
    assert server.requests[0][2] == "bytes=10-"
    assert (tmp_path / "raw/benchmarks/gsm8k/test.jsonl").read_bytes() == (
        small / "benchmarks/gsm8k/test.jsonl"
    ).read_bytes()


@pytest.mark.parametrize("faults", [[503], [429, 500, 502]])
def test_faults_that_pass_are_tried_again(small, server, tmp_path, faults):
    server.faults = list(faults)
    fetch(small / "sources.yaml", tmp_path / "raw", None, ["gsm8k"])
    assert len(server.requests) == len(faults) + 1


def test_wrong_bytes_never_get_the_files_name(small, server, tmp_path):
    path = f"/someone/some-data/{REVISION}/benchmarks/gsm8k/test.jsonl"
    server.files[path] = server.files[path].replace(b"Ann", b"Eve")
    with pytest.raises(UserError, match="is not the pinned"):
        fetch(small / "sources.yaml", tmp_path / "raw", None, ["gsm8k"])
    assert not [path for path in (tmp_path / "raw").rglob("*") if path.is_file()]


def test_the_hub_is_asked_at_the_pinned_revision(small, server, tmp_path):
    fetch(small / "sources.yaml", tmp_path / "raw", None, ["gsm8k", "deepscaler"], place="hub")
    paths = Counter(path for method, path, _ in server.requests if method == "GET")
    assert set(paths) == {
        f"/datasets/someone/hub-data/resolve/{REVISION}/{name}"
        for name in ("benchmarks/gsm8k/test.jsonl", "train/deep1.json", "train/deep2.json")
    }
    assert (tmp_path / "raw/train/deep1.json").read_bytes() == (small / "train/deep1.json").read_bytes()
    assert not (tmp_path / "raw/.hub").exists()


def test_when_one_place_lacks_the_file_the_next_is_asked(small, server, tmp_path):
    del server.files[f"/someone/some-data/{REVISION}/benchmarks/gsm8k/test.jsonl"]
    fetch(small / "sources.yaml", tmp_path / "raw", None, ["gsm8k"])
    assert any("/datasets/" in path for _, path, _ in server.requests)


def test_content_is_checked_where_no_checksum_is_known(small, server, tmp_path):
    table = yaml.safe_load((small / "sources.yaml").read_text())
    for place in table["sources"]["gsm8k"]["places"]:
        place["files"][0]["sha256"] = None
    (small / "sources.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
    path = f"/someone/some-data/{REVISION}/benchmarks/gsm8k/test.jsonl"
    server.files[path] = server.files[path].splitlines(keepends=True)[0]
    for _ in range(2):  # what was refused is not kept, so it does not count as right the next time
        with pytest.raises(UserError, match="1 rows, gsm8k has 2"):
            fetch(small / "sources.yaml", tmp_path / "raw", None, ["gsm8k"])
        assert not [path for path in (tmp_path / "raw").rglob("*") if path.is_file()]


@pytest.mark.parametrize("from_mirror", [False, True])
def test_a_file_without_checksum_that_is_there_is_read_before_it_counts(small, server, tmp_path, from_mirror):
    table = yaml.safe_load((small / "sources.yaml").read_text())
    for place in table["sources"]["gsm8k"]["places"]:
        place["files"][0]["sha256"] = None
    (small / "sources.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
    there, right = tmp_path / "raw/benchmarks/gsm8k/test.jsonl", small / "benchmarks/gsm8k/test.jsonl"
    there.parent.mkdir(parents=True)
    there.write_bytes(right.read_bytes().splitlines(keepends=True)[0])
    mirror = small if from_mirror else None
    fetch(small / "sources.yaml", tmp_path / "raw", mirror, ["gsm8k"])
    assert there.read_bytes() == right.read_bytes()
    server.requests.clear()
    written = there.stat().st_mtime_ns
    fetch(small / "sources.yaml", tmp_path / "raw", mirror, ["gsm8k"])
    assert not server.requests and there.stat().st_mtime_ns == written


def test_a_mirror_whose_file_is_refused_leaves_none(small, tmp_path):
    table = yaml.safe_load((small / "sources.yaml").read_text())
    for place in table["sources"]["gsm8k"]["places"]:
        place["files"][0]["sha256"] = None
    (small / "sources.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
    (small / "benchmarks/gsm8k/test.jsonl").write_text('{"question": "One?"}\n')
    with pytest.raises(UserError, match="row 0: no column 'answer'"):
        fetch(small / "sources.yaml", tmp_path / "raw", small, ["gsm8k"])
    assert not [path for path in (tmp_path / "raw").rglob("*") if path.is_file()]


def test_a_complete_folder_needs_neither_mirror_nor_network(small, server, tmp_path):
    fetch(small / "sources.yaml", tmp_path / "raw", small, None)
    server.http.shutdown()
    server.http.server_close()
    (tmp_path / "empty").mkdir()
    fetch(small / "sources.yaml", tmp_path / "raw", tmp_path / "empty", None)
    fetch(small / "sources.yaml", tmp_path / "raw", None, None)
    compare(small, tmp_path / "raw")
    (tmp_path / "raw/train/deep1.json").unlink()
    with pytest.raises(UserError, match=r"deepscaler is missing"):
        fetch(small / "sources.yaml", tmp_path / "raw", tmp_path / "empty", None)


def test_no_network_and_no_mirror_is_one_line_with_both_ways(small, server, tmp_path, monkeypatch):
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(UserError) as caught:
        fetch(small / "sources.yaml", tmp_path / "raw", None, None)
    message = str(caught.value)
    assert "\n" not in message
    assert "raw/benchmarks/aime24/test.jsonl is missing (aime24)" in message
    assert "run again with a network" in message and "--mirror DIR" in message
    assert "someone/some-data: not reachable" in message and "someone/hub-data: 127.0.0.1 is not reachable" in message


def test_from_a_mirror_and_only_what_was_asked_for(small, server, tmp_path):
    fetch(small / "sources.yaml", tmp_path / "raw", small, ["gsm8k"])
    assert [path.name for path in (tmp_path / "raw").rglob("*") if path.is_file()] == ["test.jsonl"]
    fetch(small / "sources.yaml", tmp_path / "raw", small, None)
    compare(small, tmp_path / "raw")
    assert not server.requests


def test_a_damaged_mirror_is_refused(small, tmp_path):
    (small / "train/simple.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match=r"simple\.jsonl: SHA-256 .* is not the pinned"):
        fetch(small / "sources.yaml", tmp_path / "raw", small, None)
    (small / "train/simple.jsonl").unlink()
    with pytest.raises(UserError, match=r"simple\.jsonl: simplelr is missing"):
        fetch(small / "sources.yaml", tmp_path / "raw", small, None)


def test_unknown_names_and_places(small, tmp_path):
    with pytest.raises(UserError, match="amc: no such source; allowed: aime24, gsm8k"):
        fetch(small / "sources.yaml", tmp_path / "raw", small, ["amc"])
    with pytest.raises(UserError, match="allowed: hub, github"):
        fetch(small / "sources.yaml", tmp_path / "raw", None, None, place="web")

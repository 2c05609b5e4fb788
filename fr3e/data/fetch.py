"""Fetching the sources' files: from a mirror folder, from GitHub at a commit, or from the Hugging Face hub at a revision.

A file that is there and right is left alone; what arrives is checked before it gets its name. Downloads go on where they
broke off and are tried again when the fault may pass (time-outs, 429, 5xx, broken transfers).
"""

import http.client
import os
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

from fr3e.data.read import MAX_FILE_BYTES, sha256_uncompressed
from fr3e.data.records import load_records
from fr3e.data.sources import Place, Source, SourceFile, check_sha256, find_local, load_sources, locate
from fr3e.errors import UserError
from fr3e.files import replacing, sha256
from fr3e.progress import log, track

ATTEMPTS = 4
TIMEOUT_SECONDS = 20.0
GITHUB_RAW = "https://raw.githubusercontent.com"
HUB = "https://huggingface.co"


class _NotToBeHad(Exception):
    """This place cannot give the file; the message says why."""


def fetch(sources: Path, out: Path, mirror: Path | None, names: list[str] | None, *, place: str | None = None) -> None:
    """Bring the files of the named sources (all when None) to `out`, in the layout of a mirror.

    With `mirror` they are copied from there; else every source's places are tried in the table's order, or only those
    on `place` ("hub" or "github"). Raises `UserError` on one line: which file is missing and both ways to get it.
    """
    if place not in (None, "hub", "github"):
        raise UserError(f"place {place!r}: unknown; allowed: hub, github")
    chosen = load_sources(sources).choose(names)
    for name, source in track(list(chosen.items()), "fetch", unit="sources"):
        if mirror is not None:
            _copy(name, source, mirror, out)
        else:
            _download(name, source, out, place)


def _missing(name: str, source: Source, place: Place, out: Path) -> list[SourceFile]:
    """Files of the place that are not in `out`, or not right: by their checksum, and where none is known by their content."""
    missing = [file for file in place.files if not _is_there(out, file)]
    unknown = [file for file in place.files if file.sha256 is None]
    if not missing and unknown:
        try:
            _check_content(name, source, place, out)
        except UserError as error:
            log.warning("%s; it is fetched again", error)
            return unknown
    return missing


def _is_there(out: Path, file: SourceFile) -> bool:
    """Whether the file is in `out` and does not contradict its checksum."""
    path = find_local(out, file)
    if path is None:
        return False
    found = sha256_uncompressed(path) if path.suffix == ".gz" else sha256(path)
    if file.sha256 in (None, found):
        return True
    log.warning("%s: differs from the pinned file, it is fetched again", path)
    return False


def _complete(name: str, source: Source, places: list[Place], out: Path) -> bool:
    """Whether `out` holds the source, and right: in the first place whose files are all there, which `locate` takes."""
    here = next((place for place in places if all(find_local(out, file) for file in place.files)), None)
    return here is not None and not _missing(name, source, here, out)


def _copy(name: str, source: Source, mirror: Path, out: Path) -> None:
    if _complete(name, source, source.places, out):
        return
    located = locate(mirror, name, source)
    missing = _missing(name, source, located.place, out)
    for file, path in zip(located.place.files, located.paths, strict=True):
        if file not in missing:
            continue
        check_sha256(path, file)
        target = out / file.local
        target = target.with_name(target.name + ".gz") if path.suffix == ".gz" else target
        with replacing(target) as temporary:
            shutil.copyfile(path, temporary)
        log.info("%s: copied from %s", target, path)
    _accept(name, source, located.place, out, missing)


def _download(name: str, source: Source, out: Path, only: str | None) -> None:
    reasons: list[str] = []
    places = [p for p in source.places if only in (None, "hub" if p.hub else "github")]
    if not places:
        raise UserError(f"{name}: config/sources.yaml names no place on {only}; allowed: any other")
    if _complete(name, source, places, out):
        return
    for place in places:
        missing = _missing(name, source, place, out)
        try:
            for file in missing:
                (_from_hub if place.hub else _from_github)(place, file, out)
        except _NotToBeHad as error:
            reasons.append(f"{place.repository}: {error}")
            continue
        _accept(name, source, place, out, missing)
        return
    first = places[0].files[0]
    raise UserError(
        f"{out / first.local} is missing ({name}) and could not be fetched ({'; '.join(reasons)}); "
        f"run again with a network that reaches {places[0].url(first)}, or give a folder that holds {first.local} with --mirror DIR"
    )


def _accept(name: str, source: Source, place: Place, out: Path, arrived: list[SourceFile]) -> None:
    """Check what arrived by its content; what no checksum vouches for is removed when it is refused."""
    try:
        _check_content(name, source, place, out)
    except UserError:
        for file in arrived:
            path = find_local(out, file)
            if file.sha256 is None and path is not None:
                path.unlink()
        raise


def _check_content(name: str, source: Source, place: Place, out: Path) -> None:
    """Read what is there: columns, types, ids and the number of rows must be right even where no checksum is known."""
    only_this = source.model_copy(update={"places": [place]})
    load_records(locate(out, name, only_this))


def _keep(arrived: Path, file: SourceFile, out: Path) -> None:
    """Check a finished download and give it its name; a wrong one is removed, so that it is not resumed."""
    try:
        check_sha256(arrived, file)
    except UserError:
        arrived.unlink()
        raise
    target = out / file.local
    target.parent.mkdir(parents=True, exist_ok=True)
    arrived.replace(target)
    log.info("%s: fetched", target)


def _patiently(attempt: Callable[[], None]) -> None:
    """Call `attempt` up to `ATTEMPTS` times, 1, 2, 4 s apart, while it fails in a way that may pass."""
    for number in range(ATTEMPTS):
        try:
            attempt()
        except (TimeoutError, ConnectionResetError, http.client.HTTPException) as error:
            if number == ATTEMPTS - 1:
                raise _NotToBeHad(f"{ATTEMPTS} attempts failed, the last with {error!r}") from error
            log.info("attempt %d of %d failed (%r), trying again", number + 1, ATTEMPTS, error)
            time.sleep(2.0**number)
        else:
            return


def _from_github(place: Place, file: SourceFile, out: Path) -> None:
    """Download with a range request that continues an earlier `.part` file."""
    base = os.environ.get("FR3E_GITHUB_RAW", GITHUB_RAW)
    url = f"{base}/{place.github}/{place.revision}/{file.path}"
    part = out / f"{file.local}.part"
    part.parent.mkdir(parents=True, exist_ok=True)
    _patiently(lambda: _resume(url, part))
    _keep(part, file, out)


def _resume(url: str, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            if have and answer.status != http.client.PARTIAL_CONTENT:
                have = 0
            _receive(answer, part, have)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return  # the part file is whole already; the checksum decides
        if error.code == http.client.TOO_MANY_REQUESTS or error.code >= 500:
            raise TimeoutError(f"HTTP {error.code}") from error
        raise _NotToBeHad(f"HTTP {error.code} for {url}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError | ConnectionResetError):
            raise error.reason from error
        raise _NotToBeHad(f"not reachable ({error.reason})") from error


def _receive(answer: http.client.HTTPResponse, part: Path, have: int) -> None:
    expected = answer.headers.get("Content-Length")
    with open(part, "ab" if have else "wb") as handle:
        received = 0
        while chunk := answer.read(2**16):
            handle.write(chunk)
            received += len(chunk)
            if have + received > MAX_FILE_BYTES:
                raise _NotToBeHad(f"over {MAX_FILE_BYTES // 2**20} MiB; such a file is refused")
    if expected is not None and received < int(expected):
        raise http.client.IncompleteRead(b"", int(expected) - received)


def _from_hub(place: Place, file: SourceFile, out: Path) -> None:
    """Download with huggingface_hub, which resumes and retries broken transfers itself."""
    from huggingface_hub import errors, hf_hub_download

    endpoint = os.environ.get("HF_ENDPOINT")
    _reach(endpoint or HUB)
    staging = out / ".hub" / str(place.hub)

    def attempt() -> None:
        try:
            arrived = hf_hub_download(
                str(place.hub),
                file.path,
                repo_type="dataset",
                revision=place.revision,
                local_dir=staging,
                endpoint=endpoint,
            )
        except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, socket.gaierror) as error:
            raise _NotToBeHad("the hub is not reachable") from error
        except errors.EntryNotFoundError as error:
            raise _NotToBeHad(f"no file {file.path} at revision {place.revision[:8]}") from error
        except errors.HfHubHTTPError as error:
            status = getattr(error.response, "status_code", 0)
            if status == http.client.TOO_MANY_REQUESTS or status >= 500:
                raise TimeoutError(f"HTTP {status}") from error
            raise _NotToBeHad(f"HTTP {status}") from error
        _keep(Path(arrived), file, out)

    try:
        _patiently(attempt)
    finally:
        shutil.rmtree(out / ".hub", ignore_errors=True)


def _reach(endpoint: str) -> None:
    """Ask once whether the host can be reached: the library would ask for half a minute before it says no."""
    if urllib.request.getproxies():
        return  # behind a proxy the host need not be reachable from here
    parts = urllib.parse.urlsplit(endpoint)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 443), timeout=TIMEOUT_SECONDS).close()
    except OSError as error:
        raise _NotToBeHad(f"{parts.hostname} is not reachable ({error.strerror or error})") from error

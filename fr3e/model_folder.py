"""A model folder, looked at before anything is loaded from it: files that are absent, cut short or not JSON."""

import json
import struct
from pathlib import Path

from fr3e.errors import UserError
from fr3e.files import read_json

NEEDED = ("config.json",)
JSON = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
INDEX = "model.safetensors.index.json"
LONGEST_HEADER = 100_000_000


def check_model_folder(folder: Path) -> None:
    """Refuse (`UserError`) a folder without weights or configuration, and weights whose size is not what they declare.

    Reads the JSON files and the headers of the weights, never the weights. Hashes are the manifest's affair.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such model folder; it is made by `fr3e base`, `fr3e export` or a download")
    for name in JSON:
        if (folder / name).exists() or name in NEEDED:
            read_json(folder / name)
    if (folder / INDEX).is_file():
        weights = read_json(folder / INDEX).get("weight_map")
        if not isinstance(weights, dict) or not weights:
            raise UserError(f"{folder / INDEX}: no weight_map; make or fetch the model again")
        names = sorted({str(name) for name in weights.values()})
    else:
        names = ["model.safetensors"]
    for name in names:
        _check_weights(folder / name)


def listed_files(folder: Path) -> list[Path]:
    """The folder's manifest.json and every file that it lists; a missing or broken one is a `UserError`."""
    manifest = folder / "manifest.json"
    return [manifest, *(folder / name for name in sorted(read_json(manifest, "files")["files"]))]


def _check_weights(path: Path) -> None:
    """The safetensors format: 8 bytes with the header's length, the header as JSON, then as many bytes as it declares."""
    again = "make or fetch the model again"
    if not path.is_file():
        raise UserError(f"{path}: no such file; {again}")
    size = path.stat().st_size
    with open(path, "rb") as handle:
        start = handle.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else LONGEST_HEADER + 1
        if length > min(LONGEST_HEADER, size):
            raise UserError(f"{path}: not a safetensors file, or cut short ({size} bytes); {again}")
        try:
            header = json.loads(handle.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise UserError(f"{path}: its header is damaged ({error}); {again}") from error
    declared = 8 + length + max(ends, default=0)
    if declared != size:
        raise UserError(f"{path}: {size} bytes, its header declares {declared}; it was cut short or altered; {again}")

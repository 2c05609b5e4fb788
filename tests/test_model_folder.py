"""Model folders that are not whole are refused before anything is loaded."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from fr3e.errors import UserError
from fr3e.model_folder import check_model_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_file({"a": torch.zeros(3, 4), "b": torch.ones(5)}, tmp_path / "model.safetensors", {"format": "pt"})
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}', encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    return tmp_path


def test_a_whole_folder_passes(folder: Path) -> None:
    check_model_folder(folder)


def test_weights_in_parts_pass_and_a_missing_part_is_named(folder: Path) -> None:
    parts = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    (folder / "model.safetensors").unlink()
    for name, part in parts.items():
        save_file({name: torch.zeros(2)}, folder / part)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}), encoding="utf-8")
    check_model_folder(folder)
    (folder / "model-2.safetensors").unlink()
    with pytest.raises(UserError, match=r"model-2.safetensors: no such file"):
        check_model_folder(folder)


@pytest.mark.parametrize("kept", [0, 7, 8, 40, -1])
def test_weights_that_were_cut_short_are_named_wherever_the_cut_is(folder: Path, kept: int) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"model.safetensors: .*cut short"):
        check_model_folder(folder)


def test_a_damaged_header_is_named(folder: Path) -> None:
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[8] = ord("x")
    weights.write_bytes(content)
    with pytest.raises(UserError, match=r"model.safetensors: its header is damaged"):
        check_model_folder(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "generation_config.json"])
def test_json_that_is_none_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("[1", encoding="utf-8")
    with pytest.raises(UserError, match=f"{name}: not JSON"):
        check_model_folder(folder)
    (folder / name).write_text("[1]", encoding="utf-8")
    with pytest.raises(UserError, match=f"{name}: expected a JSON object, found list"):
        check_model_folder(folder)


def test_an_absent_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: no such model folder"):
        check_model_folder(tmp_path / "nowhere")

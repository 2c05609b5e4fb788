"""Every shipped configuration loads, the schema is current, and faults speak to people."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fr3e.config import load_scenario, merge, resolve_run, run_ids, schema
from fr3e.config.load import arm_chain, load_run
from fr3e.config.mix import Mix
from fr3e.config.scenario import RealData
from fr3e.errors import UserError
from fr3e.files import read_yaml

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(path for path in (ROOT / "config").glob("*.yaml") if "scenario" in read_yaml(path))


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def demo(**changes: Any) -> dict[str, Any]:
    return merge(read_yaml(ROOT / "config/demo.yaml"), changes)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_shipped_scenario_and_each_of_its_runs_is_valid(path: Path) -> None:
    scenario = load_scenario(path)
    jsonschema.validate(read_yaml(path), schema())
    for model, arm, seed in run_ids(scenario, scenario.methods + scenario.arms).values():
        run = resolve_run(scenario, model, arm, seed)
        assert type(run).model_validate(yaml.safe_load(yaml.safe_dump(run.model_dump(mode="json")))) == run


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = json.loads((ROOT / "config/schema.json").read_text(encoding="utf-8"))
    assert committed == schema(), "run `make schema` and commit config/schema.json"


def is_section(field: dict[str, Any]) -> bool:
    """A section, a choice or a mapping of sections, or the word that names a section's kind."""
    held = [field.get("additionalProperties"), *field.get("patternProperties", {}).values()]
    of_sections = any(isinstance(values, dict) and "$ref" in values for values in held)
    return "$ref" in field or "const" in field or "discriminator" in field or of_sections


def test_every_field_is_described_with_its_source() -> None:
    whole = schema()
    seen = 0
    for name, definition in [("Scenario", whole), *whole["$defs"].items()]:
        for key, field in definition.get("properties", {}).items():
            if not is_section(field) or "description" in field:
                seen += 1
                words = field.get("description", "")
                assert re.search(r"\[(paper|code|article|ours)\b", words), f"{name}.{key}: no source in {words!r}"
    assert seen > 130


def test_paper_scenario_is_table_1() -> None:
    scenario = load_scenario(ROOT / "config/paper.yaml")
    assert len(run_ids(scenario)) == 6
    assert len(run_ids(scenario)) * len(scenario.benchmarks) == 48
    math = resolve_run(scenario, "qwen2.5-math-7b", "fr3e", 0).training
    assert (math.fr3e.num_anchors, math.fr3e.rollouts_per_state, math.fr3e.first_n) == (4, 16, 4)
    assert (math.loss.clip_low, math.loss.clip_high, math.optim.lr, math.optim.minibatches) == (0.22, 0.28, 1e-6, 4)
    assert (math.accum.groups_per_update, math.rollout.max_total_tokens) == (512, 3072)
    baseline = resolve_run(scenario, "qwen2.5-math-7b", "grpo_pp", 0).training
    assert (baseline.fr3e.num_anchors, baseline.fr3e.first_n, baseline.fr3e.rollouts_per_state) == (0, 0, 16)
    # Only the exploration differs between the two methods, and the size of its rounds (benchmarks/freshness.py).
    assert math.model_copy(update={"fr3e": baseline.fr3e, "rollout": baseline.rollout}) == baseline
    assert math.rollout.model_copy(update={"prompts_per_round": 512}) == baseline.rollout


def test_the_papers_mix_is_written_out_and_the_clean_arm_differs_in_overlap_alone() -> None:
    paper = read_yaml(ROOT / "config/paper.yaml")
    written = load_scenario(paper).data
    assert isinstance(written, RealData) and written == RealData()
    assert set(paper["data"]["mix"]) == set(Mix.model_fields)
    clean = load_scenario(merge(paper, read_yaml(ROOT / "config/overlays/paper_clean.yaml"))).data
    assert isinstance(clean, RealData)
    assert clean.chosen_mix == written.chosen_mix.model_copy(update={"overlap": "latex"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": {"fr3e": {"num_anchor": 3}}}, ["num_anchor", "did you mean 'num_anchors'"]),
        ({"sceanrio": "x"}, ["sceanrio", "did you mean 'scenario'"]),
        ({"train": {"loss": {"clip_low": 1.5}}}, ["loss.clip_low", "less than 1", "1.5"]),
        ({"methods": ["grpo_pp", "fr3e", "free"]}, ["'free'", "config/arms", "grpo_pp"]),
        ({"train": {"rollout": {"max_total_tokens": 4000}}}, ["max_total_tokens", "4096", "max_positions 1024"]),
        ({"train": {"fr3e": {"alpha_mode": "louder"}}}, ["alpha_mode", "'amplify_only'", "louder"]),
        ({"benchmarks": {"chain": {"protocols": ["avg9"]}}}, ["benchmarks.chain.protocols", "'avg9'", "greedy"]),
        ({"train": {"probe": {"benchmarks": ["chian"]}}}, ["probe.benchmarks", "'chian'", "chain"]),
        ({"overrides": {"fr3e": {"fr3e": {"first_n": 0}}}}, ["num_anchors 3 needs first rollouts"]),
        # Every arm sets K anew, so no run ever has the -1.
        ({"train": {"fr3e": {"num_anchors": -1}}}, ["train.fr3e.num_anchors", "greater than or equal to 0", "-1"]),
        ({"overrides": {"fr3e": {"optim": {"lrr": 1}}}}, ["overrides.fr3e.optim.lrr", "did you mean 'lr'"]),
        ({"overrides": {"fr3ee": {"optim": {"lr": 1e-3}}}}, ["overrides.fr3ee", "no such arm", "did you mean 'fr3e'"]),
        ({"planning": {"mixed_share_of": {"fr3ee": 0.5}}}, ["planning.mixed_share_of.fr3ee", "no such arm"]),
        ({"models": {"toy": {"train": {"optim": {"lr": "x"}}}}}, ["models.toy.train.optim.lr", "number", "'x'"]),
        ({"models": {"toy": {"template": "dmeo"}}}, ["models.toy.template", "'dmeo'", "demo, qwen25_math_cot"]),
        ({"seeds": [0, 1, 0]}, ["seeds", "0 stands there twice"]),
        ({"seeds": [2**32]}, ["seeds.0", "less than 4294967296"]),
        ({"arms": ["grpo", "grpo"]}, ["arms", "'grpo' stands there twice"]),
        # YAML's yes, on and true would count as 1.
        ({"train": {"optim": {"updates": True}}}, ["optim.updates", "not be true or false", "True"]),
        ({"train": {"optim": {"lr": True}}}, ["optim.lr", "not be true or false"]),
        (
            {"overrides": {"fr3e": {"fr3e": {"num_anchors": True}}}},
            ["overrides.fr3e.fr3e.num_anchors", "true or false"],
        ),
        ({"planning": {"mixed_share_of": {"fr3e": True}}}, ["mixed_share_of", "not be true or false"]),
        ({"seeds": [True]}, ["seeds", "not be true or false"]),
        ({"evaluation": {"max_tokens": True}}, ["evaluation.max_tokens", "not be true or false"]),
    ],
)
def test_faults_name_the_key_what_was_found_and_what_is_allowed(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UserError) as error:
        scenario = load_scenario(demo(**changes))
        for model, arm, seed in run_ids(scenario).values():
            resolve_run(scenario, model, arm, seed)
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("content", "found"), [("", "nothing, the file is empty"), ("[1]", "list"), ("a", "str")])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, content: str, found: str) -> None:
    source = tmp_path / "a.yaml"
    source.write_text(content, encoding="utf-8")
    for load in (load_scenario, load_run, lambda path: arm_chain(path.stem, path.parent)):
        with pytest.raises(UserError, match=f"a.yaml: expected a mapping of .*, found {found}"):
            load(source)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("trian: {}", ["a.yaml: trian", "allowed: question, subject, extends, train"]),
        ("train: [1]", ["a.yaml: train", "expected dict", "[1]"]),
        ("extends: 5", ["a.yaml: extends", "expected str", "5"]),
        ("train: {optim: {lr: -1}}", ["a.yaml: train.optim.lr", "greater than 0", "-1"]),
        ("extends: nobody", ["'nobody'", "there are: a"]),
    ],
)
def test_faults_of_an_arm_name_its_file_and_key(tmp_path: Path, content: str, words: list[str]) -> None:
    (tmp_path / "a.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as error:
        arm_chain("a", tmp_path)
    assert all(word in str(error.value) for word in words)


def test_an_arm_that_extends_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("extends: b\ntrain: {}\n", encoding="utf-8")
    (tmp_path / "b.yaml").write_text("extends: a\ntrain: {}\n", encoding="utf-8")
    with pytest.raises(UserError, match="extends itself through a -> b"):
        arm_chain("a", tmp_path)


def test_overrides_of_an_arm_reach_the_arms_that_extend_it() -> None:
    scenario = load_scenario(demo())
    run = resolve_run(scenario, next(iter(scenario.models)), "random_anchors", 0).training
    assert run.fr3e.anchor_score == "random"
    assert run.fr3e.rollouts_per_state == 8, "demo.yaml's override of fr3e"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["config", "check", "--config", "absent.yaml"], ["absent.yaml", "no such file"]),
        (["train", "--run", "absent.yaml", "--out", "x"], ["absent.yaml", "no such file"]),
        (["grade"], ["--generations", "--explain"]),
        (["config", "write", "--json", "{bad", "--out", "x"], ["--json", "not JSON"]),
        (
            ["plan", "--config", "config/paper.yaml", "--tokens-per-second", "0"],
            ["--tokens-per-second", "above 0", "0.0"],
        ),
        (["data", "ensure", "--config", "config/site.yaml"], ["config/site.yaml", "no section `data`"]),
    ],
)
def test_the_command_line_answers_in_one_line_with_code_2(arguments: list[str], words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "fr3e", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words)


def test_every_command_has_help() -> None:
    done = subprocess.run([sys.executable, "-m", "fr3e", "--help"], capture_output=True, text=True, check=True)
    for verb in ("train", "export", "sample", "grade", "score", "evaluate", "verify", "trace", "plan", "doctor"):
        assert verb in done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "config/overlays").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_overlay_is_valid_over_the_scenario_it_names_and_has_results_of_its_own(path: Path) -> None:
    base = re.search(r"Laid over (config/\w+\.yaml)", path.read_text(encoding="utf-8"))
    assert base, f"{path}: say which scenario it is laid over"
    below = read_yaml(ROOT / base[1])
    scenario = load_scenario(merge(below, read_yaml(path)))
    assert scenario.scenario not in {read_yaml(other)["scenario"] for other in SCENARIOS}
    for model, arm, seed in run_ids(scenario, scenario.methods + scenario.arms).values():
        resolve_run(scenario, model, arm, seed)

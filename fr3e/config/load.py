"""From YAML files to checked, resolved configurations. Merging is a deep update of mappings; lists are replaced."""

import difflib
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from fr3e.config.scenario import RunConfig, RunModel, Scenario
from fr3e.config.training import TrainingConfig
from fr3e.errors import UserError
from fr3e.files import read_yaml, write_text

M = TypeVar("M", bound=BaseModel)
ARMS = Path("config/arms")
ARM_KEYS = {"question": str, "subject": str, "extends": str, "train": dict}


def merge(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A new mapping: `base` with `change` laid over it, mapping by mapping."""
    merged = dict(base)
    for key, value in change.items():
        merged[key] = (
            merge(merged[key], value) if isinstance(value, dict) and isinstance(merged.get(key), dict) else value
        )
    return merged


def checked(model: type[M], values: Any, where: str) -> M:
    """Validate `values`; the first fault becomes one line with the key, what was found and what is allowed."""
    if not isinstance(values, dict):
        found = "nothing, the file is empty" if values is None else type(values).__name__
        raise UserError(f"{where}: expected a mapping of keys, found {found}")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserError(_line(model, list(error.errors()), where)) from None


def check_layer(values: dict[str, Any], where: str) -> None:
    """Refuse a layer of training settings with an unknown key or a value that no run may have.

    Later layers may hide such a fault from `training`, and its message knows neither file nor layer. What several keys
    must fulfil together is left to `training`: a layer alone need not.
    """
    try:
        TrainingConfig.model_validate(values)
    except ValidationError as error:
        if faults := [fault for fault in error.errors() if fault["type"] != "value_error"]:
            raise UserError(_line(TrainingConfig, faults, where, ".")) from None


def _line(model: type[BaseModel], faults: list[Any], where: str, separator: str = ": ") -> str:
    fault = faults[0]
    key = ".".join(str(part) for part in fault["loc"]) or "(whole file)"
    found = "" if fault["type"] in ("missing", "value_error") else f", found {str(fault['input'])[:80]!r}"
    if fault["type"] == "extra_forbidden":
        found = f"; {_nearest(model, fault['loc'])}"
    more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where}{separator}{key}: {fault['msg'].removeprefix('Value error, ')}{found}{more}"


def _nearest(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """What keys are allowed where the unknown key stands, the closest spelling first."""
    fields: dict[str, Any] | None = model.model_fields
    for part in loc[:-1]:
        annotation = getattr((fields or {}).get(str(part)), "annotation", None)
        fields = annotation.model_fields if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    allowed = list(fields or {})
    close = difflib.get_close_matches(str(loc[-1]), allowed, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}allowed: {', '.join(allowed)}" if allowed else "not an allowed key"


def load_scenario(source: str | Path | dict[str, Any]) -> Scenario:
    """Load a scenario file (or an already parsed mapping) and check every layer of training settings in it."""
    values, where = (source, "configuration") if isinstance(source, dict) else (read_yaml(source), str(source))
    scenario = checked(Scenario, values, where)
    check_layer(scenario.train, f"{where}: train")
    for arm, change in scenario.overrides.items():
        check_layer(change, f"{where}: overrides.{arm}")
    for name, model in scenario.models.items():
        check_layer(model.train, f"{where}: models.{name}.train")
    return scenario


def read_arm(arm: str, arms: Path = ARMS) -> dict[str, Any]:
    """The content of an arm's file: `question`, `subject`, `extends`, `train`. Another key, or a wrong type, is a `UserError`."""
    source = arms / f"{arm}.yaml"
    overlay = read_yaml(source)
    if not isinstance(overlay, dict):
        found = "nothing, the file is empty" if overlay is None else type(overlay).__name__
        raise UserError(f"{source}: expected a mapping of question, subject, extends and train, found {found}")
    for key, value in overlay.items():
        if key not in ARM_KEYS:
            raise UserError(f"{source}: {key}: not an allowed key; allowed: {', '.join(ARM_KEYS)}")
        if value is not None and not isinstance(value, ARM_KEYS[key]):
            raise UserError(f"{source}: {key}: expected {ARM_KEYS[key].__name__}, found {str(value)[:80]!r}")
    check_layer(overlay.get("train") or {}, f"{source}: train")
    return overlay


def known_arms(arms: Path = ARMS) -> list[str]:
    """Names of the arms that have a file, sorted."""
    return sorted(path.stem for path in arms.glob("*.yaml"))


def arm_chain(arm: str, arms: Path = ARMS) -> list[str]:
    """The arm and those it extends, the most general first. An arm that does not exist is a `UserError`."""
    chain: list[str] = []
    name: str | None = arm
    while name is not None:
        if name in chain:
            raise UserError(f"{arms}/{name}.yaml: extends itself through {' -> '.join(chain)}")
        if not (arms / f"{name}.yaml").is_file():
            raise UserError(f"no method or arm {name!r} in {arms}; there are: {', '.join(known_arms(arms))}")
        chain.append(name)
        name = read_arm(name, arms).get("extends")
    return chain[::-1]


def training(scenario: Scenario, arm: str, model: str, arms: Path = ARMS) -> TrainingConfig:
    """Training settings of one run: scenario, then each arm of the chain with its overrides, then the model."""
    for key, names in (("overrides", scenario.overrides), ("planning.mixed_share_of", _shares(scenario))):
        for name in names:
            if name not in known_arms(arms):
                close = difflib.get_close_matches(name, known_arms(arms), n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                raise UserError(f"{key}.{name}: no such arm; {hint}{arms} has {', '.join(known_arms(arms))}")
    values = dict(scenario.train)
    for name in arm_chain(arm, arms):
        values = merge(values, read_arm(name, arms).get("train") or {})
        values = merge(values, scenario.overrides.get(name, {}))
    values = merge(values, scenario.models[model].train)
    return checked(TrainingConfig, values, f"training settings of {model} with {arm}")


def _shares(scenario: Scenario) -> list[str]:
    return list(scenario.planning.mixed_share_of) if scenario.planning else []


def run_ids(
    scenario: Scenario, arms: list[str] | None = None, models: list[str] | None = None
) -> dict[str, tuple[str, str, int]]:
    """Run id -> (model, arm, seed), in table order."""
    return {
        f"{model}-{arm}-s{seed}": (model, arm, seed)
        for model in (models or scenario.models)
        for arm in (arms or scenario.methods)
        for seed in scenario.seeds
    }


def resolve_run(scenario: Scenario, model: str, arm: str, seed: int, arms: Path = ARMS) -> RunConfig:
    """The run.yaml of one run. Paths are relative to the working folder."""
    root = f"results/{scenario.scenario}"
    settings = training(scenario, arm, model, arms)
    for name in settings.probe.benchmarks:
        if name not in scenario.benchmarks:
            raise UserError(f"train.probe.benchmarks names {name!r}; benchmarks has {', '.join(scenario.benchmarks)}")
    data = "data" if scenario.data.kind == "real" else f"{root}/data"
    values = {
        "run": f"{model}-{arm}-s{seed}",
        "scenario": scenario.scenario,
        "arm": arm,
        "model_name": model,
        "model": scenario.models[model].model_dump(include=set(RunModel.model_fields)),
        "seed": seed,
        "training": settings,
        "base": f"{root}/base/{model}",
        "data": f"{data}/train.parquet",
        "benchmarks": {name: f"{data}/benchmarks/{name}.parquet" for name in settings.probe.benchmarks},
    }
    return checked(RunConfig, values, f"run {values['run']}")


def dump(config: BaseModel, target: str | Path) -> None:
    """Write a resolved configuration as YAML, atomically, in the order of the fields."""
    write_text(target, yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120))


def load_run(source: str | Path) -> RunConfig:
    """Load run.yaml."""
    return checked(RunConfig, read_yaml(source), str(source))


def schema() -> dict[str, Any]:
    """JSON schema of a scenario file, with the training settings it may change under $defs.TrainingConfig."""
    result = Scenario.model_json_schema()
    training_schema = TrainingConfig.model_json_schema(ref_template="#/$defs/{model}")
    result["$defs"] |= training_schema.pop("$defs") | {"TrainingConfig": training_schema}
    return result

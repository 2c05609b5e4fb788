# What all rules share: the frozen scenario, the runs it implies, fingerprints, site values.
import json
import os
import sys
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError

from snakemake.settings.types import DeploymentMethod

from fr3e.config import load_scenario, load_site, resolve_run, run_ids
from fr3e.config.load import training as training_settings
from fr3e.config.plans import eval_plan, report_plan
from fr3e.config.site import check_gpus
from fr3e.errors import UserError
from fr3e.files import read_json, read_yaml, write_json
from fr3e.provenance import fingerprint
from fr3e.provenance.manifest import CODE_SNAPSHOT


def frozen(variable, make):
    """What `make` gave when the command was given: a job's own Snakemake, which may start days later, reads the snapshot."""
    if not workflow.is_main_process and variable in os.environ:
        return read_json(os.environ[variable])
    values = make()
    name = variable.removeprefix("FR3E_").removesuffix("_SNAPSHOT").lower()
    path = Path(".snakemake/fr3e") / f"{name}-{fingerprint.values(values)}.json"
    write_json(path, values)
    os.environ[variable] = str(path.resolve())
    return values


def given_config():
    values = {key: value for key, value in config.items() if key != "target"}
    return values or read_yaml("config/paper.yaml")


def checked(make):
    """Run `make`; a fault of the user's is one line, not a traceback."""
    try:
        return make()
    except UserError as error:
        raise WorkflowError(str(error)) from None


TARGET = config.get("target", "all")
SCENARIO = checked(lambda: load_scenario(frozen("FR3E_CONFIG_SNAPSHOT", given_config)))
CODE = checked(
    lambda: frozen(
        CODE_SNAPSHOT,
        lambda: {stage: fingerprint.code(stage) for stage in fingerprint.STAGES},
    )
)
RESULTS = f"results/{SCENARIO.scenario}"
DATA = "data" if SCENARIO.data.kind == "real" else f"{RESULTS}/data"
SITE = checked(load_site)
FR3E = f"{sys.executable} -m fr3e"
# A stage's command: in an image it is the image's Python; the distributed engine and vLLM have an environment of their own.
# Without --software-deployment-method apptainer (the Slurm profile has it) Snakemake would run it outside the image.
IN_IMAGES = DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method
IMAGE = (SITE.container if IN_IMAGES else "") or None
VERL_IMAGE = (SITE.verl_container if IN_IMAGES else "") or None
STAGE = "python3 -m fr3e" if IMAGE else FR3E
VERL = (
    "python3 -m fr3e" if VERL_IMAGE else f"{SITE.verl_python or sys.executable} -m fr3e"
)
VLLM = SCENARIO.evaluation.engine == "vllm"
# Apptainer's own variables reach Snakemake's calls of it and with_ray.sh's alike, in every job.
if IMAGE or VERL_IMAGE:
    bound = filter(None, os.environ.get("APPTAINER_BINDPATH", "").split(","))
    os.environ["APPTAINER_BINDPATH"] = ",".join(dict.fromkeys([*bound, *SITE.bind]))
if VERL_IMAGE:
    os.environ["APPTAINER_NV"] = "1"

METHOD_RUNS = run_ids(SCENARIO)
ARM_RUNS = run_ids(
    SCENARIO, SCENARIO.arms, SCENARIO.arm_models or list(SCENARIO.models)
)
RUNS = METHOD_RUNS | ARM_RUNS
RUN_CONFIGS = checked(
    lambda: {run: resolve_run(SCENARIO, *key) for run, key in RUNS.items()}
)
checked(lambda: check_gpus(SITE, SCENARIO, RUN_CONFIGS))
ON_CUDA = any(run.training.verl.device == "cuda" for run in RUN_CONFIGS.values())
VERL_PINS = "verl-gpu" if ON_CUDA else "verl"
BASES = {f"base-{model}": model for model in SCENARIO.models}
TAGS = [*BASES, *METHOD_RUNS]
ARM_TAGS = [*TAGS, *(run for run in ARM_RUNS if run not in METHOD_RUNS)]
BENCHMARKS = list(SCENARIO.benchmarks)


wildcard_constraints:
    run="|".join(RUNS),
    tag="|".join([*BASES, *RUNS]),
    model="|".join(SCENARIO.models),
    benchmark="|".join(BENCHMARKS),


def of_arms(key):
    """What the arms' own files say under `key`: the question they answer, the subject they vary."""
    files = {
        arm: read_yaml(f"config/arms/{arm}.yaml")
        for arm in [*SCENARIO.methods, *SCENARIO.arms]
    }
    return {arm: content[key] for arm, content in files.items() if content.get(key)}


def plan_values(name):
    """The content of one resolved plan; each holds only what its stage reads, so that other edits do not rerun it."""
    kind, _, what = name.partition("/")
    if kind == "data":
        return {
            "scenario": SCENARIO.scenario,
            "data": SCENARIO.data.model_dump(mode="json"),
            "benchmark": (
                None
                if what in ("train", "real")
                else SCENARIO.benchmarks[what].model_dump(
                    mode="json", include={"family", "sample_of"}
                )
            ),
        }
    if kind == "base":
        return SCENARIO.models[what].model_dump(
            mode="json", include={"base", "max_positions", "rope_override", "template"}
        )
    if kind == "run":
        return RUN_CONFIGS[what].model_dump(mode="json")
    if kind == "eval":
        model, arm, seed = RUNS.get(what) or (BASES[what], None, None)
        return eval_plan(SCENARIO, model, arm, seed).model_dump(mode="json")
    with_arms = name == "report-arms"
    subjects = of_arms("subject") if with_arms else {}
    return report_plan(SCENARIO, with_arms, of_arms("question"), subjects).model_dump(
        mode="json"
    )


def stage_resource(stage, key, default):
    """A stage's request to a cluster: scenario, else default."""
    resources = SCENARIO.resources.get(stage)
    return getattr(resources, key) if resources else default


def slurm(gpus=0):
    """What every job asks of this site's Slurm; `gpus` of one node may be a function of the wildcards."""
    asked = {
        "slurm_partition": SITE.gpu_partition if gpus else SITE.cpu_partition,
        "slurm_account": SITE.account,
        "qos": SITE.qos,
    }
    if callable(gpus):
        asked["gres"] = lambda wildcards: SITE.gres(gpus(wildcards))
    elif gpus:
        asked["gres"] = SITE.gres(gpus)
    return {key: value for key, value in asked.items() if value}


def code(stage):
    return CODE[stage]


def software(environment="default"):
    """Fingerprint of the constraints file of an environment: a changed pin reruns what it may change."""
    return fingerprint.file(f"constraints/{environment}.txt")


rule plan:
    output:
        f"{RESULTS}/plans/{{plan}}.yaml",
    log:
        f"{RESULTS}/logs/plans/{{plan}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/plans/{{plan}}.tsv"
    wildcard_constraints:
        plan="data/.+|base/.+|run/.+|eval/.+|report|report-arms",
    params:
        values=lambda w: json.dumps(plan_values(w.plan)),
    message:
        "Freezing {output}"
    shell:
        "{FR3E} config write --json {params.values:q} --out {output} 2> {log}"


localrules:
    plan,

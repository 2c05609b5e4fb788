# Base model -> training -> model folder.
ENGINE = {run_config.training.engine for run_config in RUN_CONFIGS.values()}
if len(ENGINE) > 1:
    raise WorkflowError("all runs of a scenario use one engine; set train.engine once")
ENGINE = ENGINE.pop()
ON_VERL = ENGINE == "verl"


def shape(run):
    return RUN_CONFIGS[run].training.verl


# Runs on several nodes are a rule of their own: only they run bare in the batch script, where Ray is started.
MANY_NODES = [run for run in RUNS if ON_VERL and shape(run).nodes > 1]
ONE_NODE = [run for run in RUNS if run not in MANY_NODES]
# Without `tasks`, gres alone asks for the GPUs of each node and starts the command once (docs/cluster.md).
TRAIN_RESOURCES = {
    "mem_mb": stage_resource("train", "mem_mb", 4000),
    "runtime": stage_resource("train", "runtime", 60),
    **slurm((lambda w: shape(w.run).gpus_per_node) if ON_VERL else 0),
}


def probe_files(wildcards):
    if SCENARIO.data.kind == "real":
        return []
    return list(RUN_CONFIGS[wildcards.run].benchmarks.values())


def train_command(wildcards, input):
    """The distributed engine starts Ray on every node of its allocation first.

    Naming `input` makes it a derived parameter: another interpreter, image or scratch folder retrains nothing.
    """
    if not ON_VERL:
        return f"{STAGE} train"
    image = f"--container {VERL_IMAGE} " if VERL_IMAGE else ""
    nodes, gpus = shape(wildcards.run).nodes, shape(wildcards.run).gpus_per_node
    options = f"--nodes {nodes} --gpus {gpus} --scratch {SITE.ray_scratch} {image}"
    return f"workflow/scripts/with_ray.sh {options}-- {VERL} train"


# A model of the hub is fetched where Snakemake runs: compute nodes often have no way out.
HUB_MODELS = [
    name for name, model in SCENARIO.models.items() if model.base.kind == "hub"
]
OWN_MODELS = [name for name in SCENARIO.models if name not in HUB_MODELS]


def base_threads(wildcards):
    own = SCENARIO.models[wildcards.model].base.threads
    return max(own, stage_resource("base", "cpus", 1))


def train_threads(wildcards):
    own = RUN_CONFIGS[wildcards.run].training.threads
    return stage_resource("train", "cpus", 64) if ON_VERL else own


rule base_model:
    input:
        plan=f"{RESULTS}/plans/base/{{model}}.yaml",
    output:
        f"{RESULTS}/base/{{model}}/manifest.json",
    log:
        f"{RESULTS}/logs/base/{{model}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/base/{{model}}.tsv"
    wildcard_constraints:
        model="|".join(OWN_MODELS) or "none",
    container:
        IMAGE
    threads: base_threads
    resources:
        **slurm(),
        mem_mb=stage_resource("base", "mem_mb", 4000),
        runtime=stage_resource("base", "runtime", 30),
    params:
        code=code("base"),
        software=software(),
        command=lambda w, input: STAGE,
    message:
        "Base model {wildcards.model}"
    shell:
        "{params.command} base --plan {input.plan} --out $(dirname {output}) 2> {log}"


use rule base_model as hub_model with:
    wildcard_constraints:
        model="|".join(HUB_MODELS) or "none",
    container:
        None
    threads: 1
    params:
        code=code("base"),
        software=software(),
        command=lambda w, input: FR3E,


localrules:
    hub_model,


rule train:
    input:
        plan=f"{RESULTS}/plans/run/{{run}}.yaml",
        base=lambda w: f"{RESULTS}/base/{RUNS[w.run][0]}/manifest.json",
        data=train_data,
        probes=probe_files,
    output:
        trained=f"{RESULTS}/runs/{{run}}/trained.json",
        metrics=f"{RESULTS}/runs/{{run}}/metrics.jsonl",
        trajectories=f"{RESULTS}/runs/{{run}}/trajectories.jsonl",
    log:
        f"{RESULTS}/logs/train/{{run}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/train/{{run}}.tsv"
    wildcard_constraints:
        run="|".join(ONE_NODE) or "none",
    container:
        None if ON_VERL else IMAGE
    threads: train_threads
    resources:
        **TRAIN_RESOURCES,
    params:
        code=code(f"train-{ENGINE}"),
        software=software(VERL_PINS if ON_VERL else "default"),
        command=train_command,
        stamp=f"--stamp {RESULTS}/data.json" if SCENARIO.data.kind == "real" else "",
    message:
        "Training {wildcards.run}"
    shell:
        "{params.command} --run {input.plan} --out $(dirname {output.trained}) {params.stamp} 2>> {log}"


use rule train as train_nodes with:
    wildcard_constraints:
        run="|".join(MANY_NODES) or "none",
    resources:
        **TRAIN_RESOURCES,
        mpi="srun",
        nodes=lambda w: shape(w.run).nodes,
        tasks=lambda w: shape(w.run).nodes,
        tasks_per_gpu=0,


rule export:
    input:
        plan=f"{RESULTS}/plans/run/{{run}}.yaml",
        trained=f"{RESULTS}/runs/{{run}}/trained.json",
    output:
        f"{RESULTS}/runs/{{run}}/model/manifest.json",
    log:
        f"{RESULTS}/logs/export/{{run}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/export/{{run}}.tsv"
    container:
        VERL_IMAGE if ON_VERL else IMAGE
    threads: stage_resource("export", "cpus", 1)
    resources:
        **slurm(),
        mem_mb=stage_resource("export", "mem_mb", 4000),
        runtime=stage_resource("export", "runtime", 30),
    params:
        code=code(f"export-{ENGINE}"),
        command=lambda w, input: VERL if ON_VERL else STAGE,
    message:
        "Exporting the model of {wildcards.run}"
    shell:
        "{params.command} export --run {input.plan} --trained {input.trained} --out $(dirname {output}) 2> {log}"

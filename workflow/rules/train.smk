# Base model -> training -> model folder.
def engine(run):
    return RUN_CONFIGS[run].training.engine


def probe_files(wildcards):
    if SCENARIO.data.kind == "real":
        return []
    return list(RUN_CONFIGS[wildcards.run].benchmarks.values())


def train_command(wildcards):
    """The distributed engine starts Ray on every node of its allocation first."""
    if engine(wildcards.run) == "local":
        return f"{FR3E} train"
    shape = RUN_CONFIGS[wildcards.run].training.verl
    return f"workflow/scripts/with_ray.sh --nodes {shape.nodes} --gpus {shape.gpus_per_node} -- {FR3E_VERL} train"


def on_verl(wildcards, if_verl, otherwise):
    return if_verl if engine(wildcards.run) == "verl" else otherwise


def base_threads(wildcards):
    return getattr(SCENARIO.models[wildcards.model].base, "threads", 1)


def train_threads(wildcards):
    own = RUN_CONFIGS[wildcards.run].training.threads
    return on_verl(wildcards, stage_resource("train", "cpus", 64), own)


rule base_model:
    input:
        plan=f"{RESULTS}/plans/base/{{model}}.yaml",
    output:
        f"{RESULTS}/base/{{model}}/manifest.json",
    log:
        f"{RESULTS}/logs/base/{{model}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/base/{{model}}.tsv"
    threads: base_threads
    resources:
        mem_mb=stage_resource("base", "mem_mb", 4000),
        runtime=stage_resource("base", "runtime", 30),
    params:
        code=code("base"),
        software=software(),
    message:
        "Base model {wildcards.model}"
    shell:
        "{FR3E} base --plan {input.plan} --out $(dirname {output}) 2> {log}"


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
    threads: train_threads
    resources:
        mem_mb=stage_resource("train", "mem_mb", 4000),
        runtime=stage_resource("train", "runtime", 60),
        slurm_partition=lambda w: on_verl(
            w, SITE.get("gpu_partition", "gpu"), SITE.get("cpu_partition", "cpu")
        ),
        nodes=lambda w: on_verl(w, RUN_CONFIGS[w.run].training.verl.nodes, 1),
    params:
        code=lambda w: code(f"train-{engine(w.run)}"),
        software=lambda w: software(on_verl(w, "verl", "default")),
        command=train_command,
    message:
        "Training {wildcards.run}"
    shell:
        "{params.command} --run {input.plan} --out $(dirname {output.trained}) 2>> {log}"


rule export:
    input:
        plan=f"{RESULTS}/plans/run/{{run}}.yaml",
        trained=rules.train.output.trained,
    output:
        f"{RESULTS}/runs/{{run}}/model/manifest.json",
    log:
        f"{RESULTS}/logs/export/{{run}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/export/{{run}}.tsv"
    resources:
        mem_mb=stage_resource("export", "mem_mb", 4000),
        runtime=stage_resource("export", "runtime", 30),
    params:
        code=lambda w: code(f"export-{engine(w.run)}"),
        command=lambda w: on_verl(w, FR3E_VERL, FR3E),
    message:
        "Exporting the model of {wildcards.run}"
    shell:
        "{params.command} export --run {input.plan} --trained {input.trained} --out $(dirname {output}) 2> {log}"

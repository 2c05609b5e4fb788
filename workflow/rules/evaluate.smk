# sample -> grade -> score. One sampling job serves all benchmarks of a model that are due: its outputs are updated in
# place, so that a benchmark added later samples only that one.
def model_manifest(wildcards):
    if wildcards.tag in BASES:
        return f"{RESULTS}/base/{BASES[wildcards.tag]}/manifest.json"
    return f"{RESULTS}/runs/{wildcards.tag}/model/manifest.json"


rule sample:
    input:
        plan=f"{RESULTS}/plans/eval/{{tag}}.yaml",
        model=model_manifest,
        data=all_benchmark_data(),
    output:
        [
            update(f"{RESULTS}/evaluation/{{tag}}/{benchmark}/generations.parquet")
            for benchmark in BENCHMARKS
        ],
    log:
        f"{RESULTS}/logs/sample/{{tag}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/sample/{{tag}}.tsv"
    container:
        VERL_IMAGE if VLLM else IMAGE
    threads: stage_resource("sample", "cpus", 1)
    resources:
        **slurm(SCENARIO.evaluation.tensor_parallel if VLLM else 0),
        mem_mb=stage_resource("sample", "mem_mb", 4000),
        runtime=stage_resource("sample", "runtime", 60),
    params:
        code=code("sample"),
        software=software(VERL_PINS if VLLM else "default"),
        command=lambda w, input: VERL if VLLM else STAGE,
    message:
        "Sampling {wildcards.tag} on every benchmark that is due"
    shell:
        "{params.command} sample --plan {input.plan} --out {RESULTS}/evaluation/{wildcards.tag} 2> {log}"


rule grade:
    input:
        generations=f"{RESULTS}/evaluation/{{tag}}/{{benchmark}}/generations.parquet",
        data=benchmark_data,
    output:
        f"{RESULTS}/evaluation/{{tag}}/{{benchmark}}/verdicts.parquet",
    log:
        f"{RESULTS}/logs/grade/{{tag}}/{{benchmark}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/grade/{{tag}}/{{benchmark}}.tsv"
    group:
        "grade-{tag}"
    container:
        IMAGE
    threads: stage_resource("grade", "cpus", SCENARIO.evaluation.grade_workers)
    resources:
        **slurm(),
        mem_mb=stage_resource("grade", "mem_mb", 4000),
        runtime=stage_resource("grade", "runtime", 30),
    params:
        code=code("grade"),
        benchmark=lambda w: f"{DATA}/benchmarks/{w.benchmark}.parquet",
        workers=SCENARIO.evaluation.grade_workers,
    message:
        "Grading {wildcards.tag} on {wildcards.benchmark}"
    shell:
        "{STAGE} grade --generations {input.generations} --benchmark {params.benchmark} --out {output} --workers {params.workers} 2> {log}"


rule score:
    input:
        plan=f"{RESULTS}/plans/eval/{{tag}}.yaml",
        verdicts=expand(
            f"{RESULTS}/evaluation/{{{{tag}}}}/{{benchmark}}/verdicts.parquet",
            benchmark=BENCHMARKS,
        ),
    output:
        f"{RESULTS}/evaluation/{{tag}}/scores.csv",
    log:
        f"{RESULTS}/logs/score/{{tag}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/score/{{tag}}.tsv"
    group:
        "grade-{tag}"
    container:
        IMAGE
    resources:
        **slurm(),
    params:
        code=code("score"),
        verdicts=lambda w, input: " ".join(
            f"--verdicts {path}" for path in input.verdicts
        ),
    message:
        "Scoring {wildcards.tag}"
    shell:
        "{STAGE} score {params.verdicts} --plan {input.plan} --out {output} 2> {log}"

# Problems: synthetic ones for the demo, or data/ under its content lock.
if SCENARIO.data.kind == "synthetic":

    rule synthetic_data:
        input:
            plan=f"{RESULTS}/plans/data/{{what}}.yaml",
        output:
            f"{DATA}/{{what}}.parquet",
        log:
            f"{RESULTS}/logs/data/{{what}}.log",
        benchmark:
            f"{RESULTS}/benchmarks-of-rules/data/{{what}}.tsv"
        wildcard_constraints:
            what="train",
        params:
            code=code("data"),
        message:
            "Writing the training problems"
        shell:
            "{FR3E} data synthetic --plan {input.plan} --out {output} 2> {log}"

    use rule synthetic_data as synthetic_benchmark with:
        output:
            f"{DATA}/benchmarks/{{what}}.parquet",
        wildcard_constraints:
            what="|".join(BENCHMARKS),
        message:
            "Writing the benchmark {wildcards.what}"

    localrules:
        synthetic_data,
        synthetic_benchmark,

else:

    rule real_data:
        input:
            lock="data.dvc",
            plan=f"{RESULTS}/plans/data/real.yaml",
        output:
            stamp=f"{RESULTS}/data.json",
        log:
            f"{RESULTS}/logs/data.log",
        benchmark:
            f"{RESULTS}/benchmarks-of-rules/data.tsv"
        message:
            "Using, pulling or assembling data/ and comparing it with its lock"
        shell:
            "{FR3E} data ensure --lock {input.lock} --config {input.plan} --stamp {output.stamp} 2> {log}"

    localrules:
        real_data,


def train_data(_wildcards):
    return (
        f"{DATA}/train.parquet"
        if SCENARIO.data.kind == "synthetic"
        else f"{RESULTS}/data.json"
    )


def benchmark_data(wildcards):
    if SCENARIO.data.kind == "real":
        return f"{RESULTS}/data.json"
    return f"{DATA}/benchmarks/{wildcards.benchmark}.parquet"


def all_benchmark_data(_wildcards=None):
    if SCENARIO.data.kind == "real":
        return [f"{RESULTS}/data.json"]
    return expand(f"{DATA}/benchmarks/{{benchmark}}.parquet", benchmark=BENCHMARKS)


rule data_page:
    input:
        train_data,
        all_benchmark_data(),
    output:
        report(
            f"{RESULTS}/data_report.html",
            category="Data",
            caption="../report/data_report.rst",
            labels={"page": "data"},
        ),
    log:
        f"{RESULTS}/logs/data_report.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/data_report.tsv"
    params:
        code=code("data-report"),
        templates=" ".join(
            f"--template {name}"
            for name in sorted({model.template for model in SCENARIO.models.values()})
        ),
    message:
        "Describing the data"
    shell:
        "{FR3E} data report --data {DATA} {params.templates} --out {output} 2> {log}"


localrules:
    data_page,

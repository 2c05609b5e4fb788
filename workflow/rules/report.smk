# Tables, figures and pages. Each rule names its outputs so that `snakemake --report` shows them with their captions.
from fr3e.report.captions import facts
from fr3e.report.names import COST, FIGURES, TABLE1

# K, M, n, T and seeds in words, for the captions.
FACTS = facts(SCENARIO, {run: RUN_CONFIGS[run] for run in METHOD_RUNS})


def scores(tags):
    return expand(f"{RESULTS}/evaluation/{{tag}}/scores.csv", tag=tags)


def verdicts(tags):
    return expand(
        f"{RESULTS}/evaluation/{{tag}}/{{benchmark}}/verdicts.parquet",
        tag=tags,
        benchmark=BENCHMARKS,
    )


def run_records(runs, name):
    return expand(f"{RESULTS}/runs/{{run}}/{name}", run=runs)


def reported(name, category, caption=None):
    """A result with its caption. PNG stands for a figure; its PDF and CSV lie beside it."""
    return report(
        f"{RESULTS}/{name}",
        category=category,
        caption=f"../report/{caption or Path(name).stem}.rst",
        labels={"name": Path(name).stem, "format": Path(name).suffix[1:]},
    )


rule table1_files:
    input:
        plan=f"{RESULTS}/plans/report.yaml",
        scores=scores(TAGS),
        verdicts=verdicts(TAGS),
    output:
        [
            (
                reported(f"table1.{ending}", "Table 1")
                if ending == "html"
                else f"{RESULTS}/table1.{ending}"
            )
            for ending in TABLE1
        ],
    log:
        f"{RESULTS}/logs/table1.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/table1.tsv"
    params:
        code=code("table1"),
        facts=FACTS,
    message:
        "Table 1"
    shell:
        "{FR3E} report table1 --plan {input.plan} --out {RESULTS} 2> {log}"


rule figure_files:
    input:
        plan=f"{RESULTS}/plans/report.yaml",
        metrics=run_records(METHOD_RUNS, "metrics.jsonl"),
        trajectories=run_records(METHOD_RUNS, "trajectories.jsonl"),
        scores=scores(TAGS),
        verdicts=verdicts(TAGS),
    output:
        [reported(f"figures/{name}.png", "Figures") for name in FIGURES],
        [
            f"{RESULTS}/figures/{name}.{ending}"
            for name in FIGURES
            for ending in ("pdf", "csv")
        ],
    log:
        f"{RESULTS}/logs/figures.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/figures.tsv"
    params:
        code=code("figures"),
        facts=FACTS,
        style=fingerprint.file("config/paper.mplstyle"),
    message:
        "Figures"
    shell:
        "{FR3E} report figures --plan {input.plan} --out {RESULTS}/figures 2> {log}"


rule cost_files:
    input:
        plan=f"{RESULTS}/plans/report.yaml",
        metrics=run_records(METHOD_RUNS, "metrics.jsonl"),
        trained=run_records(METHOD_RUNS, "trained.json"),
    output:
        [
            (
                reported(f"cost.{ending}", "Cost")
                if ending == "html"
                else f"{RESULTS}/cost.{ending}"
            )
            for ending in COST
        ],
    log:
        f"{RESULTS}/logs/cost.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/cost.tsv"
    params:
        code=code("cost"),
        facts=FACTS,
    message:
        "Cost tables"
    shell:
        "{FR3E} report cost --plan {input.plan} --out {RESULTS} 2> {log}"


rule grading_page:
    input:
        plan=f"{RESULTS}/plans/report.yaml",
        verdicts=verdicts(TAGS),
    output:
        f"{RESULTS}/grading.csv",
        reported("grading.html", "Grading"),
    log:
        f"{RESULTS}/logs/grading.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/grading.tsv"
    params:
        code=code("grading"),
        facts=FACTS,
    message:
        "Verdicts and disagreements"
    shell:
        "{FR3E} report grading --plan {input.plan} --out {RESULTS} 2> {log}"


rule explorer_page:
    input:
        plan=f"{RESULTS}/plans/report.yaml",
        trajectories=run_records(METHOD_RUNS, "trajectories.jsonl"),
    output:
        reported("explorer.html", "Explorer"),
    log:
        f"{RESULTS}/logs/explorer.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/explorer.tsv"
    params:
        code=code("explorer"),
        facts=FACTS,
    message:
        "Explorer page"
    shell:
        "{FR3E} report explorer --plan {input.plan} --out {output} 2> {log}"


rule overview_page:
    input:
        plan=f"{RESULTS}/plans/report.yaml",
        table=rules.table1_files.output,
        cost=rules.cost_files.output,
        metrics=run_records(METHOD_RUNS, "metrics.jsonl"),
        trained=run_records(METHOD_RUNS, "trained.json"),
        verdicts=verdicts(TAGS),
    output:
        reported("overview.html", "Overview"),
    log:
        f"{RESULTS}/logs/overview.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/overview.tsv"
    params:
        code=code("overview"),
        facts=FACTS,
        deviations=fingerprint.file("docs/deviations.md"),
        claims=fingerprint.file("docs/claims.md"),
        # Two claims read the arms where they have run, which `all` neither needs nor waits for.
        arms=fingerprint.file(f"{RESULTS}/arms.csv"),
    message:
        "Overview page"
    shell:
        "{FR3E} report overview --plan {input.plan} --out {output} 2> {log}"


rule arms_files:
    input:
        plan=f"{RESULTS}/plans/report-arms.yaml",
        scores=scores(ARM_TAGS),
        verdicts=verdicts(ARM_TAGS),
        metrics=run_records(RUNS, "metrics.jsonl"),
        trained=run_records(RUNS, "trained.json"),
    output:
        [f"{RESULTS}/arms.{ending}" for ending in ("csv", "md")],
        reported("arms.html", "Ablations"),
        reported("arms_tokens.png", "Ablations"),
        [f"{RESULTS}/arms_tokens.{ending}" for ending in ("pdf", "csv")],
    log:
        f"{RESULTS}/logs/arms.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/arms.tsv"
    params:
        code=code("arms"),
        facts=FACTS,
    message:
        "Ablation table"
    shell:
        "{FR3E} report arms --plan {input.plan} --out {RESULTS} 2> {log}"


localrules:
    table1_files,
    figure_files,
    cost_files,
    grading_page,
    explorer_page,
    overview_page,
    arms_files,

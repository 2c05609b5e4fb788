# DVC versions what Snakemake makes: data/ by data.dvc (data.smk), kept checkpoints by .dvc files under results/.
def kept_checkpoints():
    """Models that the scenario versions, as .dvc files beside them."""
    if not SCENARIO.report.version_models:
        return []
    return expand(f"{RESULTS}/runs/{{run}}/model.dvc", run=METHOD_RUNS)


rule version_model:
    input:
        f"{RESULTS}/runs/{{run}}/model/manifest.json",
    output:
        f"{RESULTS}/runs/{{run}}/model.dvc",
    log:
        f"{RESULTS}/logs/version/{{run}}.log",
    benchmark:
        f"{RESULTS}/benchmarks-of-rules/version/{{run}}.tsv"
    message:
        "Versioning the model of {wildcards.run}"
    shell:
        "{FR3E} data version $(dirname {input}) 2> {log}"


localrules:
    version_model,

# Validates the configuration, includes the rules, lists the targets; nothing else.
#   snakemake --cores 2 --configfile config/demo.yaml all        the demo, on a laptop
#   snakemake --profile slurm all                                the paper, on a cluster
from snakemake.utils import min_version

min_version("9.27")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/versioning.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/report.smk"


localrules:
    all,
    arms,
    table1,
    figures,
    evaluations,


rule all:
    input:
        rules.table1_files.output,
        rules.figure_files.output,
        rules.cost_files.output,
        rules.grading_page.output,
        rules.explorer_page.output,
        rules.overview_page.output,
        rules.data_page.output,
        kept_checkpoints(),
        # Named although the report is made from them: what stands only between two stages is not made anew when deleted.
        run_records(METHOD_RUNS, "model/manifest.json"),
        scores(TAGS),
        verdicts(TAGS),


rule arms:
    default_target: TARGET == "arms"
    input:
        rules.arms_files.output,


rule table1:
    input:
        rules.table1_files.output,


rule figures:
    input:
        rules.figure_files.output,


rule evaluations:
    input:
        expand(f"{RESULTS}/evaluation/{{tag}}/scores.csv", tag=TAGS),

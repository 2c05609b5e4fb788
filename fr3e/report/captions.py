"""Facts that captions state: seeds, K, M, n, T, probes, protocols, in words, from the resolved configuration."""

from collections.abc import Iterable, Mapping

from fr3e.config.scenario import RunConfig, Scenario
from fr3e.report.runs import method_title


def facts(scenario: Scenario, runs: Mapping[str, RunConfig]) -> dict[str, str]:
    """Words for workflow/report/*.rst, where they stand as `snakemake.params.facts`; `runs` are the methods' runs.

    Keys: seeds, methods, training, probe, probed, protocols, setting (seeds, methods and training together), interval.
    """
    seeds = scenario.seeds
    numbers = ", ".join(map(str, seeds))
    seed_words = (
        f"one training seed ({numbers}), so there is no interval over seeds"
        if len(seeds) == 1
        else f"{len(seeds)} training seeds ({numbers})"
    )
    methods = "; ".join(distinct(method_words(runs, method) for method in scenario.methods))
    training = "; ".join(distinct(training_words(run) for run in runs.values()))
    probe = "; ".join(distinct(probe_words(run, scenario) for run in runs.values()))
    protocols = "; ".join(
        f"{name}: greedy, one response"
        if protocol.temperature == 0
        else f"{name}: {protocol.samples} responses per problem, T = {protocol.temperature:g}, top-p = {protocol.top_p:g}"
        for name, protocol in scenario.evaluation.protocols.items()
    )
    titles = ", ".join(model.title for model in scenario.models.values())
    return {
        "seeds": seed_words,
        "methods": methods,
        "training": training,
        "probe": probe,
        "probed": probed_words(runs, scenario),
        "protocols": f"{protocols}; at most {scenario.evaluation.max_tokens} tokens",
        "setting": f"{titles}; {seed_words}; {methods}; {training}.",
        "interval": f"{scenario.report.confidence:.0%}",
    }


def distinct(words: Iterable[str]) -> list[str]:
    """Words in order, each once."""
    return [word for word in dict.fromkeys(words) if word]


def method_words(runs: Mapping[str, RunConfig], method: str) -> str:
    """What a method does per prompt and update, for example "GRPO++: n = 16 rollouts per prompt, 16 groups per update"."""
    found = []
    for run in runs.values():
        if run.arm != method:
            continue
        fr3e, groups = run.training.fr3e, run.training.accum.groups_per_update
        if fr3e.num_anchors == 0:
            found.append(f"n = {fr3e.rollouts_per_state} rollouts per prompt, {groups} groups per update")
        else:
            found.append(
                f"{fr3e.first_n} first rollouts, K = {fr3e.num_anchors} anchors, M = {fr3e.rollouts_per_state}"
                f" continuations of each state, {groups} groups per update"
            )
    return f"{method_title(method)}: {' or '.join(distinct(found))}" if found else ""


def training_words(run: RunConfig) -> str:
    """Length of training and sampling limits of a run."""
    rollout = run.training.rollout
    return (
        f"{run.training.optim.updates} updates, sampled at T = {rollout.temperature:g} with at most"
        f" {rollout.max_total_tokens} tokens per response"
    )


def probed_words(runs: Mapping[str, RunConfig], scenario: Scenario) -> str:
    """Which benchmarks have no learning curve, and why; nothing where all have one."""
    probed = {name for run in runs.values() for name in run.training.probe.benchmarks}
    left = [benchmark.title for name, benchmark in scenario.benchmarks.items() if name not in probed]
    if not left:
        return ""
    every = len(scenario.benchmarks)
    return (
        f"{every - len(left)} of {every} benchmarks have a curve, since every probe is generation that training waits for;"
        f" {', '.join(left)} are evaluated once, after training (Table 1)."
    )


def probe_words(run: RunConfig, scenario: Scenario) -> str:
    """The common protocol of a run."""
    probe = run.training.probe
    names = ["the training problems", *(scenario.benchmarks[name].title for name in probe.benchmarks)]
    return (
        f"the first {probe.problems} problems of {', '.join(names)}, {probe.samples} full responses each at"
        f" T = {run.training.rollout.temperature:g}, every {probe.every} updates"
    )

"""The local engine: FR3E and GRPO++ in one process, repeatable and resumable to the bit.

One update reads as the paper does: sample in rounds and explore (sections 4.1, 4.2) until enough groups carry a gradient
(3.2), modulate their advantages (4.3), take clipped steps (3.3). What a run is follows from run.yaml alone; every draw is
keyed by name, so no random state has to be saved.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from fr3e.algorithm.advantage import advantages
from fr3e.algorithm.diagnostics import update_metrics
from fr3e.algorithm.filtering import Selection, full, select, trainable
from fr3e.config.scenario import RunConfig
from fr3e.engine.identity import identity, made_from
from fr3e.engine.local import checkpoint
from fr3e.engine.local.batching import BatchingGenerator
from fr3e.engine.local.checkpoint import Progress
from fr3e.engine.local.forward import Policy
from fr3e.engine.local.generator import LocalGenerator
from fr3e.engine.local.journal import Clock, Journal, Stopwatch
from fr3e.engine.local.loading import load_for_training, load_tokenizer
from fr3e.engine.local.probe import Probe, probe_prompts
from fr3e.engine.local.problems import Problem, PromptStream, load_problems
from fr3e.engine.local.trajectories import sample_trajectories
from fr3e.engine.local.update import Updater, optimiser_for
from fr3e.errors import UserError
from fr3e.evaluation.prompts import stop_ids
from fr3e.exploration.explore import explore_round
from fr3e.exploration.records import Exploration, Ids, Prompt, StateGroup
from fr3e.files import sha256, write_json
from fr3e.grading import Verdict, grade_async
from fr3e.progress import log, track
from fr3e.provenance.manifest import hardware

PREEMPTED = 75
"""Exit code after SIGTERM: the run was stopped, has a checkpoint, and goes on when started again (EX_TEMPFAIL)."""


def train(run: RunConfig, out: Path) -> None:
    """Train `run` to its last update, or go on from the newest sound checkpoint in `out`.

    Writes out/metrics.jsonl, out/trajectories.jsonl, out/checkpoints/ and at the end out/trained.json. After SIGTERM the
    update under way is finished or given up, a checkpoint is written, and the process exits with code 75. Raises
    `UserError` for files, prompts or numbers that do not allow training.
    """
    folder, updates = out / "checkpoints", run.training.optim.updates
    trainer = Trainer(run)
    with checkpoint.locked(folder), termination() as stopping:
        (out / "trained.json").unlink(missing_ok=True)
        made_by = run_identity(run)
        progress = checkpoint.restore(folder, made_by, trainer.module, trainer.optimiser)
        clock = Clock(out / "attempts.json", made_by, progress.update)
        journal = Journal(out, progress)
        saved = progress.update
        try:
            if not progress.metrics:
                journal.add({"update": 0} | trainer.probe.run(trainer.batching, 0) | {"seconds": clock.seconds()})
            for number in track(range(saved + 1, updates + 1), f"training {run.run}", unit="updates"):
                row, trajectories = trainer.step(progress, number, stopping)
                journal.add(row | {"seconds": clock.seconds()}, trajectories)
                _report(row)
                if number % run.training.checkpoint.every == 0 or number == updates:
                    trainer.save(folder, made_by, progress)
                    saved = number
                if stopping.is_set and number < updates:
                    raise Stopped
        except Stopped:
            if saved != progress.update:
                trainer.save(folder, made_by, progress)
            log.info("stopped by SIGTERM after update %d; start the same command again to go on", progress.update)
            raise SystemExit(PREEMPTED) from None
        write_json(out / "trained.json", _trained(trainer, out, progress, clock))


def run_identity(run: RunConfig) -> str:
    """What a checkpoint must share with a run to be resumed: settings, seed, base model, data and code, as a hash."""
    settings = run.training.model_dump(mode="json", exclude={"checkpoint", "verl", "engine"})
    return identity(made_from(run, "train-local", settings, ("torch",)))


class Stopped(Exception):
    """SIGTERM came; raised where the state is that of the last whole update."""


@dataclass(slots=True)
class Stopping:
    """Whether SIGTERM has come."""

    is_set: bool = False


@contextmanager
def termination() -> Iterator[Stopping]:
    """Note SIGTERM instead of dying of it, while the block runs."""
    stopping = Stopping()

    def note(*_: object) -> None:
        stopping.is_set = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield stopping
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(slots=True)
class Collected:
    """What the rounds of one update gave."""

    explorations: list[Exploration] = field(default_factory=list)
    problems: dict[str, Problem] = field(default_factory=dict)
    pool: list[StateGroup] = field(default_factory=list)
    position: int = 0
    rounds: int = 0


class Trainer:
    """Everything a run holds in memory; `step` is one update."""

    def __init__(self, run: RunConfig) -> None:
        settings = run.training
        torch.set_num_threads(settings.threads)
        self.run, self.settings, self.seed = run, settings, str(run.seed)
        problems = load_problems(run.data)
        self.module, self.device = load_for_training(run)
        self.tokenizer = load_tokenizer(run.base)
        self.optimiser = optimiser_for(self.module, settings.optim)
        policy = Policy(self.module, self.device)
        reference = Policy(load_for_training(run)[0], self.device) if settings.loss.kl > 0 else None
        self.updater = Updater(policy, reference, self.optimiser, settings, self.seed)
        stops = stop_ids(self.tokenizer, self.module.generation_config)
        generator = LocalGenerator(
            self.module,
            stops,
            device=self.device,
            batch_rows=settings.rollout.batch_rows,
            topk_entropy_k=settings.fr3e.topk_entropy_k if settings.fr3e.anchor_score == "topk_entropy" else None,
        )
        self.batching = BatchingGenerator(generator.generate_batch, self.grade)
        longest = settings.rollout.max_prompt_tokens
        template = run.model.template
        self.stream = PromptStream(problems, template, self.tokenizer, self.seed, longest)
        probed = {"train": problems} | {name: load_problems(path) for name, path in run.benchmarks.items()}
        count = settings.probe.problems
        self.probe = Probe(
            {n: probe_prompts(n, rows, count, template, self.tokenizer, longest) for n, rows in probed.items()},
            settings.probe,
            settings.rollout,
            self.seed,
        )
        self.special_ids = frozenset(self.tokenizer.all_special_ids) | frozenset(stops)
        self._texts: dict[int, str] = {}
        self.checkpoint_seconds = 0.0

    async def grade(self, prompt: Prompt, response_ids: Ids) -> Verdict:
        """Decode and grade."""
        return await grade_async(self.tokenizer.decode(response_ids, skip_special_tokens=True), prompt.gold)

    def token_text(self, token: int) -> str:
        """Text of one token."""
        if token not in self._texts:
            self._texts[token] = self.tokenizer.decode([token])
        return self._texts[token]

    def step(self, progress: Progress, number: int, stopping: Stopping) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Update `number`: brings weights, optimiser and `progress` forward; the metrics row and sampled trajectories."""
        settings, seconds = self.settings, Stopwatch(self.batching)
        carried_in = len(progress.carried)
        collected = self._collect(progress, number, stopping)
        seconds.lap("explore")
        name = f"{self.seed}/update{number}"
        selection = select(collected.pool, settings.accum, name)
        modulated = advantages(selection.trained, settings.fr3e, settings.adv, name)
        row = update_metrics(
            collected.explorations,
            selection,
            modulated,
            settings.fr3e,
            token_text=self.token_text,
            carried_in=carried_in,
            rounds=collected.rounds,
        )
        seconds.lap("explore")
        columns = self.updater.update(selection.trained, modulated, number)
        seconds.lap("update")
        self._advance(progress, collected, selection, row, number)
        row = {"update": number} | row | columns | {"tokens_total": progress.tokens}
        trajectories: list[dict[str, Any]] = []
        if number % settings.probe.every == 0 or number == settings.optim.updates:
            row |= self.probe.run(self.batching, number)
            seconds.lap("probe")
            trajectories = sample_trajectories(
                collected.explorations, collected.problems, self.tokenizer, self.token_text, number
            )
        if self.checkpoint_seconds:  # of the checkpoint since the last row
            seconds.seconds["checkpoint"], self.checkpoint_seconds = self.checkpoint_seconds, 0.0
        return row | seconds.columns(), trajectories

    def _collect(self, progress: Progress, number: int, stopping: Stopping) -> Collected:
        """Rounds of prompts until the pool fills an update (paper, section 3.2); the policy stands still meanwhile."""
        settings = self.settings
        collected = Collected(pool=list(progress.carried), position=progress.position)
        while not full(collected.pool, settings.accum):
            if stopping.is_set:
                raise Stopped
            if collected.rounds == settings.accum.max_rounds:
                raise UserError(self._starved(collected, number))
            taken, collected.position = self.stream.take(collected.position, settings.rollout.prompts_per_round)
            explorations = self.batching.run(
                explore_round(
                    [prompt for prompt, _ in taken],
                    settings,
                    self.batching,
                    self.batching.graded,
                    special_ids=self.special_ids,
                    token_text=self.token_text,
                    seed=self.seed,
                    update=number,
                ),
                number,
            )
            collected.problems |= {prompt.uid: problem for prompt, problem in taken}
            collected.explorations += explorations
            collected.pool += trainable([g for e in explorations for g in e.groups], settings.accum, settings.adv)
            collected.rounds += 1
        return collected

    def _starved(self, collected: Collected, number: int) -> str:
        states = [g for e in collected.explorations for g in e.groups]
        right, wrong = (sum(g.value == value for g in states) for value in (1.0, 0.0))
        dropped = sum(e.dropped is not None for e in collected.explorations)
        return (
            f"update {number}: after {collected.rounds} rounds of {self.settings.rollout.prompts_per_round} prompts only "
            f"{len(collected.pool)} of {self.settings.accum.groups_per_update} groups have mixed rewards ({right} all right, "
            f"{wrong} all wrong, {dropped} prompts left after First Return); the model solves these problems always or never: "
            "change the data, lower accum.groups_per_update or raise accum.max_rounds"
        )

    def _advance(
        self, progress: Progress, collected: Collected, selection: Selection, row: dict[str, Any], number: int
    ) -> None:
        progress.update = number
        progress.position = collected.position
        progress.carried = selection.carried
        progress.tokens += row["tokens/generated_first"] + row["tokens/generated_explore"]
        progress.rollouts += row["rollouts/first"] + row["rollouts/explore"]

    def save(self, folder: Path, identity: str, progress: Progress) -> None:
        """Write the checkpoint of `progress`."""
        started = time.perf_counter()
        checkpoint.save(folder, identity, progress, self.module, self.optimiser, self.settings.checkpoint.keep)
        self.checkpoint_seconds = time.perf_counter() - started


def _report(row: dict[str, Any]) -> None:
    """One line for each probe."""
    accuracy = {name.split("/")[1]: value for name, value in row.items() if name.endswith("/accuracy")}
    if accuracy:
        found = ", ".join(f"{name} {value:.3f}" for name, value in accuracy.items())
        log.info("update %d: accuracy %s; %d tokens generated", row["update"], found, row["tokens_total"])


def _trained(trainer: Trainer, out: Path, progress: Progress, clock: Clock) -> dict[str, Any]:
    path = checkpoint.path_of(out / "checkpoints", progress.update)
    return {
        "run": trainer.run.run,
        "updates": progress.update,
        "checkpoint": path.relative_to(out).as_posix(),
        "checkpoint_sha256": sha256(path),
        "seconds": clock.seconds(),
        "tokens_total": progress.tokens,
        "rollouts_total": progress.rollouts,
        "gpus": int(trainer.device.type == "cuda"),
        "hardware": hardware(),
        "attempts": len(clock.attempts),
    }

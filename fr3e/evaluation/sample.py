"""Sample every benchmark of a plan that is due, with one start of the engine.

A benchmark's generations belong to a key: the model's files, template, benchmark file, protocols, engine settings and
versions, and the code. The key lies beside the parquet; what is there under the same key is left alone, so a benchmark
added later samples only that one. Work goes in shards of whole problems, which a killed job finds again.
"""

import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fr3e.config.plans import EvalPlan, load_eval_plan
from fr3e.errors import UserError
from fr3e.evaluation import engines
from fr3e.evaluation.engines import Engine, Sampled, Task
from fr3e.evaluation.prompts import render, template_text
from fr3e.files import read_json, replacing, sha256, write_json
from fr3e.progress import track
from fr3e.provenance import fingerprint
from fr3e.provenance.manifest import SUFFIX

log = logging.getLogger("fr3e")

SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("id", pa.string()),
        ("protocol", pa.string()),
        ("sample", pa.int32()),
        ("seed", pa.string()),
        ("prompt", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("response", pa.string()),
        ("response_ids", pa.list_(pa.int32())),
        ("response_tokens", pa.int32()),
        ("finish", pa.string()),
        ("temperature", pa.float64()),
        ("top_p", pa.float64()),
    ]
)
NOT_MODEL = {"manifest.json", ".gitattributes"}


@dataclass(frozen=True)
class Problem:
    """One problem under one protocol, rendered. `room` is how many tokens the response may have; 0 is too long."""

    benchmark: str
    id: str
    protocol: str
    prompt: str
    task: Task

    @property
    def room(self) -> int:
        return self.task.max_tokens


def sample_plan(plan: Path, out: Path) -> None:
    """Write `out`/<benchmark>/generations.parquet for each benchmark of the resolved eval.yaml at `plan` that is due.

    Columns: benchmark, id, protocol, sample, seed (name of the random stream), prompt, prompt_tokens, response,
    response_ids, response_tokens, finish (stop, length = the token budget ended it, too_long = the prompt leaves no room
    for a response), temperature, top_p. Raises `UserError` for a missing or broken model, benchmark or plan.
    """
    resolved = load_eval_plan(plan)
    model = Path(resolved.model)
    if not (model / "config.json").is_file():
        raise UserError(f"{model}: not a model folder (no config.json); export or fetch the model first")
    positions = _model_positions(model)
    if positions is not None and resolved.max_positions > positions:
        raise UserError(
            f"{plan}: max_positions {resolved.max_positions} is more than the model's {positions} ({model}/config.json); lower it"
        )
    keys = _keys(resolved, model)
    due = [name for name in resolved.benchmarks if not _is_done(out / name, keys[name])]
    if not due:
        log.info("%s: all %d benchmarks are there", resolved.tag, len(keys))
        return
    log.info("%s: sampling %s", resolved.tag, ", ".join(due))
    tokenizer = _tokenizer(model)
    problems = {name: _problems(resolved, name, tokenizer) for name in due}
    shards = {name: _shards(problems[name], resolved.evaluation.shard_rows) for name in due}
    todo = [
        (name, number)
        for name in due
        for number in range(len(shards[name]))
        if not _readable(_shard_path(out, keys[name], number), shards[name][number])
    ]
    engine: Engine | None = None
    for name, number in track(todo, f"{resolved.tag} shards", unit="shard"):
        if engine is None:
            stops = engines.model_stops(model, tokenizer)
            engine = engines.start(model, stops, resolved.evaluation, _longest(problems))
        rows = list(_sample(engine, shards[name][number], tokenizer))
        _write_parquet(_shard_path(out, keys[name], number), pa.Table.from_pylist(rows, schema=SCHEMA))
    for name in due:
        _assemble(out, name, keys[name] | {"data_path": resolved.files[name]}, len(shards[name]))
    shutil.rmtree(out / ".shards", ignore_errors=True)  # those of other keys too: nothing asks for them again


def _model_positions(model: Path) -> int | None:
    return read_json(model / "config.json").get("max_position_embeddings")


def _longest(problems: dict[str, list[Problem]]) -> int:
    """Positions the engine has to hold: the longest prompt with the response it may have."""
    return max(len(problem.task.prompt_ids) + problem.room for part in problems.values() for problem in part)


def _keys(plan: EvalPlan, model: Path) -> dict[str, dict[str, Any]]:
    """Everything that decides each benchmark's generations, under `digest` as one value."""
    settings = plan.evaluation
    common = {
        "model_files": {
            path.relative_to(model).as_posix(): sha256(path)
            for path in sorted(model.rglob("*"))
            if path.is_file() and path.name not in NOT_MODEL and not path.name.endswith(SUFFIX)
        },
        "template": template_text(plan.template),
        "max_positions": plan.max_positions,
        "engine": settings.model_dump(
            include={"engine", "max_tokens", "seed", "batch_rows", "shard_rows", "tensor_parallel"}
        ),
        "versions": engines.versions(settings.engine),
        "code": fingerprint.code("sample"),
    }
    keys = {}
    for name, benchmark in plan.benchmarks.items():
        data = Path(plan.files[name])
        if not data.is_file():
            raise UserError(f"{data}: no such file; benchmark {name!r} needs it (`fr3e data`)")
        protocols = {protocol: settings.protocols[protocol].model_dump() for protocol in benchmark.protocols}
        key = common | {"benchmark": name, "data": sha256(data), "protocols": protocols}
        keys[name] = key | {"digest": fingerprint.values(key)}
    return keys


def _is_done(folder: Path, key: dict[str, Any]) -> bool:
    parquet, beside = folder / "generations.parquet", folder / "generations.key.json"
    if not (parquet.is_file() and beside.is_file()):
        return False
    found = read_json(beside)
    return found.get("digest") == key["digest"] and found.get("sha256") == sha256(parquet)


def _tokenizer(model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(model), local_files_only=True)


def _problems(plan: EvalPlan, name: str, tokenizer: Any) -> list[Problem]:
    """The benchmark's problems once per protocol, in file order."""
    source = plan.files[name]
    try:
        table = pq.read_table(source, columns=["id", "question"])
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise UserError(f"{source}: not a benchmark file with columns id and question ({error})") from error
    rendered = []
    for row in table.to_pylist():
        try:
            text, ids = render(plan.template, row["question"], tokenizer)
        except UserError as error:
            raise UserError(f"{source}: problem {row['id']!r}: {error}") from None
        rendered.append((str(row["id"]), text, tuple(ids)))
    if len({identity for identity, _, _ in rendered}) != len(rendered):
        raise UserError(f"{source}: ids are not unique; every problem needs its own")
    problems = []
    for protocol in plan.benchmarks[name].protocols:
        settings = plan.evaluation.protocols[protocol]
        for identity, text, ids in rendered:
            task = Task(
                stream=f"{plan.evaluation.seed}/{name}/{identity}/{protocol}",
                prompt_ids=ids,
                samples=settings.samples,
                temperature=settings.temperature,
                top_p=settings.top_p,
                max_tokens=max(0, min(plan.evaluation.max_tokens, plan.max_positions - len(ids))),
            )
            problems.append(Problem(name, identity, protocol, text, task))
    return problems


def _shards(problems: list[Problem], rows: int) -> list[list[Problem]]:
    """Consecutive problems, at most `rows` responses together; a problem is never split, so it may stand alone above that."""
    shards: list[list[Problem]] = []
    filled = rows
    for problem in problems:
        if filled + problem.task.samples > rows:
            shards.append([])
            filled = 0
        shards[-1].append(problem)
        filled += problem.task.samples
    return shards


def _sample(engine: Engine, problems: list[Problem], tokenizer: Any) -> Iterator[dict[str, Any]]:
    fitting = [problem for problem in problems if problem.room > 0]
    sampled = iter(engine.sample([problem.task for problem in fitting]) if fitting else [])
    for problem in problems:
        responses = next(sampled) if problem.room else [Sampled((), False)] * problem.task.samples
        for number, response in enumerate(responses):
            finish = "too_long" if problem.room == 0 else "stop" if response.stopped else "length"
            yield {
                "benchmark": problem.benchmark,
                "id": problem.id,
                "protocol": problem.protocol,
                "sample": number,
                "seed": f"{problem.task.stream}/{number}",
                "prompt": problem.prompt,
                "prompt_tokens": len(problem.task.prompt_ids),
                "response": tokenizer.decode(response.token_ids, skip_special_tokens=True),
                "response_ids": list(response.token_ids),
                "response_tokens": len(response.token_ids),
                "finish": finish,
                "temperature": problem.task.temperature,
                "top_p": problem.task.top_p,
            }


def _shard_path(out: Path, key: dict[str, Any], number: int) -> Path:
    return out / ".shards" / key["digest"] / f"{number:05d}.parquet"


def _readable(path: Path, problems: list[Problem]) -> bool:
    """A shard of a killed job counts only when it is whole."""
    if not path.is_file():
        return False
    try:
        return pq.read_metadata(path).num_rows == sum(problem.task.samples for problem in problems)
    except (pa.ArrowInvalid, OSError):
        return False


def _write_parquet(target: Path, table: pa.Table) -> None:
    with replacing(target) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def _assemble(out: Path, name: str, key: dict[str, Any], shards: int) -> None:
    """Join the shards; the parquet appears before its key, so that a kill in between leaves a benchmark that is due."""
    parts = [pq.read_table(_shard_path(out, key, number), schema=SCHEMA) for number in range(shards)]
    target = out / name / "generations.parquet"
    table = pa.concat_tables(parts)
    _write_parquet(target, table)
    write_json(target.with_name("generations.key.json"), key | {"rows": table.num_rows, "sha256": sha256(target)})

"""One measured run of TRL's GRPOTrainer; runs in TRL's own environment and is started by local_engine.py.

Usage: trl_worker.py JOB OUT. JOB is JSON with base, prompts, golds, rows, group, steps, max_new_tokens, lr, seed, micro_rows.
"""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

BOX = re.compile(r"\\boxed\{(\d)\}")


def _settings(job: dict[str, Any], out_file: str) -> GRPOConfig:
    """GRPO++ in TRL's words: clip-higher, token mean, no division by the standard deviation, no KL."""
    return GRPOConfig(
        output_dir=str(Path(out_file).with_suffix("")),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=job["micro_rows"],
        gradient_accumulation_steps=job["rows"] // job["micro_rows"],
        num_generations=job["group"],
        max_steps=job["steps"],
        max_completion_length=job["max_new_tokens"],
        learning_rate=job["lr"],
        lr_scheduler_type="constant",
        adam_beta1=0.9,
        adam_beta2=0.95,
        weight_decay=0.0,
        max_grad_norm=1.0,
        loss_type="dapo",
        scale_rewards="none",
        beta=0.0,
        epsilon=0.22,
        epsilon_high=0.28,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        num_iterations=1,
        shuffle_dataset=False,
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=job["seed"],
    )


def main(job_file: str, out_file: str) -> None:
    """Train `steps` steps and write per step: wall seconds, CPU seconds, and the same for generation, and tokens."""
    job = json.loads(Path(job_file).read_text())
    torch.set_num_threads(1)
    torch.manual_seed(job["seed"])
    tokenizer = AutoTokenizer.from_pretrained(job["base"])
    model = AutoModelForCausalLM.from_pretrained(job["base"], dtype=torch.float32)
    tokens: list[int] = []

    def reward(completions: list[str], gold: list[str], completion_ids: list[list[int]], **_: object) -> list[float]:
        tokens.append(sum(len(ids) for ids in completion_ids))
        found = [BOX.findall(text) for text in completions]
        return [float(bool(boxes) and boxes[-1] == answer) for boxes, answer in zip(found, gold, strict=True)]

    generation = {"wall": 0.0, "cpu": 0.0}
    steps: list[dict[str, float]] = []

    class Watch(TrainerCallback):
        """Notes the clocks at the end of each step."""

        def on_step_end(self, *_: object, **__: object) -> None:
            steps.append(
                {
                    "wall": time.perf_counter(),
                    "cpu": time.process_time(),
                    "generate_wall": generation["wall"],
                    "generate_cpu": generation["cpu"],
                    "tokens": sum(tokens),
                }
            )

    data = Dataset.from_dict({"prompt": job["prompts"], "gold": job["golds"]})
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=_settings(job, out_file),
        train_dataset=data,
        processing_class=tokenizer,
        callbacks=[Watch()],
    )
    original = trainer._generate_single_turn

    def timed(*arguments: object, **options: object) -> object:
        wall, cpu = time.perf_counter(), time.process_time()
        result = original(*arguments, **options)
        generation["wall"] += time.perf_counter() - wall
        generation["cpu"] += time.process_time() - cpu
        return result

    trainer._generate_single_turn = timed
    trainer.train()
    model.save_pretrained(job["model_out"])
    tokenizer.save_pretrained(job["model_out"])
    Path(out_file).write_text(json.dumps(steps))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Run by lm-eval's own interpreter, without this package: score recorded responses with lm-eval's tasks.

    python crosscheck_lm_eval.py FOLDER

FOLDER/documents/<benchmark>.jsonl holds one document per response (fr3e.evaluation.crosscheck writes it); FOLDER/lm_eval.jsonl gets
one line per document, task, filter and metric. A model that answers with the recorded text stands in for generation, so
everything after generation is lm-eval's: filters, answer extraction, comparison.
"""

import json
import os
import sys
from pathlib import Path

TASKS = {
    "gsm8k": ["gsm8k/gsm8k.yaml"],
    "math500": ["minerva_math/minerva_math500.yaml", "hendrycks_math/hendrycks_math500.yaml"],
}
METRICS = ("exact_match", "math_verify")


def main(folder: Path) -> None:
    """Score every exported benchmark and write lm_eval.jsonl."""
    os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
    os.environ["HF_HOME"] = str(folder / ".cache")
    import lm_eval
    from lm_eval.api.model import LM

    class Recorded(LM):
        """Answers each document with the response that it carries."""

        def generate_until(self, requests, disable_tqdm=False):
            return [request.doc["response"] for request in requests]

        def loglikelihood(self, requests, disable_tqdm=False):
            raise NotImplementedError("only recorded text is scored")

        def loglikelihood_rolling(self, requests, disable_tqdm=False):
            raise NotImplementedError("only recorded text is scored")

    with open(folder / "lm_eval.jsonl", "w", encoding="utf-8") as out:
        for source in sorted((folder / "documents").glob("*.jsonl")):
            tasks = next(names for kind, names in TASKS.items() if source.stem.startswith(kind))
            result = lm_eval.simple_evaluate(
                model=Recorded(), tasks=[write_task(folder, name, source) for name in tasks], bootstrap_iters=0
            )
            for task, samples in result["samples"].items():
                for sample in samples:
                    for metric in METRICS:
                        if metric in sample:
                            line = {
                                "benchmark": source.stem,
                                "key": sample["doc"]["key"],
                                "scoring": f"{task}/{sample['filter']}/{metric}",
                                "correct": bool(sample[metric]),
                                "lm_eval": lm_eval.__version__,
                            }
                            out.write(json.dumps(line) + "\n")


def write_task(folder: Path, name: str, source: Path) -> str:
    """lm-eval's task `name` with the exported documents for its data set and no examples in the prompt; a YAML file."""
    import lm_eval

    packaged = Path(lm_eval.__file__).parent / "tasks" / name
    target = folder / "tasks" / packaged.name
    target.parent.mkdir(exist_ok=True)
    changes = {
        "include": str(packaged),
        "task": packaged.stem,
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": {"test": str(source)}},
        "training_split": None,
        "fewshot_split": None,
        "test_split": "test",
        "num_fewshot": 0,
        "fewshot_config": None,
    }
    target.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in changes.items()), encoding="utf-8")
    return str(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

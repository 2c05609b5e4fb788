"""The training problems as the data set that verl's trainer builds a data loader over.

verl only asks for its length: FR3ETrainer draws the prompts itself, in the local engine's order.
"""

from typing import Any

from torch.utils.data import Dataset

from fr3e.engine.local.problems import load_problems


class Problems(Dataset):
    """`data.custom_cls` of verl."""

    def __init__(
        self, data_files: Any, tokenizer: Any, processor: Any = None, config: Any = None, max_samples: int = -1
    ) -> None:
        paths = [data_files] if isinstance(data_files, str) else list(data_files)
        self.problems = [problem for path in paths for problem in load_problems(path)]

    def __len__(self) -> int:
        return len(self.problems)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"raw_prompt": [{"role": "user", "content": self.problems[index].question}], "index": index}

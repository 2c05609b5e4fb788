"""What the training mix takes from each source, and what happens to copies, contradictions and overlap."""

from typing import Literal

from pydantic import Field

from fr3e.config.base import Section, Template


class Part(Section):
    """Part of one source."""

    levels: list[int] | None = Field(
        None,
        description="Levels to take, on the source's own scale; null takes all. [paper 5.1] levels 3-5 of SimpleRL",
    )


class Mix(Section):
    """The section `data.mix` of a scenario.

    The defaults are the paper's two sets as far as they are known: SimpleRL levels 3-5 (high difficulty) and the whole of
    DeepScaleR (low difficulty). The paper gives neither a ratio nor a threshold.
    """

    parts: dict[str, Part] = Field(
        default={"simplelr": Part(levels=[3, 4, 5]), "deepscaler": Part()},
        min_length=1,
        description="Source -> part. The order decides which copy of a question stays. [paper 5.1] both sets; [ours] the order",
    )
    copies: Literal["first", "all"] = Field(
        "first", description="Of several rows with one question: keep the first, or all as published. [ours]"
    )
    conflicts: Literal["drop", "keep"] = Field(
        "drop", description="Rows with one question and contradicting golds. [ours]"
    )
    overlap: Literal["keep", "exact", "latex", "ngram"] = Field(
        "keep", description="Drop rows that this method finds in a benchmark. [paper] nothing is said: keep"
    )
    template: Template = Field("qwen_boxed", description="Prompt template in which tokens are counted. [ours]")

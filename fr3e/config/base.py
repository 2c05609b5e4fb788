"""The base of every configuration section: frozen, and strict about keys."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

TEMPLATES = Path(__file__).parent.parent / "evaluation" / "templates"


class Section(BaseModel):
    """One section of the configuration. An unknown key is an error; a value never changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def _known_template(name: str) -> str:
    known = sorted(path.stem for path in TEMPLATES.glob("*.txt"))
    if name not in known:
        raise ValueError(f"no prompt template {name!r}; there are {', '.join(known)}")
    return name


Template = Annotated[str, AfterValidator(_known_template)]
"""A file name in fr3e/evaluation/templates without .txt."""

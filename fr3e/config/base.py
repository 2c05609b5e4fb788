"""The base of every configuration section: frozen, and strict about keys and truth values."""

from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

TEMPLATES = Path(__file__).parent.parent / "evaluation" / "templates"
TRUTH_VALUE = PydanticCustomError("truth_value", "Input should not be true or false")


class Section(BaseModel):
    """One section of the configuration. An unknown key is an error; a value never changes after loading; true and false
    (YAML's yes and no) are no numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_value_for_a_number(cls, values: Any) -> Any:
        given = values if isinstance(values, dict) else {}
        faults = [
            InitErrorDetails(type=TRUTH_VALUE, loc=(name,), input=given[name])
            for name, field in cls.model_fields.items()
            if name in given and _holds_bool(given[name], field.annotation) and not _takes_bool(field.annotation)
        ]
        if faults:
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return values


def _holds_bool(value: Any, annotation: Any) -> bool:
    mapping = isinstance(value, dict) and get_origin(annotation) is dict  # a section looks into its own keys
    entries = value.values() if mapping else value if isinstance(value, list) else [value]
    return any(isinstance(entry, bool) for entry in entries)


def _takes_bool(annotation: Any) -> bool:
    return annotation in (bool, Any) or isinstance(annotation, bool) or any(map(_takes_bool, get_args(annotation)))


def _known_template(name: str) -> str:
    known = sorted(path.stem for path in TEMPLATES.glob("*.txt"))
    if name not in known:
        raise ValueError(f"no prompt template {name!r}; there are {', '.join(known)}")
    return name


Template = Annotated[str, AfterValidator(_known_template)]
"""A file name in fr3e/evaluation/templates without .txt."""

"""The base of every configuration section: frozen, and strict about keys."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One section of the configuration. An unknown key is an error; a value never changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

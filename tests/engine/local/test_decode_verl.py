"""The transformers path under the verl environment's transformers, which calls the cache by another name."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.local.test_generator import like_the_forward_pass, requests

pytestmark = pytest.mark.verl


@pytest.mark.parametrize("plain", [True, False])
def test_against_the_forward_pass(tiny: Callable[..., Any], plain: bool) -> None:
    like_the_forward_pass(tiny(), requests(), plain)

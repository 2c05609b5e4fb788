"""One prompt's two-phase exploration, asynchronous, against two small protocols (`Generate`, `Grade`); no engine."""

from fr3e.exploration.explore import explore, explore_round

__all__ = ["explore", "explore_round"]

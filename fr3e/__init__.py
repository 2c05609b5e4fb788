"""FR3E: First Return, Entropy-Eliciting Explore (arXiv 2507.07017), reproduced as one pipeline."""

__version__ = "0.1.0"

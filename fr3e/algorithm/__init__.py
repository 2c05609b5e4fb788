"""The mathematics of FR3E as pure functions: numbers in, numbers out, no engine, no I/O.

Shape suffixes, one legend for the whole package:
P prompts, G rollouts in a group, S states of one base (root + K anchors), M continuations of one state, T tokens of one
response, V vocabulary, B rows of a micro-batch. `entropy_T`, `values_S`, `rewards_M`.

The equations and the functions that hold them are listed in docs/algorithm.md; differences from the paper and from the
released code in docs/deviations.md.
"""

"""Before a launch: what it will cost, and whether this machine or cluster is ready for it."""

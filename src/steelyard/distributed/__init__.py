"""More than one machine: shards that are learned apart, and merged."""

from steelyard.distributed.merge import merge

__all__ = ["merge"]

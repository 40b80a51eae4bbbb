"""A test that one rank misses a collective on purpose, to see the others say so."""

import datetime
import unittest

import pytest
import torch.distributed as dist


class TestBarrier(unittest.TestCase):
    def setUp(self):
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()

    def test_of_a_rank_that_does_not_come(self):
        if self.rank == 0:
            with self.assertRaisesRegex(RuntimeError, "failed to pass"):
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))

    def test_with_pytest(self):
        if self.rank == 0:
            with pytest.raises(RuntimeError):
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))

    def test_that_waits_by_mistake(self):
        if self.rank == 0:
            dist.barrier()  # DDP501


if __name__ == "__main__":
    unittest.main()

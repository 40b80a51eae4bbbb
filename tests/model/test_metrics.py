"""What a padded evaluation is said to repeat."""

from __future__ import annotations

import pytest

from tests.model.programs import program_of

TEXT = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("nccl")
model = torch.nn.Linear(8, 3).cuda().eval()
held_out = TensorDataset(torch.randn(101, 8), torch.randint(3, (101,)))
other = DistributedSampler(held_out)
sampler = DistributedSampler(held_out, shuffle={shuffle})
loader = DataLoader(held_out, batch_size=8, sampler=sampler)
for epoch in range(3):
    {told}
    total = torch.zeros((), device="cuda")
    with torch.no_grad():
        for x, y in loader:
            total += (model(x.cuda()).argmax(1) == y.cuda()).sum()
    dist.all_reduce(total)
"""


@pytest.mark.parametrize(
    ("shuffle", "told", "expected"),
    [
        ("True", "sampler.set_epoch(epoch)", True),
        ("True", "loader.sampler.set_epoch(epoch)", True),
        ("False", "sampler.set_epoch(epoch)", False),
        ("True", "other.set_epoch(epoch)", False),
        ("True", "pass", False),
    ],
)
def test_other_samples_in_each_epoch(shuffle: str, told: str, expected: bool) -> None:
    (padded,) = program_of(TEXT.format(shuffle=shuffle, told=told)).metrics.padded
    assert padded.repeats_others is expected

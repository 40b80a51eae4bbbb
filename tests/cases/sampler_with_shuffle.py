"""A sampler and shuffle=True in one call, however they get there; and pairs that go well."""

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)


def both(dataset):
    sampler = WeightedRandomSampler(torch.ones(512), num_samples=512)
    first = DataLoader(dataset, batch_size=32, shuffle=True, sampler=sampler)  # DDP306
    second = DataLoader(dataset, 32, True, sampler)  # DDP306
    options = {"shuffle": True, "num_workers": 4}
    third = DataLoader(dataset, batch_size=32, sampler=sampler, **options)  # DDP306
    batches = BatchSampler(sampler, batch_size=32, drop_last=True)
    fourth = DataLoader(dataset, batch_sampler=batches, shuffle=True)  # DDP306
    return first, second, third, fourth


def spread_over_lines(dataset, distributed):
    sampler = DistributedSampler(dataset) if distributed else RandomSampler(dataset)
    return DataLoader(  # DDP306
        dataset,
        batch_size=32,
        shuffle=True,
        sampler=sampler,
    )


def one_of_them(dataset, distributed, weights):
    sampler = DistributedSampler(dataset) if distributed else None
    first = DataLoader(dataset, batch_size=32, shuffle=sampler is None, sampler=sampler)
    second = DataLoader(dataset, batch_size=32, shuffle=(not distributed), sampler=sampler)
    third = DataLoader(dataset, batch_size=32, shuffle=False, sampler=sampler)
    fourth = DataLoader(dataset, batch_size=32, shuffle=True, sampler=None)
    fifth = DataLoader(dataset, batch_size=32, sampler=DistributedSampler(dataset, shuffle=True))
    return first, second, third, fourth, fifth


def depends(dataset, distributed):
    """With several ranks there is a sampler, without there is none, and shuffle follows."""
    if distributed:
        sampler = DistributedSampler(dataset)
        shuffle = False
    else:
        sampler = None
        shuffle = True
    return DataLoader(dataset, batch_size=32, shuffle=shuffle, sampler=sampler)


def given(dataset, sampler=None, shuffle=True):
    """Nobody calls it here: what it is given is not known."""
    return DataLoader(dataset, batch_size=32, shuffle=shuffle, sampler=sampler)


if __name__ == "__main__":
    data = TensorDataset(torch.randn(512, 32))
    both(data)
    spread_over_lines(data, distributed=False)
    one_of_them(data, distributed=False, weights=torch.ones(512))
    depends(data, distributed=False)

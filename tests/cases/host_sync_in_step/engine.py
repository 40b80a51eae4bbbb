"""The step loop: it looks innocent, the reads are in the files that it calls."""

from torch import nn

from distributed import is_main_process, reduce_mean
from meters import BufferedMeter, MetricLogger, SmoothedValue


def train_one_epoch(model, loader, optimizer, device, log_every):
    model.train()
    criterion = nn.CrossEntropyLoss()
    metrics = MetricLogger()
    metrics.add("lr", SmoothedValue())
    buffered = BufferedMeter(log_every)
    for step, (images, labels) in enumerate(metrics.log_every(loader, log_every)):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        reduced = reduce_mean(loss.detach())
        metrics.update(loss=reduced)
        metrics.update(lr=optimizer.param_groups[0]["lr"])
        buffered.update(reduced)
        if is_main_process():
            print("step {}: loss {:.6f}".format(step, reduced))  # DDP101
        if is_main_process() and step % log_every == 0:
            print(f"step {step}: loss {reduced.item():.3f}, mean {buffered.mean():.3f}")
    return metrics.means()

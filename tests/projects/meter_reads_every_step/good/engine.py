"""An epoch of segmentation training."""

import torch

import utils


def train_one_epoch(model, criterion, optimizer, scheduler, loader, device, epoch):
    model.train()
    logger = utils.MetricLogger()
    for images, masks in logger.log_every(loader, 100, header=f"epoch {epoch}"):
        images = images.to(device)
        masks = masks.to(device)
        logits = model(images)["out"]
        loss = criterion(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        accuracy = (logits.argmax(1) == masks).float().mean()
        logger.update(loss=loss, accuracy=accuracy, lr=optimizer.param_groups[0]["lr"])


@torch.inference_mode()
def evaluate(model, criterion, loader, device):
    model.eval()
    logger = utils.MetricLogger()
    for images, masks in logger.log_every(loader, 100, header="test"):
        logits = model(images.to(device))["out"]
        logger.update(loss=criterion(logits, masks.to(device)))
    return logger.meters["loss"].overall

"""Fabric shards the loader, moves batches, scales and clips; the loop stays ours."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4


def main():
    fabric = L.Fabric(accelerator="cuda", devices=8, strategy="ddp", precision="16-mixed")
    fabric.launch()
    fabric.seed_everything(7)

    archive = torch.load("spectra.pt", map_location="cpu")
    dataset = TensorDataset(archive["spectra"], archive["classes"])
    loader = DataLoader(dataset, batch_size=128, shuffle=True, num_workers=4)
    loader = fabric.setup_dataloaders(loader)

    model = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 30))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer = fabric.setup(model, optimizer)

    for epoch in range(50):
        for step, (spectra, classes) in enumerate(loader):
            accumulating = (step + 1) % ACCUMULATE != 0
            with fabric.no_backward_sync(model, enabled=accumulating):
                loss = nn.functional.cross_entropy(model(spectra), classes)
                fabric.backward(loss / ACCUMULATE)
            if not accumulating:
                fabric.clip_gradients(model, optimizer, max_norm=1.0)
                optimizer.step()
                optimizer.zero_grad()
            if step % 200 == 0:
                fabric.print(f"epoch {epoch} step {step}: {loss.item():.4f}")
        fabric.save("spectra.ckpt", {"model": model, "optimizer": optimizer, "epoch": epoch})


if __name__ == "__main__":
    main()

"""Recordings: a `.wav` is read, not decoded, and there is nothing to do once unless its rate is
changed; of files that nobody names nothing is known."""

import os
import random
from glob import glob
from pathlib import Path

import librosa
import torch
import torchaudio
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pieces(Dataset):
    def __init__(self, folders):
        self.names = []
        for folder in folders:
            self.names += glob(f"{folder}/**/*.wav", recursive=True)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        wave, _ = torchaudio.load(self.names[index])
        start = random.randint(0, wave.shape[-1] - 16_000)
        return wave[0, start : start + 16_000]


class Listed(Dataset):
    def __init__(self, folder):
        self.folder = folder
        self.names = [name for name in os.listdir(folder) if name.endswith(".wav")]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        wave, _ = librosa.load(os.path.join(self.folder, self.names[index]), sr=None)
        return torch.from_numpy(wave)


class Unnamed(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torchaudio.load(self.paths[index])[0]


class Resampled(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).rglob("*.wav"))
        self.resample = torchaudio.transforms.Resample(44_100, 16_000)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        wave, _ = torchaudio.load(self.paths[index])  # DDP302
        return self.resample(wave)


class Compressed(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).rglob("*.flac"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torchaudio.load(self.paths[index])[0]  # DDP302


def train(dataset):
    model = nn.LazyConv1d(8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for waves in DataLoader(dataset, batch_size=16, shuffle=True, num_workers=8):
        loss = model(waves.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train(Pieces(["train"]))
    train(Listed("train"))
    train(Unnamed(os.listdir("train")))
    train(Resampled("train"))
    train(Compressed("train"))

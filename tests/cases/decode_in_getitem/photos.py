"""Datasets that another file trains on."""

import os
from pathlib import Path

import librosa
import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision.datasets import ImageFolder
from torchvision.transforms.functional import to_tensor


class Photos(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")  # DDP302
        return to_tensor(image)


class OneCrop(ImageFolder):
    """The base class brings a loader that decodes."""

    def __getitem__(self, index):
        path, _ = self.samples[index]
        image = self.loader(path)  # DDP302
        return to_tensor(image)


class Spectra(Dataset):
    """What is decoded is kept on the disk, so each file is decoded once."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def spectrum(self, path):
        kept = path + ".spec.pt"
        if os.path.exists(kept):
            return torch.load(kept)
        wave, _ = librosa.load(path, sr=16_000)
        spectrum = torch.stft(torch.from_numpy(wave), 512, return_complex=True).abs()
        torch.save(spectrum, kept)
        return spectrum

    def __getitem__(self, index):
        return self.spectrum(self.paths[index])


class Gallery(Dataset):
    """Only the converter reads it, once over."""

    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return Image.open(self.paths[index]).convert("RGB").resize((160, 160))

"""Label sentences with a trained model, on one GPU or none."""

import sys

import torch

from net import BagOfWords


def load(path):
    model = BagOfWords()
    model.load_state_dict(torch.load(path, map_location="cpu")["model"])
    return model.eval()


@torch.inference_mode()
def main(path, tokens):
    model = load(path)
    for row in torch.load(tokens, map_location="cpu").split(1024):
        print("\n".join(str(label) for label in model(row).argmax(1).tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""An offline conversion beside the training programs."""

import torch


def main():
    weights = torch.load("last.pt", map_location="cpu")
    torch.save({name: value.half() for name, value in weights.items()}, "half.pt")


if __name__ == "__main__":
    main()

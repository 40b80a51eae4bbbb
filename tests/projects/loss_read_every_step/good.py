"""Character-level language model on one GPU: the host looks at the loss every 50 steps."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm


class Text(Dataset):
    def __init__(self, path, length):
        text = Path(path).read_text(encoding="utf-8")
        self.characters = sorted(set(text))
        number_of = {character: number for number, character in enumerate(self.characters)}
        self.tokens = torch.tensor([number_of[character] for character in text])
        self.length = length

    def __len__(self):
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, index):
        start = index * self.length
        chunk = self.tokens[start : start + self.length + 1]
        return chunk[:-1], chunk[1:]


class CharacterModel(nn.Module):
    def __init__(self, vocabulary, width=256):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embedding(tokens))
        return self.head(hidden)


def train(path, epochs=10):
    device = "cuda"
    dataset = Text(path, length=256)
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2, pin_memory=True)
    model = CharacterModel(len(dataset.characters)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    writer = SummaryWriter()
    history = []
    step = 0
    for epoch in range(epochs):
        bar = tqdm(loader)
        recent = torch.zeros(2, device=device)
        for inputs, targets in bar:
            inputs = inputs.to(device, non_blocking=True)
            targets = targets.to(device, non_blocking=True)
            logits = model(inputs)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            accuracy = (logits.argmax(-1) == targets).float().mean()
            recent += torch.stack([loss.detach(), accuracy])
            step += 1
            if step % 50 == 0:
                mean_loss, mean_accuracy = (recent / 50).tolist()
                recent.zero_()
                if mean_loss > 50:
                    print("the loss explodes, giving up")
                    return history
                history.append(mean_loss)
                writer.add_scalar("train/accuracy", mean_accuracy, step)
                bar.set_description(f"epoch {epoch} loss {mean_loss:.3f}")
        torch.save(model.state_dict(), "characters.pt")
    return history


if __name__ == "__main__":
    train("input.txt")

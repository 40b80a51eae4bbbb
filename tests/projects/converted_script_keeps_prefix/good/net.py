"""Sentiment of a sentence, from a bag of words."""

from torch import nn


class BagOfWords(nn.Module):
    def __init__(self, words=50_000, width=128, classes=2):
        super().__init__()
        self.embedding = nn.EmbeddingBag(words, width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, tokens):
        return self.classifier(self.embedding(tokens))

from torch import nn


class Executor:
    def __init__(self, model):
        self.model = model
        self.criterion = nn.CrossEntropyLoss()

    def forward_backward(self, images, labels):
        loss = self.criterion(self.model(images), labels)
        loss.backward()  # DDP203
        return loss.detach()


class AveragingExecutor:
    def __init__(self, model, divide_by):
        self.model = model
        self.divide_by = divide_by
        self.criterion = nn.CrossEntropyLoss()

    def forward_backward(self, images, labels):
        loss = self.criterion(self.model(images), labels) / self.divide_by
        loss.backward()
        return loss.detach()

"""When the optimizer may move."""


class Accumulator:
    """Steps the optimizer after every ``window`` micro-batches."""

    def __init__(self, optimizer, window):
        self.optimizer = optimizer
        self.window = window
        self.seen = 0

    def backward(self, loss):
        (loss / self.window).backward()
        self.seen += 1
        if self.seen % self.window == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

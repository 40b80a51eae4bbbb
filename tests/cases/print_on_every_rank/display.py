"""Prints what it was told, for whoever calls."""


class Progress:
    def __init__(self, total):
        self.total = total

    def display(self, step, value):
        print(f"[{step}/{self.total}] {value:.3f}")  # DDP509

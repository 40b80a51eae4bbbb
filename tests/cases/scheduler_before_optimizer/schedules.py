from torch.optim.lr_scheduler import LambdaLR


def warmup(optimizer, steps):
    def factor(step):
        return min(1.0, step / steps)

    return LambdaLR(optimizer, factor)


class OwnWarmup:
    def __init__(self, optimizer, steps):
        self.optimizer = optimizer
        self.steps = steps
        self.count = 0

    def step(self):
        self.count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, self.count / self.steps)


def own_warmup(optimizer, steps):
    return OwnWarmup(optimizer, steps)

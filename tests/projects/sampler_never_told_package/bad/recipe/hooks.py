"""What happens around an epoch."""


class Hook:
    def before_epoch(self, runner):
        pass

    def after_epoch(self, runner):
        pass


class Timer(Hook):
    def before_epoch(self, runner):
        runner.steps = 0

    def after_epoch(self, runner):
        if runner.rank == 0:
            print(f"epoch {runner.epoch}: {runner.steps} steps")

class PlainWork:
    def __init__(self, model):
        self.model = model

    def step(self, loss, optimizer, schedule):
        self.model.zero_grad()
        loss.backward()
        schedule.step()  # DDP209
        optimizer.step()


class WorkForOwnSchedules:
    def __init__(self, model):
        self.model = model

    def step(self, loss, optimizer, schedule):
        self.model.zero_grad()
        loss.backward()
        schedule.step()
        optimizer.step()

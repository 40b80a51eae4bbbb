"""A loss that is handed a model and calls it."""


def square_loss(model, inputs):
    return model(inputs).square().mean()


def log_probabilities(model, tokens):
    logits = model(tokens)
    return logits.log_softmax(-1).gather(1, tokens.long()[:, :1])

MODELS = {}


def registered(cls):
    MODELS[cls.__name__] = cls
    return cls

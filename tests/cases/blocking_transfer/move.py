def to_device(tensors, device):
    return [tensor.to(device) for tensor in tensors]  # DDP105

"""Observers: they count what code does instead of trusting what it says.

with host_reads() as reads:           # reads.count, reads.places: {"file.py:12 item": 3}
with collectives(model) as traffic:   # traffic.count, traffic.bytes: all-reduces of DDP too
with saved_tensor_bytes() as saved:   # saved.bytes: what the graph keeps for a backward now
graph_nodes(loss)                     # autograd nodes that hang on a tensor
with writers() as writes:             # writes.by_path: {"model.pt": 2}, torch.save calls
digest(tensor or list)                # a hex string
digests(module)                       # {"weight": "1f..."} in the module's own order
"""

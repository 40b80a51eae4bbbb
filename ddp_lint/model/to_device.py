"""Layer 7, to the device: whether a program may put anything on one at all."""

from __future__ import annotations

from astroid import nodes

from ddp_lint.model.calls import CallGraph
from ddp_lint.model.origins import Api, Expression, Made
from ddp_lint.model.steps import Steps
from ddp_lint.model.tree import Node, dotted

_MOVING = frozenset(
    {"cuda", "to", "prepare", "setup", "npu", "xpu", "set_device", "fit", "train_batch"}
)
_MOVERS = frozenset(
    {"torch.cuda.set_device", "torch.set_default_device", "torch.set_default_tensor_type",
     "deepspeed.initialize", "torch.nn.DataParallel", "torch.accelerator.set_device_index",
     "accelerate.Accelerator", "lightning.Fabric", "lightning.fabric.Fabric"}
)  # fmt: skip


def anything_moves(graph: CallGraph, steps: Steps) -> bool:
    """Whether the program may put anything on a device at all.

    Only an entry point shows everything that is moved; what a library's caller does is
    unknown, and then the answer is yes.
    """
    if not all(root.is_script for root in graph.roots):
        return True
    if any(loop.is_hook for loop in steps.loops):
        return True  # the framework moves it
    return any(_moves(graph, call) for unit in graph.units for call in unit.calls)


def _moves(graph: CallGraph, call: nodes.Call) -> bool:
    name = getattr(call.func, "attrname", "")
    if name in _MOVING or any(
        k.arg in ("device", "device_ids", "device_map") for k in call.keywords
    ):
        given = [k.value for k in call.keywords if k.arg == "device"] or call.args[:1]
        if name == "to" or any(k.arg == "device" for k in call.keywords):
            return any(not _stays(graph, g) for g in given)
        return True
    return any(isinstance(o, Api) and o.name in _MOVERS for o in graph.values.of(call.func))


def _stays(graph: CallGraph, target: Node) -> bool:
    """Whether a target of ``.to`` is the CPU, or no device: a dtype, another tensor."""
    if names_cpu(target):
        return True
    origins = graph.origins(target)
    return bool(origins) and all(
        (isinstance(o, Api) and o.name.startswith("torch."))
        or (isinstance(o, Expression) and names_cpu(o.node))
        or (isinstance(o, Made) and o.name == "torch.device" and names_cpu(o.call))
        for o in origins
    )


def names_cpu(node: Node) -> bool:
    """Whether an expression is the CPU, as it is written."""
    if isinstance(node, nodes.Const):
        return bool(node.value == "cpu")
    return (
        isinstance(node, nodes.Call)
        and dotted(node.func) == "torch.device"
        and bool(node.args)
        and isinstance(node.args[0], nodes.Const)
        and bool(node.args[0].value == "cpu")
    )

"""Layer 9, several: whether a program is several processes, and what makes it so."""

from __future__ import annotations

import re

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.origins import Param, Unknown, inner
from ddp_lint.model.torch_api import COLLECTIVES, DISTRIBUTED_MAKERS, INIT_GROUP, ROLES, WRAPPERS
from ddp_lint.model.tree import Node, dotted

#: Frameworks whose launchers start one process for each GPU.
_LAUNCHED = ("composer.Trainer", "composer.trainer.Trainer")
_TRAINERS = (
    "lightning.Trainer",
    "lightning.pytorch.Trainer",
    "pytorch_lightning.Trainer",
)


#: What somebody else's function is called that makes a group of processes.
_MAY_MAKE_GROUP = re.compile(
    r"(init|setup|start|launch|configure|enable|prepare|create|join|make).*"
    r"(dist|ddp|process|group|parallel|multi|mesh|slurm|mpi|world|rank|torch|engine|runtime)"
    r"|(dist|ddp|slurm|mpi|process).*(init|setup|launch|start)|^(launch|bootstrap|spawn)\w*$",
    re.I,
)


#: What asks Accelerate for the other processes, or has them meet.
_ASKS_ACCELERATE = re.compile(
    rb"\b(is_main_process|is_local_main_process|is_last_process|process_index|local_process_index"
    rb"|num_processes|on_\w*process|\w*main_process_first|split_between_processes"
    rb"|wait_for_everyone|gather\w*)\b"
)
_PREPARING = frozenset({"prepare", "prepare_model"})
_MODELS = frozenset({"module", "ddp", "dp", "fsdp"})


#: As in ``torchrun --nproc_per_node=1 convert.py``.
_LAUNCH_LINE = re.compile(rb"nproc[-_]per[-_]node[= ]+([\w$.]+)")


def makes_several(facts: Facts) -> Node | None:
    """The call that makes this program one of several processes, for certain; None without."""
    makers = [call for call, _ in facts.calls_to(DISTRIBUTED_MAKERS)]
    if any(_is_fake(facts, call) for call in makers) or _is_started_alone(facts):
        return None
    for call in makers:
        if not is_alone(facts, call) and not never_runs(facts, call):
            return call
    return next((call for call, _ in facts.calls if _is_of_many(facts, call)), None)


def only_if_launched(facts: Facts) -> bool:
    """Whether nothing but a trainer of Hugging Face's makes it several processes: the same
    script is started as one just as well."""
    maker = facts.once(makes_several)
    return (
        isinstance(maker, nodes.Call)
        and not facts.names(maker) & DISTRIBUTED_MAKERS
        and _is_hugging_face(facts, maker)
    )


def is_single(facts: Facts) -> bool:
    """Whether the program is a script that makes no ranks, nor calls what might make some."""
    return (
        facts.once(makes_several) is None
        and all(root.is_script for root in facts.graph.roots)
        and not facts.once(_may_make_group)
    )


def _is_started_alone(facts: Facts) -> bool:
    """Whether the script itself says how it is started: as one process."""
    told = {count for root in facts.graph.roots for count in _LAUNCH_LINE.findall(root.source.raw)}
    return told == {b"1"}


def _one_process_drives_all(facts: Facts) -> bool:
    """Whether ``nn.DataParallel`` is what trains on several GPUs, and Accelerate helps with mixed
    precision: it is asked for no process and given no model.  What it is given in a dictionary it
    hands back as it was."""
    if not any("dp" in facts.roles_of(call) for call, _ in facts.calls):
        return False
    if any(_ASKS_ACCELERATE.search(module.source.raw) for module in facts.modules):
        return False
    return not any(
        _may_be_model(facts, given)
        for call, _ in facts.calls
        if isinstance(call.func, nodes.Attribute)
        and call.func.attrname in _PREPARING
        and "accelerator" in facts.roles_of(call.func.expr)
        for given in [*call.args, *(k.value for k in call.keywords)]
    )


def _may_be_model(facts: Facts, node: Node) -> bool:
    """Whether a value is a model, or one cannot tell what it is."""
    if facts.roles_of(node):
        return bool(facts.roles_of(node) & _MODELS)
    origins = facts.origins(node)
    return not origins or any(
        isinstance(base, Param | Unknown) for origin in origins for base in inner(origin)
    )


def never_runs(facts: Facts, call: nodes.Call) -> bool:
    """A wrapper in a script that makes no group of processes: it would raise.

    It stands in code that this script shares with another one, under a setting that stays off
    here.
    """
    return (
        any(ROLES.get(name) in WRAPPERS for name in facts.names(call))
        and all(root.is_script for root in facts.graph.roots)
        and not facts.once(_may_make_group)
    )


def _may_make_group(facts: Facts) -> bool:
    """Whether the program makes a group of processes, or something outside it may do so."""
    for call, _ in facts.calls:
        names = facts.names(call)
        roles = {ROLES.get(name) for name in names}
        if names & INIT_GROUP or _is_of_many(facts, call):
            return True
        said = dotted(call.func).rpartition(".")[2] or getattr(call.func, "attrname", "")
        theirs = not facts.graph.targets_of(call) and not roles & WRAPPERS
        if theirs and _MAY_MAKE_GROUP.search(said):
            return True
    return False


def _is_of_many(facts: Facts, call: nodes.Call) -> bool:
    """A trainer of a framework that certainly is one of several processes."""
    for name in facts.names(call):
        role = ROLES.get(name)
        if role == "accelerator":
            return not facts.once(_one_process_drives_all)
        if name in _LAUNCHED:
            return True
        if (role == "fabric" or name in _TRAINERS) and _has_devices(call):
            return True
        if name == "mmengine.runner.Runner":
            return any(k.arg == "launcher" for k in call.keywords)
    if not dotted(call.func).endswith("Trainer"):
        return False
    return _is_hugging_face(facts, call) and any(facts.calls_to(COLLECTIVES))


def _is_hugging_face(facts: Facts, call: nodes.Call) -> bool:
    return "hf trainer" in facts.roles_of(call) or "transformers.Trainer" in facts.names(call)


def _is_fake(facts: Facts, call: nodes.Call) -> bool:
    """A group that sends nothing, for estimates and dry runs in one process."""
    given = [k.value for k in call.keywords if k.arg == "backend"] or call.args[:1]
    return bool(facts.names(call) & INIT_GROUP) and any(
        isinstance(node, nodes.Const) and node.value == "fake" for node in given
    )


def is_alone(facts: Facts, call: nodes.Call) -> bool:
    """A group of one process, as tests and notebooks make it."""
    if not facts.names(call) & INIT_GROUP:
        return False
    given = [k.value for k in call.keywords if k.arg == "world_size"] or call.args[3:4]
    return any(isinstance(node, nodes.Const) and node.value == 1 for node in given)


def _has_devices(call: nodes.Call) -> bool:
    """Fabric and Lightning start one process for each device that they are told."""
    told = {keyword.arg: keyword.value for keyword in call.keywords}
    devices = told.get("devices", told.get("gpus"))
    if isinstance(devices, nodes.Const):
        return devices.value not in (1, "1", None)
    return devices is not None or isinstance(told.get("strategy"), nodes.Const)

"""Layer 5, roles: the part that a value plays in a training program.

Read from where the value comes from, never from what it is called.  A value may have several
origins and so several roles; ``model = DDP(model) if world > 1 else model`` has both.
"""

from __future__ import annotations

from ddp_lint.model.calls import CallGraph
from ddp_lint.model.origins import Api, Instance, Item, Made, Member, Origin, Result
from ddp_lint.model.torch_api import MODULE_FACTORIES, ROLE_PREFIXES, ROLES
from ddp_lint.model.tree import Node

#: The role of an object whose class has this base outside the project.
_BASES: dict[str, str] = {
    "torch.nn.Module": "module",
    "torch.nn.modules.module.Module": "module",
    "torch.utils.data.Dataset": "dataset",
    "torch.utils.data.dataset.Dataset": "dataset",
    "torch.utils.data.IterableDataset": "iterable dataset",
    "torch.utils.data.Sampler": "sampler",
    "torch.utils.data.sampler.Sampler": "sampler",
    "torch.utils.data.BatchSampler": "batch sampler",
    "torch.utils.data.sampler.BatchSampler": "batch sampler",
    "torch.optim.Optimizer": "optimizer",
    "torch.optim.optimizer.Optimizer": "optimizer",
    "torch.optim.lr_scheduler._LRScheduler": "own scheduler",
    "torch.optim.lr_scheduler.LRScheduler": "own scheduler",
    "torch.autograd.Function": "autograd function",
    "torchmetrics.Metric": "metric",
}
_PREPARING = frozenset({"prepare", "setup", "setup_module", "setup_optimizers",
                        "setup_dataloaders", "prepare_model", "prepare_optimizer",
                        "prepare_data_loader"})  # fmt: skip
_DEEPSPEED_PARTS = ("engine", "engine optimizer", "engine loader", "engine scheduler")


#: What is made by a member chosen at run time: ``torch.optim.__dict__[name](...)``.
_CATALOGUES = {
    "torch.optim": "optimizer",
    "torch.optim.lr_scheduler": "scheduler",
    "torchvision.models": "module",
    "torchvision.datasets": "dataset",
}


class Roles:
    """The roles of expressions in one program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.words = graph.values.codebase.project.words
        self._preparing: set[int] = set()

    def of(self, node: Node | None) -> frozenset[str]:
        """Every role that is known; empty where none is."""
        found = (self.role(origin) for origin in self.graph.origins(node))
        return frozenset(role for role in found if role)

    def role(self, origin: Origin) -> str:
        """One word, or "" where it cannot be told.

        What a framework has prepared is ``prepared module``, ``prepared loader`` and so on.
        """
        match origin:
            case Made() | Instance() if named := self._by_the_projects_words(origin):
                return named
            case Made(name=name):
                return role_of_name(name)
            case Instance(cls=cls):
                return self._of_bases(self.graph.values.external_bases(cls))
            case Item(of=Made(name="deepspeed.initialize"), how=int(how)):
                return _DEEPSPEED_PARTS[how] if 0 <= how < len(_DEEPSPEED_PARTS) else ""
            case Item(of=Result(of=Member(name=name, of=owner), call=call), how=int(how)):
                if name in _PREPARING and self._is_preparer(owner) and 0 <= how < len(call.args):
                    return self._prepared(call.args[how])
            case Result(of=Member(name=name, of=owner), call=call):
                if name in _PREPARING and self._is_preparer(owner) and len(call.args) == 1:
                    return self._prepared(call.args[0])
                if name == "register" and isinstance(owner, Api):
                    return "module"
            case Result(of=Item(of=Api(name=name))) if name.endswith(".__dict__"):
                return _CATALOGUES.get(name.removesuffix(".__dict__"), "")
            case Result(of=Made(name="builtins.getattr", call=call)) if call.args:
                found = self.graph.origins(call.args[0])
                names = {o.name if isinstance(o, Api) else "" for o in found}
                return _CATALOGUES.get(names.pop(), "") if len(names) == 1 else ""
        return ""

    def _by_the_projects_words(self, origin: Made | Instance) -> str:
        if self.is_called(origin, self.words.scaler_wrappers):
            return "native scaler"
        if self.is_called(origin, self.words.samplers):
            return "distributed sampler"
        return ""

    def is_called(self, origin: Origin, names: frozenset[str]) -> bool:
        """Whether it is an object of a class that has one of these names, or is derived from
        one that has."""
        if not names:
            return False
        match origin:
            case Made(name=name):
                return name.rpartition(".")[2] in names
            case Instance(cls=cls):
                above = self.graph.values.mro(cls)
                bases = self.graph.values.external_bases(cls)
                return not names.isdisjoint(
                    [*(c.name for c in above), *(b.rpartition(".")[2] for b in bases)]
                )
        return False

    def _is_preparer(self, owner: Origin) -> bool:
        return self.role(owner) in ("accelerator", "fabric")

    def _prepared(self, node: Node) -> str:
        if id(node) in self._preparing:
            return ""  # prepared anew in each round of a loop: what it was before says it
        self._preparing.add(id(node))
        try:
            roles = {role.removeprefix("prepared ") for role in self.of(node)}
        finally:
            self._preparing.discard(id(node))
        return f"prepared {min(roles)}" if roles else "prepared"

    def _of_bases(self, bases: set[str]) -> str:
        for base in sorted(bases):
            if base in _BASES:
                return _BASES[base]
            role = role_of_name(base)
            if role in ("distributed sampler", "scaler", "loader", "scheduler"):
                return "own scheduler" if role == "scheduler" else role
            if role in (
                "module",
                "dataset",
                "optimizer",
                "sampler",
                "metric",
                "ddp",
                "fsdp",
                "dp",
            ):
                return role
            package, name = base.partition(".")[0], base.rpartition(".")[2]
            if name == "LightningModule":
                return "lightning module"
            if package in ("transformers", "trl") and name.endswith("Trainer"):
                return "hf trainer"
            if (
                package in ("transformers", "timm", "diffusers", "torchvision")
                and name[:1].isupper()
                and name.endswith(("Model", "PreTrainedModel", "Mixin", "Module", "Net"))
            ):
                return "module"
        return ""


def role_of_name(name: str) -> str:
    """The role of what a call of something outside the project makes."""
    known = ROLES.get(name)
    if known is not None:
        return known
    last = name.rpartition(".")[2]
    for prefix, role in ROLE_PREFIXES:
        if name.startswith(prefix):
            if last[:1].isupper() or (prefix in MODULE_FACTORIES and last.islower()):
                return "" if role == "other" else role
            return "module" if prefix in MODULE_FACTORIES else ""
    if last == "from_pretrained" and ("Model" in name or name.startswith("transformers.Auto")):
        return "" if "Tokenizer" in name or "Processor" in name or "Config" in name else "module"
    return ""

"""Data only: what the names of PyTorch and of the frameworks around it mean to a training loop.

A new API is one line here, and no rule changes.  Names are fully qualified; where a library
offers a thing under several, each is listed.  Facts are from the libraries' documentation.
"""

from __future__ import annotations

#: Packages that are never looked for in the linted project, whatever lies beside the script.
EXTERNAL = frozenset(
    {"torch", "torchvision", "torchaudio", "torchtext", "torchmetrics", "numpy", "scipy",
     "pandas", "sklearn", "PIL", "cv2", "math", "os", "sys", "time", "random", "json", "re",
     "logging", "argparse", "pathlib", "collections", "itertools", "functools", "contextlib",
     "typing", "dataclasses", "copy", "warnings", "shutil", "subprocess", "tqdm", "wandb",
     "tensorboardX", "matplotlib", "h5py", "lmdb", "zipfile", "tarfile", "pickle", "glob", "io",
     "datetime", "yaml", "omegaconf", "hydra", "jax", "tensorflow", "builtins", "albumentations",
     "skimage", "imageio", "librosa", "soundfile", "imgaug", "webdataset", "accelerate",
     "deepspeed", "apex", "lightning", "pytorch_lightning", "lightning_fabric"}
)  # fmt: skip

# -- what a call makes ------------------------------------------------------------------------

_DDP = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "apex.parallel.DistributedDataParallel",
    "apex.parallel.distributed.DistributedDataParallel",
    "mmengine.model.MMDistributedDataParallel",
    "mmcv.parallel.MMDistributedDataParallel",
)
_FSDP = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
    "fairscale.nn.FullyShardedDataParallel",
)
_DP = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_SCALER = (
    "torch.cuda.amp.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler",
    "torch.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler",
    "torch.cpu.amp.GradScaler",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
)
_SAMPLER = (
    "torch.utils.data.distributed.DistributedSampler",
    "torch.utils.data.DistributedSampler",
)
_LOADER = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")

_SCHEDULES = tuple(
    f"transformers.{place}get_{kind}_schedule{ending}"
    for place in ("", "optimization.")
    for kind in ("constant", "linear", "cosine", "cosine_with_hard_restarts", "polynomial_decay")
    for ending in ("", "_with_warmup")
) + tuple(
    f"{package}.get_scheduler"
    for package in ("transformers", "transformers.optimization", "diffusers.optimization")
)

ROLES: dict[str, str] = {
    **dict.fromkeys(_SCHEDULES, "scheduler"),
    **dict.fromkeys(_DDP, "ddp"),
    **dict.fromkeys(_FSDP, "fsdp"),
    **dict.fromkeys(_DP, "dp"),
    **dict.fromkeys(_SCALER, "scaler"),
    **dict.fromkeys(_SAMPLER, "distributed sampler"),
    **dict.fromkeys(_LOADER, "loader"),
    "accelerate.Accelerator": "accelerator",
    "accelerate.accelerator.Accelerator": "accelerator",
    "lightning.Fabric": "fabric",
    "lightning.fabric.Fabric": "fabric",
    "lightning_fabric.Fabric": "fabric",
    "lightning.pytorch.LightningModule": "module",
    "pytorch_lightning.LightningModule": "module",
    "deepspeed.initialize": "deepspeed",
    "torch.utils.data.BatchSampler": "batch sampler",
    "torch.utils.data.sampler.BatchSampler": "batch sampler",
    "torch.utils.data.RandomSampler": "sampler",
    "torch.utils.data.SequentialSampler": "sampler",
    "torch.utils.data.SubsetRandomSampler": "sampler",
    "torch.utils.data.WeightedRandomSampler": "sampler",
    "torch.utils.data.sampler.RandomSampler": "sampler",
    "torch.utils.data.sampler.SequentialSampler": "sampler",
    "torch.utils.data.sampler.SubsetRandomSampler": "sampler",
    "torch.utils.data.sampler.WeightedRandomSampler": "sampler",
    "torch.utils.data.TensorDataset": "dataset",
    "torch.utils.data.Subset": "dataset",
    "torch.utils.data.ConcatDataset": "dataset",
    "torch.utils.data.random_split": "dataset",
    "torch.utils.data.Dataset": "dataset",
    "torch.utils.data.IterableDataset": "iterable dataset",
    "torch.cuda.Stream": "stream",
    "torch.Stream": "stream",
    "torch.utils.tensorboard.SummaryWriter": "writer",
    "torch.utils.tensorboard.writer.SummaryWriter": "writer",
    "tensorboardX.SummaryWriter": "writer",
    "torch.device": "device",
    "torch.distributed.new_group": "group",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm": "module",
    "apex.parallel.convert_syncbn_model": "module",
    "torch.compile": "module",
    "timm.create_model": "module",
    "timm.models.create_model": "module",
    "timm.utils.NativeScaler": "native scaler",
    "timm.utils.ModelEmaV2": "ema",
    "timm.utils.ModelEma": "ema",
    "torch.optim.swa_utils.AveragedModel": "ema",
    "torch.hub.load": "module",
}

#: Prefixes: everything below with a capital letter makes such a thing.
ROLE_PREFIXES: tuple[tuple[str, str], ...] = (
    ("torch.optim.lr_scheduler.", "scheduler"),
    ("torch.optim.", "optimizer"),
    ("torch.nn.modules.", "module"),
    ("torch.nn.parallel.", "wrapper"),
    ("torch.nn.utils.", "other"),
    ("torch.nn.functional.", "other"),
    ("torch.nn.", "module"),
    ("torchvision.models.", "module"),
    ("torchvision.datasets.", "dataset"),
    ("torchvision.transforms.", "transform"),
    ("torchmetrics.", "metric"),
    ("apex.optimizers.", "optimizer"),
    ("bitsandbytes.optim.", "optimizer"),
    ("timm.optim.", "optimizer"),
    ("transformers.optimization.", "optimizer"),
)

#: Constructors that are written in lower case.
MODULE_FACTORIES = ("torchvision.models.", "timm.models.")

WRAPPERS = frozenset({"ddp", "fsdp", "dp"})

# -- distributed ------------------------------------------------------------------------------

_D = "torch.distributed."

#: Every rank of the group has to call these.
COLLECTIVES = frozenset(
    f"{_D}{name}"
    for name in (
        "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object",
        "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier",
        "broadcast", "broadcast_object_list", "gather", "gather_object", "monitored_barrier",
        "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list",
    )
) | frozenset(
    f"{package}.{name}"
    for package in ("composer.utils.dist", "mmengine.dist")
    for name in ("all_gather", "all_gather_object", "all_reduce", "barrier", "broadcast",
                 "broadcast_object_list", "gather", "gather_object")
)  # fmt: skip

#: Methods of framework objects that every rank has to call, by the role of the object.
COLLECTIVE_METHODS: dict[str, frozenset[str]] = {
    "accelerator": frozenset(
        {"gather", "gather_for_metrics", "reduce", "pad_across_processes", "wait_for_everyone"}
    ),
    "fabric": frozenset({"all_gather", "all_reduce", "barrier", "broadcast"}),
}

INIT_GROUP = frozenset({f"{_D}init_process_group", f"{_D}distributed_c10d.init_process_group"})
DESTROY_GROUP = frozenset(
    {f"{_D}destroy_process_group", f"{_D}distributed_c10d.destroy_process_group"}
)
#: Calls after which a program certainly is one of several processes.
DISTRIBUTED_MAKERS = INIT_GROUP | frozenset(
    {*_DDP, *_FSDP, "deepspeed.initialize", "deepspeed.init_distributed", "horovod.torch.init"}
)
SET_DEVICE = frozenset(
    {
        "torch.cuda.set_device",
        "torch.accelerator.set_device_index",
        "torch.accelerator.set_device_idx",
        "torch.npu.set_device",
        "torch.xpu.set_device",
        "torch.set_default_device",
        "torch.cuda.device",
    }
)
SPAWNERS = frozenset(
    {
        "torch.multiprocessing.spawn",
        "torch.multiprocessing.spawn.spawn",
        "torch_xla.distributed.xla_multiprocessing.spawn",
        "torch.multiprocessing.start_processes",
    }
)

#: Calls that answer with a rank: "global" over all nodes, "local" in one, "world" their number.
RANK_CALLS: dict[str, str] = {
    f"{_D}get_rank": "global",
    f"{_D}distributed_c10d.get_rank": "global",
    f"{_D}get_node_local_rank": "local",
    f"{_D}get_world_size": "world",
    f"{_D}distributed_c10d.get_world_size": "world",
    "torch.cuda.current_device": "local",
    "torch.cuda.device_count": "per node",
    "mmengine.dist.get_rank": "global",
    "mmengine.dist.get_world_size": "world",
    "composer.utils.dist.get_global_rank": "global",
    "composer.utils.dist.get_local_rank": "local",
    "composer.utils.dist.get_world_size": "world",
    "mmcv.runner.get_dist_info": "dist info",
    "mmengine.dist.get_dist_info": "dist info",
    "horovod.torch.rank": "global",
    "horovod.torch.local_rank": "local",
    "horovod.torch.size": "world",
    "deepspeed.comm.get_rank": "global",
    "lightning.pytorch.utilities.rank_zero_only.rank": "global",
}
RANK_ENVIRONMENT: dict[str, str] = {
    "RANK": "global",
    "LOCAL_RANK": "local",
    "WORLD_SIZE": "world",
    "LOCAL_WORLD_SIZE": "per node",
    "SLURM_PROCID": "global",
    "SLURM_LOCALID": "local",
    "SLURM_NTASKS": "world",
    "OMPI_COMM_WORLD_RANK": "global",
    "OMPI_COMM_WORLD_LOCAL_RANK": "local",
    "OMPI_COMM_WORLD_SIZE": "world",
    "GROUP_RANK": "node",
    "NODE_RANK": "node",
}
#: Attributes that hold a rank wherever they are found; names are hints, see guards.py.
RANK_NAMES: dict[str, str] = {
    "rank": "global",
    "global_rank": "global",
    "process_rank": "global",
    "ddp_rank": "global",
    "node_rank": "node",
    "process_index": "global",
    "local_rank": "local",
    "localrank": "local",
    "ddp_local_rank": "local",
    "local_process_index": "local",
    "world_size": "world",
    "num_processes": "world",
    "ddp_world_size": "world",
}
#: Names that say "this is the first rank", as attributes or calls.
MAIN_NAMES: dict[str, str] = {
    "is_main_process": "main",
    "is_main": "main",
    "is_master": "main",
    "is_master_process": "main",
    "master_process": "main",
    "main_process": "main",
    "is_rank_zero": "main",
    "is_rank0": "main",
    "is_rank_0": "main",
    "is_primary": "main",
    "is_global_zero": "main",
    "is_world_process_zero": "main",
    "is_chief": "main",
    "is_local_main_process": "local main",
    "is_local_process_zero": "local main",
    "is_last_process": "last",
    "is_global_primary": "main",
    "is_local_master": "local main",
    "is_logging_process": "main",
}
#: Decorators that run a function on the first rank only.
MAIN_DECORATORS: dict[str, str] = {
    "rank_zero_only": "main",
    "on_main_process": "main",
    "main_process_only": "main",
    "master_only": "main",
    "only_on_master": "main",
    "master_process_only": "main",
    "rank0_only": "main",
    "main_process": "main",
    "on_local_main_process": "local main",
    "mark_as_saver": "main",
}

# -- AMP, gradients, optimization ---------------------------------------------------------------

CLIPS = frozenset(
    {
        "torch.nn.utils.clip_grad_norm_",
        "torch.nn.utils.clip_grad_norm",
        "torch.nn.utils.clip_grad_value_",
        "torch.nn.utils.clip_grad.clip_grad_norm_",
        "torch.nn.utils.clip_grad.clip_grad_value_",
        "torch.nn.utils.clip_grads_with_norm_",
    }
)
#: Objects that, called with a loss and an optimizer, run the backward pass, clip and step.
STEP_CALLERS = frozenset({"timm.utils.NativeScaler", "timm.utils.cuda.NativeScaler",
                          "timm.utils.ApexScaler"})  # fmt: skip
AUTOCASTS = frozenset(
    {
        "torch.cuda.amp.autocast",
        "torch.cuda.amp.autocast_mode.autocast",
        "torch.cpu.amp.autocast",
        "torch.amp.autocast",
        "torch.amp.autocast_mode.autocast",
        "torch.autocast",
    }
)
NO_GRAD = frozenset(
    {
        "torch.no_grad",
        "torch.inference_mode",
        "torch.autograd.no_grad",
        "torch.autograd.inference_mode",
    }
)

# -- what waits for the device ------------------------------------------------------------------

SYNCHRONIZE = frozenset(
    {
        "torch.cuda.synchronize",
        "torch.accelerator.synchronize",
        "torch.xpu.synchronize",
        "torch.mps.synchronize",
        "torch.npu.synchronize",
    }
)
BARRIERS = frozenset({f"{_D}barrier", f"{_D}monitored_barrier"})
EMPTY_CACHE = frozenset(
    {"torch.cuda.empty_cache", "torch.mps.empty_cache", "torch.accelerator.empty_cache"}
)

#: Functions of torch that make a tensor on the host unless told a device.
FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        "tensor", "as_tensor", "from_numpy", "zeros", "ones", "empty", "full", "rand", "randn",
        "randint", "arange", "linspace", "logspace", "eye", "randperm", "Tensor", "FloatTensor",
        "LongTensor", "IntTensor", "BoolTensor", "DoubleTensor", "load", "multinomial",
        "manual_seed",
    )
)  # fmt: skip
#: Methods of a tensor that answer with a host value without waiting for the device.
HOST_METHODS = frozenset(
    {"size", "dim", "numel", "nelement", "element_size", "stride", "ndimension",
     "is_floating_point", "data_ptr", "get_device", "is_contiguous", "storage_offset", "type",
     "is_inference", "is_complex", "is_shared", "is_pinned", "count", "index", "keys"}
)  # fmt: skip
#: Methods that give a tensor, and that other things that are moved to a device (batches, graphs,
#: states) hardly have.
TENSOR_METHODS = frozenset(
    {"abs", "add", "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "bfloat16", "bmm",
     "bool", "chunk", "clamp", "clone", "contiguous", "cpu", "cuda", "cumsum", "detach", "diag",
     "diff", "div", "double", "eq", "exp", "expand", "expand_as", "flatten", "flip", "float",
     "floor", "gather", "ge", "gt", "half", "index_select", "int", "isfinite", "isinf", "isnan",
     "le", "log", "log_softmax", "logical_and", "logical_not", "long", "lt", "masked_fill",
     "masked_select", "matmul", "max", "mean", "median", "min", "mm", "mul", "narrow", "ne",
     "neg", "nonzero", "norm", "permute", "pow", "prod", "repeat", "repeat_interleave",
     "requires_grad_", "reshape", "roll", "round", "scatter", "sigmoid", "sign", "softmax", "sort",
     "sqrt", "square", "squeeze", "std", "sub", "sum", "t", "tanh", "tile", "to", "topk",
     "transpose", "tril", "triu", "type_as", "unbind", "unfold", "unique", "unsqueeze", "var",
     "view", "view_as", "where", "zero_"}
)  # fmt: skip
HOST_ATTRIBUTES = frozenset(
    {
        "shape",
        "device",
        "dtype",
        "ndim",
        "requires_grad",
        "is_cuda",
        "grad_fn",
        "is_leaf",
        "layout",
        "names",
        "name",
    }
)
#: Functions of torch that answer with a host value without waiting for the device.
HOST_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in (
        "is_tensor", "is_floating_point", "is_complex", "numel", "is_grad_enabled", "device",
        "Size", "get_default_dtype", "is_autocast_enabled", "typename", "finfo", "iinfo",
        "initial_seed", "is_inference_mode_enabled", "get_rng_state", "Generator", "no_grad",
        "enable_grad",
    )
)  # fmt: skip
#: Methods that answer with their own object (of modules), or with the same values (of tensors).
SAME_OBJECT = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_",
     "contiguous", "share_memory", "apply", "npu", "xpu", "to_empty", "compile_"}
)  # fmt: skip

#: Modules whose calls answer with host values.
HOST_MODULES = ("numpy.", "math.", "time.", "random.", "os.", "sys.", "json.", "builtins.", "re.")

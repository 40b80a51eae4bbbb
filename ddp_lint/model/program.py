"""The top layer: a program as rules see it, in the noun phrases that rules use.

Each noun comes from the module of its subject; this is their index.  A new noun is one property
here and a function there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ddp_lint.model import (
    accumulation,
    around,
    autocasting,
    averaging,
    branching,
    clearing,
    clipping,
    data_parallel,
    datasets,
    deferrals,
    deprecated,
    devices,
    divided,
    epochs,
    evaluation,
    gradients,
    graphs,
    groups,
    leaving,
    loading,
    loads,
    metrics,
    no_sync,
    predicates,
    prefetch,
    prefixed,
    printing,
    reruns,
    resuming,
    samples,
    saves,
    scaling,
    scheduling,
    several,
    sharded,
    sharding,
    states,
    streams,
    syncs,
    transfers,
    waiting,
    workers,
    wrapping,
)
from ddp_lint.model.calls import Wiring
from ddp_lint.model.epochs import EpochLoop
from ddp_lint.model.facts import Facts
from ddp_lint.model.modules import Module
from ddp_lint.model.sharding import Unsharded


class Program:
    """What one entry point reaches."""

    def __init__(self, wiring: Wiring, roots: list[Module]) -> None:
        self.facts = Facts(wiring, roots)

    # -- syncs ------------------------------------------------------------------------------

    @cached_property
    def host_reads(self) -> tuple[syncs.HostRead, ...]:
        """Reads of device values by the host within a training step."""
        return tuple(syncs.host_reads(self.facts))

    @cached_property
    def deferrals(self) -> deferrals.Deferrals:
        """Which of these reads may wait until their loop is through."""
        return deferrals.Deferrals(self.facts, self.host_reads)

    @cached_property
    def branches(self) -> tuple[branching.Branch, ...]:
        """Decisions of Python on device values within a training step."""
        return tuple(branching.branches(self.facts))

    @cached_property
    def waits(self) -> tuple[waiting.Wait, ...]:
        """Explicit synchronizations and barriers within a training step."""
        return tuple(waiting.waits(self.facts))

    @cached_property
    def cache_clears(self) -> tuple[syncs.StepSpot, ...]:
        """``empty_cache()`` within a training step."""
        return tuple(syncs.cache_clears(self.facts))

    # -- loading ----------------------------------------------------------------------------

    @cached_property
    def loading(self) -> loading.Loading:
        return loading.Loading(self.facts)

    @cached_property
    def epochs(self) -> epochs.Epochs:
        return epochs.Epochs(self.loading)

    @property
    def epoch_loops(self) -> list[EpochLoop]:
        """Loops that go through a loader with a distributed sampler again and again."""
        return self.epochs.loops

    @cached_property
    def samples(self) -> samples.Samples:
        """What is done for every sample of the datasets that training loops draw from."""
        return samples.Samples(datasets.Datasets.of_training(self.epochs))

    @cached_property
    def sharding(self) -> sharding.Sharding:
        """Whose share of the data each rank goes through."""
        return sharding.Sharding(self.loading, self.epochs)

    @cached_property
    def unsharded_loaders(self) -> tuple[Unsharded, ...]:
        """Loaders of distributed training that deal everything to every rank."""
        return tuple(self.sharding.unsharded())

    @cached_property
    def metrics(self) -> metrics.Metrics:
        """What becomes of the numbers of evaluations, each over one rank's share."""
        return metrics.Metrics(self.epochs, self.sharding)

    @cached_property
    def reruns(self) -> reruns.Reruns:
        """What runs again and again."""
        return reruns.Reruns(self.facts)

    @cached_property
    def side_streams(self) -> streams.SideStreams:
        """Prefetchers that copy on a stream of their own."""
        return streams.SideStreams(self.facts, self.reruns)

    @property
    def repeated_streams(self) -> Iterator[streams.RepeatedStream]:
        """Streams that are made again in each epoch."""
        return streams.repeated_streams(self.facts, self.reruns)

    @property
    def lost_batches(self) -> Iterator[prefetch.LostBatch]:
        """Batches that do not arrive."""
        return iter(prefetch.Losses(self.facts, self.epochs.drawing, self.reruns))

    @property
    def transfers(self) -> Iterator[transfers.Transfer]:
        """Moves of batches that do not fit what the loader does."""
        return iter(transfers.Transfers(self.loading, self.epochs.drawing))

    @property
    def loaders_of_two_orders(self) -> Iterator[workers.TwoOrders]:
        """Loaders that are told to shuffle and given a sampler."""
        return workers.two_orders(self.loading)

    @property
    def cuda_in_workers(self) -> Iterator[workers.CudaInWorker]:
        """CUDA tensors that worker processes make."""
        return workers.cuda_in_workers(self.loading)

    @property
    def shared_handles(self) -> Iterator[workers.SharedHandle]:
        """Files that a dataset opens once for all its workers."""
        return workers.shared_handles(self.loading)

    @property
    def starved_loaders(self) -> Iterator[workers.Starved]:
        """Loaders without workers that feed a training loop on the GPU."""
        return workers.starved(self.epochs, self.samples)

    # -- processes and checkpoints ----------------------------------------------------------

    @cached_property
    def is_distributed(self) -> bool:
        """Whether the program certainly runs as several processes."""
        return self.facts.once(several.makes_several) is not None

    @cached_property
    def saves(self) -> tuple[saves.Save, ...]:
        """Writes of checkpoints to files, in a program of several processes."""
        return tuple(saves.saves(self.facts)) if self.is_distributed else ()

    # -- gradients --------------------------------------------------------------------------

    @cached_property
    def training(self) -> gradients.Training:
        """The loops that step an optimizer, and the order of moves in their iterations."""
        return gradients.Training(self.facts)

    @property
    def never_cleared(self) -> Iterator[clearing.Uncleared]:
        """Loops whose steps use gradients that nothing clears."""
        return clearing.never_cleared(self.training)

    @property
    def unaveraged(self) -> Iterator[averaging.Unaveraged]:
        """Losses that are added up over a window and never divided."""
        return averaging.unaveraged(self.training)

    @property
    def unsynchronized(self) -> Iterator[no_sync.Unsynchronized]:
        """Loops over micro-batches each of which averages the gradients."""
        return no_sync.unsynchronized(self.training)

    @property
    def late_no_syncs(self) -> Iterator[no_sync.LateNoSync]:
        """A `no_sync` around a backward whose forward stands before it."""
        return no_sync.late_no_syncs(self.training)

    @property
    def useless_clips(self) -> Iterator[clipping.UselessClip]:
        """Clips before there are gradients, or after they were used."""
        return clipping.useless_clips(self.training)

    @property
    def rank_clips(self) -> Iterator[clipping.RankClip]:
        """Clips of one rank's gradients, which are summed over the ranks only later."""
        return clipping.rank_clips(self.training)

    @property
    def early_schedules(self) -> Iterator[scheduling.EarlySchedule]:
        """Schedules that advance before their optimizer has stepped."""
        return scheduling.early_schedules(self.training)

    @property
    def cast_backwards(self) -> Iterator[autocasting.CastBackward]:
        """Backward passes within an autocast region."""
        return autocasting.cast_backwards(self.training)

    @property
    def needless_scalers(self) -> Iterator[autocasting.NeedlessScaler]:
        """Scalers that are on although the loss is computed in bfloat16."""
        return autocasting.needless_scalers(self.training)

    @property
    def old_names(self) -> Iterator[deprecated.OldName]:
        """Names of mixed precision that PyTorch has moved."""
        return deprecated.old_names(self.facts)

    @property
    def lost_scalers(self) -> Iterator[resuming.ScalerLost]:
        """Checkpoints with model and optimizer that lack the scaler."""
        return resuming.lost_scalers(self.training)

    @cached_property
    def evaluations(self) -> evaluation.Evaluations:
        """The loops that evaluate, and whether autograd records them."""
        return evaluation.Evaluations(self.training)

    @property
    def recording_evaluations(self) -> list[evaluation.RecordingEvaluation]:
        """Evaluation loops that record a graph for every forward pass."""
        return self.evaluations.recording

    @property
    def kept_graphs(self) -> Iterator[graphs.Kept]:
        """Graphs that outlive the step that made them."""
        return graphs.kept_graphs(self.evaluations)

    @property
    def clips_of_scaled(self) -> Iterator[scaling.ScaledClip]:
        """Clips of gradients that still carry the scale of a scaler."""
        return scaling.clips_of_scaled(self.training)

    @property
    def half_uses(self) -> Iterator[scaling.HalfUse]:
        """Loops that use a scaler for one half of the step and not for the other."""
        return scaling.half_uses(self.training)

    @property
    def unscaled_within(self) -> Iterator[accumulation.WindowSpot]:
        """Unscaling and clipping at each micro-batch of a window."""
        return accumulation.unscaled_within(self.training)

    @property
    def cleared_within(self) -> Iterator[accumulation.WindowSpot]:
        """Gradients cleared at each micro-batch of a window."""
        return accumulation.cleared_within(self.training)

    @cached_property
    def wrapped_states(self) -> tuple[states.WrappedState, ...]:
        """States of DDP wrappers that are written with the prefix in their names."""
        return tuple(states.wrapped_states(self.facts))

    @cached_property
    def uncalled_tests(self) -> tuple[predicates.UncalledTest, ...]:
        """Functions that answer about ranks, tested instead of their answers."""
        return tuple(predicates.uncalled_tests(self.facts))

    @cached_property
    def sharded_saves(self) -> tuple[sharded.ShardedSave, ...]:
        """Saves in which all ranks take part, and which only some make."""
        return tuple(sharded.sharded_saves(self.facts))

    @cached_property
    def divided_calls(self) -> tuple[divided.DividedCall, ...]:
        """Calls that only some ranks make though their collective wants all."""
        return tuple(divided.divided_calls(self.facts))

    @cached_property
    def bar_loops(self) -> tuple[divided.BarLoop, ...]:
        """Training loops that ask a progress bar whether they are done."""
        return tuple(divided.bar_loops(self.facts))

    @cached_property
    def around_calls(self) -> tuple[around.AroundCall, ...]:
        """Losses that flow through the model inside a DDP wrapper."""
        return tuple(around.around_calls(self.facts))

    @cached_property
    def local_exits(self) -> tuple[leaving.LocalExit, ...]:
        """Exits of a training step that one rank takes alone."""
        return tuple(leaving.local_exits(self.facts))

    @cached_property
    def restoring_loads(self) -> tuple[loads.RestoringLoad, ...]:
        """Loads of checkpoints in a program of several processes with GPUs."""
        return tuple(loads.restoring_loads(self.facts))

    @cached_property
    def racing_loads(self) -> tuple[loads.RacingLoad, ...]:
        """Loads by all ranks of what one rank may still be writing."""
        return tuple(loads.racing_loads(self.facts))

    @cached_property
    def prefixed_loads(self) -> tuple[prefixed.PrefixedLoad, ...]:
        """Loads without strictness that load nothing, for the prefix in the file."""
        return tuple(prefixed.prefixed_loads(self.facts))

    # -- devices and groups -----------------------------------------------------------------

    @cached_property
    def ranks_as_devices(self) -> tuple[devices.RankAsDevice, ...]:
        """Uses of the rank in the whole job as the number of a GPU."""
        return tuple(devices.ranks_as_devices(self.facts))

    @cached_property
    def unplaced_groups(self) -> tuple[devices.UnplacedGroup, ...]:
        """NCCL groups that are made before the process has chosen its GPU."""
        return tuple(devices.unplaced_groups(self.facts))

    @cached_property
    def open_groups(self) -> tuple[groups.OpenGroup, ...]:
        """Process groups that nothing destroys."""
        return tuple(groups.open_groups(self.facts))

    @cached_property
    def divided_closings(self) -> tuple[divided.DividedCall, ...]:
        """Process groups that only some ranks destroy."""
        return tuple(groups.divided_closings(self.facts))

    @cached_property
    def early_closings(self) -> tuple[groups.EarlyClosing, ...]:
        """Process groups that a failing rank destroys while others use them."""
        return tuple(groups.early_closings(self.facts))

    # -- wrapping and printing --------------------------------------------------------------

    @cached_property
    def data_parallel_calls(self) -> tuple[data_parallel.DataParallelCall, ...]:
        """Constructions of ``nn.DataParallel`` around models that are trained."""
        return tuple(data_parallel.data_parallel_calls(self.training))

    @cached_property
    def unused_searches(self) -> tuple[wrapping.UnusedSearch, ...]:
        """DDP wrappers that search for unused parameters in every step."""
        return tuple(wrapping.unused_searches(self.facts))

    @cached_property
    def wrapped_early(self) -> tuple[wrapping.WrappedEarly, ...]:
        """Optimizers and layers that were made on the wrong side of a wrapper."""
        return tuple(wrapping.wrapped_early(self.facts))

    @cached_property
    def repeated_prints(self) -> tuple[printing.RepeatedPrint, ...]:
        """Prints in loops that nothing makes quiet on other ranks."""
        return tuple(printing.repeated_prints(self.facts))

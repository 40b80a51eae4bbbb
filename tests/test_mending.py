"""What fixes make of programs: the text that they write is the text that a person would write."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

import pytest

from ddp_lint.finding import Finding
from ddp_lint.fix import fix
from ddp_lint.sources import Project
from tests import markers


def mended(code: str, text: str) -> str:
    """The program after all fixes of one rule; itself, where nothing is offered."""

    def lint(project: Project) -> Sequence[Finding]:
        return [finding for finding in markers.findings(project) if finding.code == code]

    project = markers.project_of_text(text)
    assert lint(project), f"{code} does not speak here"
    fixed = fix(project, lint, unsafe=True)
    assert not fixed.withdrawn
    return {file.name: file.after for file in fixed.files}.get("example.py", text)


def check(code: str, before: str, after: str | None) -> None:
    """``after`` is None where no fix may be offered."""
    text = dedent(before).lstrip("\n")
    assert mended(code, text) == (text if after is None else dedent(after).lstrip("\n"))


TRAINING = """
    import sys

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def train(model, batches, optimizer):
        for batch in batches:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
"""


def training(rest: str) -> str:
    return dedent(TRAINING) + dedent(rest)


# -- process groups -----------------------------------------------------------------------------


def test_a_group_that_is_always_made_is_destroyed() -> None:
    check(
        "DDP508",
        training("""

            def main():
                dist.init_process_group("nccl", device_id=0)
                model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
                train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))


            main()
        """),
        training("""

            def main():
                dist.init_process_group("nccl", device_id=0)
                model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
                train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))
                dist.destroy_process_group()


            main()
        """),
    )


def test_a_group_that_is_made_for_several_processes_only_is_looked_for_first() -> None:
    check(
        "DDP508",
        training("""

            def main(processes):
                if processes > 1:
                    dist.init_process_group("nccl", device_id=0)
                model = torch.nn.Linear(2, 2).cuda()
                if processes > 1:
                    model = DistributedDataParallel(model)
                train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))


            main(len(sys.argv))
        """),
        training("""

            def main(processes):
                if processes > 1:
                    dist.init_process_group("nccl", device_id=0)
                model = torch.nn.Linear(2, 2).cuda()
                if processes > 1:
                    model = DistributedDataParallel(model)
                train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))
                if dist.is_initialized():
                    dist.destroy_process_group()


            main(len(sys.argv))
        """),
    )


def test_a_group_is_not_destroyed_where_it_is_set_up() -> None:
    """The set-up has two ways and a barrier: what it is for comes after it."""
    check(
        "DDP508",
        training("""

            def start(launcher):
                if launcher == "env":
                    dist.init_process_group("nccl", device_id=0)
                else:
                    dist.init_process_group("nccl", "tcp://localhost:1", device_id=0)
                dist.barrier()


            def main():
                start(sys.argv[1])
                model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
                train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))


            main()
        """),
        training("""

            def start(launcher):
                if launcher == "env":
                    dist.init_process_group("nccl", device_id=0)
                else:
                    dist.init_process_group("nccl", "tcp://localhost:1", device_id=0)
                dist.barrier()


            def main():
                start(sys.argv[1])
                model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
                train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))
                if dist.is_initialized():
                    dist.destroy_process_group()


            main()
        """),
    )


CHOOSING = """

    def start(args):
        if "RANK" in os.environ:
            args.gpu = int(os.environ["LOCAL_RANK"])
        elif "SLURM_PROCID" in os.environ:
            args.gpu = int(os.environ["SLURM_LOCALID"])
        else:
            {otherwise}
        dist.init_process_group("nccl", device_id=args.gpu)


    def main(args):
        start(args)
        model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
        train(model, args.batches, torch.optim.SGD(model.parameters(), lr=0.1))
        {end}


    main(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("otherwise", "end"),
    [
        ("return", "if dist.is_initialized():\n        dist.destroy_process_group()"),
        ("raise ValueError", "dist.destroy_process_group()"),
    ],
)
def test_a_group_that_the_last_of_several_arms_does_without_is_looked_for(
    otherwise: str, end: str
) -> None:
    program = training(CHOOSING).replace("import sys", "import os\nimport sys")
    check(
        "DDP508",
        program.format(otherwise=otherwise, end="").replace("    \n", ""),
        program.format(otherwise=otherwise, end=end),
    )


def test_a_group_is_not_destroyed_by_what_builds_a_trainer() -> None:
    check(
        "DDP508",
        """
            import torch
            import torch.distributed as dist


            class Trainer:
                def __init__(self, model):
                    dist.init_process_group("nccl", device_id=0)
                    self.model = torch.nn.parallel.DistributedDataParallel(model)
                    dist.barrier()

                def run(self, batches):
                    for batch in batches:
                        self.model(batch).sum().backward()
        """,
        None,
    )


# -- the first rank -----------------------------------------------------------------------------


SAVING = """
    import sys

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def save(model):
        {save}


    def main(processes, model):
        if {several}:
            dist.init_process_group("nccl", device_id=0)
            model = DistributedDataParallel(model)
        save(model)


    main(len(sys.argv), torch.nn.Linear(2, 2).cuda())
"""


@pytest.mark.parametrize(
    ("several", "test"),
    [
        ("True", "dist.get_rank() == 0"),
        ("processes > 1", "not dist.is_initialized() or dist.get_rank() == 0"),
    ],
)
def test_the_rank_is_asked_for_where_there_is_a_group(several: str, test: str) -> None:
    call = "torch.save(model.state_dict(), 'model.pt')"
    program = SAVING.replace("if {several}:\n            ", "").replace("    model =", "model =")
    program = program if several == "True" else SAVING
    check(
        "DDP401",
        program.format(save=call, several=several),
        program.format(save=f"if {test}:\n            {call}", several=several),
    )


def test_the_rank_is_asked_for_with_care_where_the_group_comes_later() -> None:
    check(
        "DDP509",
        training("""

            def main():
                for name in sys.argv:
                    print("reading", name.strip())
                dist.init_process_group("nccl")
                model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
                for epoch in range(9):
                    print("epoch", epoch)
                    train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))


            main()
        """),
        training("""

            def main():
                for name in sys.argv:
                    print("reading", name.strip())
                dist.init_process_group("nccl")
                model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
                for epoch in range(9):
                    if dist.get_rank() == 0:
                        print("epoch", epoch)
                    train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))


            main()
        """),
    )


PRINTING = """

    def main():
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
        for epoch in range(9):
            used = {used}
            print(used)
            train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))


    main()
"""


@pytest.mark.parametrize(
    "used",
    [
        "torch.cuda.max_memory_allocated() / 2**20",
        "model.module.weight.data_ptr()",
        "'%.1f GB' % (torch.cuda.memory_reserved() / 2**30)",
    ],
)
def test_what_a_rank_has_for_itself_is_not_hidden(used: str) -> None:
    """Nobody else tells what the GPU of another rank holds."""
    check("DDP509", training(PRINTING.format(used=used)), None)


def test_a_framework_may_run_without_a_group() -> None:
    """Accelerate makes one for several processes only."""
    check(
        "DDP401",
        """
            import torch
            from accelerate import Accelerator


            def keep(state):
                torch.save(state, "model.pt")


            def main(model, batches):
                accelerator = Accelerator()
                model = accelerator.prepare(model)
                for batch in batches:
                    accelerator.backward(model(batch).sum())
                keep(accelerator.unwrap_model(model).state_dict())


            main(torch.nn.Linear(2, 2), [])
        """,
        """
            import torch
            from accelerate import Accelerator


            def keep(state):
                if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:
                    torch.save(state, "model.pt")


            def main(model, batches):
                accelerator = Accelerator()
                model = accelerator.prepare(model)
                for batch in batches:
                    accelerator.backward(model(batch).sum())
                keep(accelerator.unwrap_model(model).state_dict())


            main(torch.nn.Linear(2, 2), [])
        """,
    )


def test_what_all_ranks_read_next_is_not_left_to_one() -> None:
    """A guard alone would let the others look for a file that is not there yet."""
    call = "path = 'model.pt'\n        torch.save(model.state_dict(), path)"
    read = f"{call}\n        evaluate(path)"
    check("DDP401", SAVING.format(save=read, several="processes > 1"), None)
    said = f"{call}\n        print('saved', path)\n        print(f'as {{path}}')"
    test = "not dist.is_initialized() or dist.get_rank() == 0"
    after = said.replace("torch.save", f"if {test}:\n            torch.save")
    check(
        "DDP401",
        SAVING.format(save=said, several="processes > 1"),
        SAVING.format(save=after, several="processes > 1"),
    )


@pytest.mark.parametrize(
    ("several", "before", "after"),
    [
        ("", "local_rank == 0", "dist.get_rank() == 0"),
        ("", "chief and local_rank == 0", "chief and dist.get_rank() == 0"),
        ("x", "local_rank == 0", "not dist.is_initialized() or dist.get_rank() == 0"),
        (
            "x",
            "chief and local_rank == 0",
            "chief and (not dist.is_initialized() or dist.get_rank() == 0)",
        ),
        ("x", "rank % torch.cuda.device_count() == 0", "rank == 0"),
        ("x", "local_rank == 0", "rank == 0"),
    ],
)
def test_the_rank_in_the_job(several: str, before: str, after: str) -> None:
    program = """
    import os

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def main(processes, chief, model):
        local_rank = int(os.environ["LOCAL_RANK"])
        if processes > 1:
            dist.init_process_group("nccl", device_id=local_rank)
            model = DistributedDataParallel(model)
        if {}:
            torch.save(model, "model.pt")


    main(int(os.environ["WORLD_SIZE"]), True, torch.nn.Linear(2, 2))
    """
    if not several:
        program = program.replace("if processes > 1:\n            ", "")
        program = program.replace("    model = D", "model = D")
    if after == "rank == 0":  # it has a name
        program = program.replace("    if", '    rank = int(os.environ["RANK"])\n        if', 1)
    check("DDP402", program.format(before), program.format(after))


# -- loaders ------------------------------------------------------------------------------------


LOADING = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for (batch,) in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()


    def main():
        data = TensorDataset(torch.randn(64, 2))
        {}
        model = DistributedDataParallel(torch.nn.Linear(2, 2))
        train(model, loader)


    main()
"""
GROUP = 'dist.init_process_group("gloo")\n        '


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("shuffle=True", "sampler=DistributedSampler(data)"),
        ("shuffle=False", "sampler=DistributedSampler(data, shuffle=False)"),
        (
            "drop_last=True",
            "drop_last=True, sampler=DistributedSampler(data, shuffle=False)",
        ),
        (
            "shuffle=not dist.is_nccl_available()",
            "sampler=DistributedSampler(data, shuffle=not dist.is_nccl_available())",
        ),
    ],
)
def test_a_sampler_keeps_the_order_that_was_asked_for(before: str, after: str) -> None:
    loader = "loader = DataLoader(data, batch_size=8, {})"
    check(
        "DDP304",
        LOADING.format(GROUP + loader.format(before)),
        LOADING.format(GROUP + loader.format(after)),
    )


def test_no_sampler_before_there_is_a_group() -> None:
    """It would raise: it asks the group for rank and number of processes."""
    loader = "loader = DataLoader(data, batch_size=8, shuffle=True)\n        "
    check("DDP304", LOADING.format(loader + GROUP.rstrip()), None)


# -- sums that stay on the device ---------------------------------------------------------------


SUMMING = """
    import json

    import torch
    from torch.nn import functional as F


    def train(model, loader, optimizer, epochs):
        model.cuda()
        for epoch in range(epochs):
            total = {start}
            for step, (images, labels) in enumerate(loader):
                images, labels = images.cuda(), labels.cuda()
                outputs = model(images)
                loss = F.cross_entropy(outputs, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                {add}
            {end}
"""


def summing(add: str, *end: str, start: str = "0") -> str:
    return SUMMING.format(
        start=start,
        add=add.replace("\n", "\n" + " " * 16),
        end=("\n" + " " * 12).join(end) or "pass",
    )


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [
        ("loss.item()", "loss.detach()", "float"),
        (
            "(labels == outputs.argmax(1)).sum().item()",
            "(labels == outputs.argmax(1)).sum()",
            "int",
        ),
        ("outputs.argmax(1).eq(labels).sum().item()", "outputs.argmax(1).eq(labels).sum()", "int"),
        ("outputs.square().mean().item()", "outputs.square().mean().detach()", "float"),
    ],
)
def test_a_sum_is_a_number_again_behind_the_loop(before: str, after: str, number: str) -> None:
    """Whoever gets it then cannot tell: ``json.dumps`` would refuse a tensor."""
    check(
        "DDP101",
        summing(f"total += {before}", "print(json.dumps([total]))"),
        summing(f"total += {after}", f"total = {number}(total)", "print(json.dumps([total]))"),
    )


def test_two_sums() -> None:
    check(
        "DDP101",
        summing(
            "total += loss.item()\nright += (outputs > 0).sum().item()",
            "print(total, right)",
            start="right = 0",
        ),
        summing(
            "total += loss.detach()\nright += (outputs > 0).sum()",
            "total = float(total)",
            "right = int(right)",
            "print(total, right)",
            start="right = 0",
        ),
    )


def test_a_sum_that_nobody_reads_stays_like_its_neighbours() -> None:
    check(
        "DDP101",
        summing(
            "unread += (outputs > 0).sum().item()\ntotal += loss.item()",
            "print(total)",
            start="unread = 0",
        ),
        summing(
            "unread += (outputs > 0).sum()\ntotal += loss.detach()",
            "total = float(total)",
            "unread = int(unread)",
            "print(total)",
            start="unread = 0",
        ),
    )
    check("DDP101", summing("total += loss.item()"), summing("total += loss.detach()"))


def test_a_sum_over_several_rounds_is_a_number_again_behind_the_last() -> None:
    rounds = """
        import torch


        def train(model, loader, optimizer, epochs):
            model.cuda()
            for epoch in range(epochs):
                total = 0.0
                for again in range(3):
                    for images in loader:
                        loss = model(images.cuda()).mean()
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                        total += loss.item()
                    {round}
                {end}
    """
    each = rounds.replace("loss.item()", "loss.detach()")
    number = "total = float(total)"
    here, there = "\n" + " " * 16, "\n" + " " * 20
    check(
        "DDP101",
        rounds.format(round="pass", end="print(total)"),
        each.format(round="pass", end=number + here + "print(total)"),
    )
    # whoever wants it after each round gets a number each time, also at the start of the next
    check(
        "DDP101",
        rounds.format(round="history.append(total)", end="pass"),
        each.format(round=number + there + "history.append(total)", end="pass"),
    )
    early = ("for images in loader:", "history.append(total)" + there + "for images in loader:")
    check(
        "DDP101",
        rounds.replace(*early).format(round="pass", end="pass"),
        each.replace(*early).format(round=number + there + "pass", end="pass"),
    )


@pytest.mark.parametrize(
    "other",
    [
        "print(loss)",
        'bar.desc = "loss {:.3f}".format(loss)',
        "history.append(outputs.mean().item())",
        "if loss > 100:\n    print('large')",
        "started = time.time()\ntorch.cuda.synchronize()\nhistory.append(time.time() - started)",
    ],
)
def test_a_sum_stays_a_number_where_the_step_waits_anyway(other: str) -> None:
    check("DDP101", summing(f"total += loss.item()\n{other}", "print(total)"), None)


def test_a_sum_stays_a_number_where_another_one_does() -> None:
    sums = "total += loss.item()\nright += images.sum().item()"
    check("DDP101", summing(sums, "print(total)", start="right = 0"), None)


@pytest.mark.parametrize(
    "other",
    [
        "if step % 100 == 0:\n    print(loss)",
        "if settings.verbose:\n    print(loss)",
    ],
)
def test_a_read_now_and_then_keeps_no_sum_from_the_device(other: str) -> None:
    check(
        "DDP101",
        summing(f"total += loss.item()\n{other}", "print(total)"),
        summing(f"total += loss.detach()\n{other}", "total = float(total)", "print(total)"),
    )


def test_a_wait_before_the_backward_pass_is_another_one() -> None:
    """Behind it the device has a backward pass and an update to do."""
    asked = (
        "outputs = model(images)",
        "outputs = model(images)\n                assert outputs.sum() > 0",
    )
    check(
        "DDP101",
        summing("total += loss.item()", "print(total)").replace(*asked),
        summing("total += loss.detach()", "total = float(total)", "print(total)").replace(*asked),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss.detach().clone()", "loss.detach().clone()"),
        ("loss.clone().detach()", "loss.clone().detach()"),
        ("outputs.mean().clone()", "outputs.mean().clone().detach()"),
        ("loss.data.mean()", "loss.data.mean()"),
    ],
)
def test_what_is_copied_or_detached_already(before: str, after: str) -> None:
    check(
        "DDP101",
        summing(f"total += {before}.item()", "print(total)"),
        summing(f"total += {after}", "total = float(total)", "print(total)"),
    )
    named = "value = {}\ntotal += value{}".format
    detached = ".detach()" if before != after else ""
    check(
        "DDP101",
        summing(named(before, ".item()"), "print(total)"),
        summing(named(before, detached), "total = float(total)", "print(total)"),
    )


def test_a_sum_of_halves_has_32_bits() -> None:
    """In bfloat16 a sum of ones stops at 256."""
    half = "model.bfloat16()"
    check(
        "DDP101",
        summing("total += loss.item()", "print(total)").replace("model.cuda()", half),
        summing("total += loss.detach().float()", "total = float(total)", "print(total)").replace(
            "model.cuda()", half
        ),
    )
    check(
        "DDP101",
        summing("total += outputs.float().mean().item()", "print(total)").replace(
            "model.cuda()", half
        ),
        summing(
            "total += outputs.float().mean().detach()", "total = float(total)", "print(total)"
        ).replace("model.cuda()", half),
    )


@pytest.mark.parametrize(
    "said",
    [
        'print(f"{step} {total / 100:.3f}")',
        'print("{} {:.3f}".format(step, total / 100))',
        'print("%d %.3f" % (step, total / 100))',
        'writer.add_scalar("loss", total / 100, step)',
    ],
)
def test_what_is_only_told_now_and_then_may_be_a_tensor(said: str) -> None:
    gated = f"\nif step % 100 == 99:\n    {said}\n    total = 0.0"
    check(
        "DDP101",
        summing(f"total += loss.item(){gated}"),
        summing(f"total += loss.detach(){gated}"),
    )


@pytest.mark.parametrize(
    "rest",
    [
        # read on every step: the wait would only move there
        "\nbar.set_postfix(loss=total / (step + 1))",
        '\nbar.set_postfix(loss="{:.3f}".format(total / (step + 1)))',
        "\nhistory.append(total / (step + 1))",
        # other texts show a tensor as one
        '\nif step % 100 == 0:\n    print("loss", total / 100)',
        '\nif step % 100 == 0:\n    print("%s" % total)',
        '\nif step % 100 == 0:\n    print("{!r}".format(total))',
        '\nif step % 100 == 0:\n    print(f"{total!s}")',
        "\nif step % 100 == 0:\n    history.append(total)",
    ],
)
def test_a_sum_that_is_asked_for_within_the_loop_stays_a_number(rest: str) -> None:
    check("DDP101", summing(f"total += loss.item(){rest}", "print(total)"), None)


def test_a_sum_that_somebody_else_starts_stays_a_number() -> None:
    check("DDP101", summing("total += loss.item()", "print(total)", start="resume()"), None)
    check("DDP101", summing("total += images.item()", "print(total)"), None)


def test_comments_at_the_end_of_the_loop_stay_in_it() -> None:
    check(
        "DDP101",
        summing("total += loss.item()\n# print(total)", "return total"),
        summing("total += loss.detach()\n# print(total)", "total = float(total)", "return total"),
    )


# -- statements that go -------------------------------------------------------------------------


STEPPING = """
    import sys
    import time

    import torch


    def train(model, loader, optimizer):
        model.cuda()
        for images in loader:
            optimizer.zero_grad()
            model(images.cuda()).sum().backward()
            optimizer.step()
            {}
"""


def stepping(rest: str) -> str:
    return dedent(STEPPING).format(rest.replace("\n", "\n" + " " * 8))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.empty_cache()\ncount(images)", "count(images)"),
        ("\ntorch.cuda.empty_cache()  # frees it\n\ncount(images)", "\ncount(images)"),
        (
            "if torch.cuda.is_available():\n    torch.cuda.empty_cache()\ncount(images)",
            "count(images)",
        ),
        ("if torch.cuda.is_available(): torch.cuda.empty_cache()\ncount(images)", "count(images)"),
    ],
)
def test_a_call_goes_with_what_is_there_for_it_alone(before: str, after: str) -> None:
    check("DDP104", stepping(before), stepping(after))


@pytest.mark.parametrize(
    ("code", "remark", "call"),
    [
        ("DDP103", "# the barrier makes every rank arrive before the mean", "dist.barrier()"),
        ("DDP103", "# dist.barrier() blocks until\n# every rank is here", "dist.barrier()"),
        ("DDP103", "# wait for all GPUs", "torch.cuda.synchronize()"),
        ("DDP103", "# 在barrier等待", "dist.barrier()"),
        ("DDP104", "# empty_cache gives the memory back", "torch.cuda.empty_cache()"),
    ],
)
def test_a_call_goes_with_the_comment_above_that_explains_it(
    code: str, remark: str, call: str
) -> None:
    program = stepping("{}count(images)").replace(
        "torch\n", "torch\nfrom torch import distributed as dist\n", 1
    )
    text = f"{remark}\n{call}\n".replace("\n", "\n" + " " * 8)
    check(code, program.format(text), program.format(""))


@pytest.mark.parametrize(
    ("remark", "call"),
    [
        ("# Schritt: alle Ranks", "dist.barrier()"),
        ("# step 5: wait for every rank", "dist.barrier()"),
        ("# wait, and count what is there", "dist.barrier()"),
        ("# synchronize the counts", "torch.cuda.synchronize()"),
        ("# wait\n# images = images.cpu()", "torch.cuda.synchronize()"),
    ],
)
def test_a_comment_that_may_be_the_heading_of_more_keeps_the_call(remark: str, call: str) -> None:
    program = stepping(f"{remark}\n{call}\ncount(images)")
    program = program.replace("torch\n", "torch\nfrom torch import distributed as dist\n", 1)
    check("DDP103", program, None)


def test_a_comment_that_heads_what_follows_stays() -> None:
    check(
        "DDP103",
        stepping("# count images\ntorch.cuda.synchronize()\ncount(images)"),
        stepping("# count images\ncount(images)"),
    )


def test_a_comment_above_a_blank_line_is_not_about_the_call() -> None:
    check(
        "DDP104",
        stepping("# counting\n\ntorch.cuda.empty_cache()\ncount(images)"),
        stepping("# counting\n\ncount(images)"),
    )
    check(
        "DDP104",
        stepping("\n# free the memory\ntorch.cuda.empty_cache()\n\ncount(images)"),
        stepping("\ncount(images)"),
    )
    check(
        "DDP104",
        stepping("# free the memory\ntorch.cuda.empty_cache()\ncount(images)"),
        None,
    )


def test_what_moves_takes_its_comments_along() -> None:
    program = """
        import torch
        from torch.utils.data import DataLoader

        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 9)
        for images in DataLoader([]):
            optimizer.zero_grad()
            model(images).sum().backward(){}
            optimizer.step(){}
    """
    step = "\n            # update the learning rate\n            schedule.step()  # each time"
    check("DDP209", program.format(step, ""), program.format("", step))
    check("DDP209", program.format(step.replace("rate", "rate and the rest"), ""), None)


def test_what_moves_up_takes_its_comment_along() -> None:
    program = """
        import torch
        from torch.utils.data import DataLoader

        model = torch.nn.Linear(2, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda")
        for images in DataLoader([]):
            optimizer.zero_grad()
            scaler.scale(model(images.cuda()).sum()).backward(){}
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0){}
            scaler.step(optimizer)
            scaler.update()
    """
    step = "\n            # unscale_ divides by the scale\n            scaler.unscale_(optimizer)"
    check("DDP201", program.format("", step), program.format(step, ""))
    check("DDP201", program.format("", step.replace("unscale_ divides", "now")), None)


def test_a_backward_leaves_its_region_with_the_comment_above() -> None:
    program = """
        import torch
        from torch.utils.data import DataLoader

        model = torch.nn.Linear(2, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for images in DataLoader([]):
            optimizer.zero_grad()
            with torch.autocast("cuda"):
                loss = model(images.cuda()).sum()
            {0}# the gradients
            {0}loss.backward()
            optimizer.step()
    """
    check("DDP207", program.format("    "), program.format(""))


@pytest.mark.parametrize(
    "rest",
    [
        "try:\n    torch.cuda.empty_cache()\nfinally:\n    count(images)",
        "if torch.cuda.is_available():\n    torch.cuda.empty_cache()\nelse:\n    count(images)",
        "if not torch.cuda.is_available():\n    pass\n"
        "elif torch.cuda.is_available():\n    torch.cuda.empty_cache()",
        "torch.cuda.empty_cache(); count(images)",
    ],
)
def test_no_block_is_left_empty(rest: str) -> None:
    check("DDP104", stepping(rest), None)


@pytest.mark.parametrize(
    "rest",
    [
        "torch.cuda.synchronize()\nmeter.iter_toc()",
        "torch.cuda.synchronize()\nended = time.time()",
        "if dist.get_rank() == 0:\n    write(images)\ndist.barrier()\nread(images)",
    ],
)
def test_a_wait_that_something_needs_stays(rest: str) -> None:
    program = stepping(rest).replace(
        "import torch\n", "import torch\nimport torch.distributed as dist\n", 1
    )
    check("DDP103", program, None)
    check("DDP103", stepping("torch.cuda.synchronize()\ncount(images)"), stepping("count(images)"))


def test_what_others_call_too_keeps_what_it_does() -> None:
    """A helper that this loop and somebody else call is not the loop's to change."""
    helper = dedent("""

        def tidy(images):
            torch.cuda.empty_cache()
            count(images)
    """)
    alone = stepping("tidy(images)") + helper
    check("DDP104", alone, alone.replace("    torch.cuda.empty_cache()\n", ""))
    check("DDP104", alone + "\n\ntidy([])\n", None)


# -- names that have moved ----------------------------------------------------------------------


def fixes_of(code: str, text: str) -> list[bool]:
    """Whether the fixes of a rule are safe."""
    found = markers.findings(markers.project_of_text(dedent(text)))
    return [one.fix.safe for one in found if one.code == code and one.fix is not None]


def test_only_what_every_pytorch_has_is_safe_to_write() -> None:
    assert fixes_of("DDP211", "import torch\nwith torch.cuda.amp.autocast():\n    pass\n") == [
        True
    ]
    assert fixes_of("DDP211", "import torch\ntorch.cuda.amp.GradScaler()\n") == [False]
    both = "from torch.cuda.amp import GradScaler, autocast\nwith autocast():\n    GradScaler()\n"
    assert fixes_of("DDP211", both) == [False]


def test_an_import_that_may_fail_is_left_alone() -> None:
    """Where the new name is missing, this would go on as if there were no autocast at all."""
    check(
        "DDP211",
        """
            try:
                from torch.cuda.amp import autocast
            except ImportError:
                pass
            with autocast():
                pass
        """,
        None,
    )


def test_the_device_gets_a_line_where_each_argument_has_one() -> None:
    check(
        "DDP211",
        """
            import torch

            with torch.cuda.amp.autocast(
                enabled=True,
                dtype=torch.bfloat16,
            ):
                pass
        """,
        """
            import torch

            with torch.amp.autocast(
                "cuda",
                enabled=True,
                dtype=torch.bfloat16,
            ):
                pass
        """,
    )


# -- the rest -----------------------------------------------------------------------------------


def test_others_wait_for_a_file_where_there_are_others() -> None:
    rest = "model.load_state_dict(torch.load('model.pt', map_location='cpu'))"
    save = "torch.save(model.state_dict(), 'model.pt')"
    guarded = (
        f"if not dist.is_initialized() or dist.get_rank() == 0:\n            {save}\n        "
    )
    barrier = "if dist.is_initialized():\n            dist.barrier()\n        "
    check(
        "DDP405",
        SAVING.format(save=guarded + rest, several="processes > 1"),
        SAVING.format(save=guarded + barrier + rest, several="processes > 1"),
    )


@pytest.mark.parametrize(
    ("chosen", "moves"),
    [
        ('int(os.environ["LOCAL_RANK"])', True),
        ("dist.get_rank() % torch.cuda.device_count()", False),
        ("local_rank()", False),
    ],
)
def test_a_device_that_the_group_tells_cannot_be_chosen_before_it(
    chosen: str, moves: bool
) -> None:
    program = """
        import os

        import torch
        import torch.distributed as dist


        def local_rank():
            return dist.get_rank() % torch.cuda.device_count()


        {}
        {}
        dist.barrier()
    """
    start = 'dist.init_process_group("nccl")'
    choice = f"torch.cuda.set_device({chosen})"
    check(
        "DDP507",
        program.format(start, choice),
        program.format(choice, start) if moves else None,
    )


def test_no_grad_stands_next_to_the_function() -> None:
    """Around a ``staticmethod`` it would make a method of it, with a model for ``self``."""
    program = """
        import torch
        from torch.utils.data import DataLoader


        class Task:
            @staticmethod
            # on the validation data
            {}def evaluate(model, loader):
                model.eval()
                right = 0
                for images, labels in loader:
                    right += (model(images).argmax(1) == labels).sum()
                return right


        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for images, labels in DataLoader([]):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        Task.evaluate(model, DataLoader([]))
    """
    check("DDP602", program.format(""), program.format("@torch.no_grad()\n            "))


def test_a_scaler_is_updated_once_for_all_its_optimizers() -> None:
    program = """
        import torch
        from torch.utils.data import DataLoader

        one, other = torch.nn.Linear(2, 2).cuda(), torch.nn.Linear(2, 2).cuda()
        first = torch.optim.SGD(one.parameters(), lr=0.1)
        second = torch.optim.SGD(other.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda")
        for batch in DataLoader([]):
            first.zero_grad()
            second.zero_grad()
            scaler.scale(one(batch).sum()).backward()
            scaler.step(first)
            scaler.scale(other(batch).sum()).backward()
            scaler.step(second){}
    """
    check("DDP206", program.format(""), program.format("\n            scaler.update()"))


# -- graphs and moves ---------------------------------------------------------------------------


KEEPING = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
    model = torch.nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept, total = [], 0
    for images, labels in loader:
        logits = model(images.to(device))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, labels.to(device)).backward()
        optimizer.step()
        {keeping}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('kept.append(logits.to("cpu"))', 'kept.append(logits.to("cpu").detach())'),
        ("total += logits[ : , 0 ]", "total += logits[ : , 0 ].detach()"),
        ("total += logits*2", "total += (logits*2).detach()"),
        (
            "kept.append(logits.view(\n            -1,  # all of them\n        ))",
            "kept.append(logits.view(\n            -1,  # all of them\n        ).detach())",
        ),
    ],
)
def test_what_is_kept_stays_as_it_is_written(before: str, after: str) -> None:
    check("DDP601", KEEPING.format(keeping=before), KEEPING.format(keeping=after))


PINNED = """
    import sys

    import torch
    from torch.utils.data import DataLoader, TensorDataset


    def train(device, data):
        model = torch.nn.Linear(32, 10).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(data, batch_size=64, num_workers=4, pin_memory=True)
        for images, labels in loader:
            images = images.to({to})
            optimizer.zero_grad()
            model(images).sum().backward()
            optimizer.step()


    {device}
    train(device, TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,))))
"""
ON_A_MAC = [
    "device = torch.accelerator.current_accelerator()",
    'device = torch.device("mps" if torch.backends.mps.is_available() else "cuda")',
    'device = "xpu" if torch.xpu.is_available() else "cuda"',
    'device = sys.argv[1] if torch.cuda.is_available() else "mps"',
]


@pytest.mark.parametrize("device", ON_A_MAC)
def test_a_move_that_may_go_elsewhere_than_cuda_blocks(device: str) -> None:
    """PyTorch pins nothing on MPS, and there a copy that does not block reads what is gone."""
    check("DDP105", PINNED.format(device=device, to="device"), None)


@pytest.mark.parametrize(
    ("device", "to"),
    [
        ("device = sys.argv[1]", "device"),
        ('device = "cuda" if torch.cuda.is_available() else "cpu"', "device"),
        *((device, '"cuda:1"') for device in ON_A_MAC),
        ('device = "cuda"  # no "mps" as yet', "device"),
    ],
)
def test_a_move_to_cuda_need_not_block(device: str, to: str) -> None:
    check(
        "DDP105",
        PINNED.format(device=device, to=to),
        PINNED.format(device=device, to=f"{to}, non_blocking=True"),
    )


def test_accelerate_has_its_own_way_to_accumulate() -> None:
    """Its ``backward()`` steps under DeepSpeed unless ``accumulate()`` is around."""
    check(
        "DDP504",
        """
            import torch
            from accelerate import Accelerator

            accelerator = Accelerator()
            model = torch.nn.Linear(32, 10)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model, optimizer = accelerator.prepare(model, optimizer)
            for step in range(1000):
                loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean() / 4
                accelerator.backward(loss)
                if (step + 1) % 4 == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        """,
        None,
    )


def test_no_rank_is_asked_for_before_there_is_a_group() -> None:
    """In the first round every rank would print: the group is made only after it."""
    check(
        "DDP509",
        training("""

            def trial(name):
                dist.init_process_group("nccl")
                model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
                train(model, sys.argv, torch.optim.SGD(model.parameters(), lr=0.1))
                dist.destroy_process_group()


            def main():
                for name in sys.argv:
                    print("trying", name.strip())
                    trial(name)


            main()
        """),
        None,
    )


ACCUMULATING = """
local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl", device_id=local_rank)
model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean() / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
dist.destroy_process_group()
"""
OF_TORCH = """import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
"""


@pytest.mark.parametrize(
    "imports",
    [
        "# A licence.\nimport argparse\nimport os\n+\n\n" + OF_TORCH,
        "import os\n+\nfrom pathlib import Path\n\n" + OF_TORCH,
        "import os\nfrom collections import Counter\n+\n\n" + OF_TORCH,
        "import argparse\nfrom collections import Counter\n+\nimport os\n\n" + OF_TORCH,
        '"""A text."""\n\nfrom __future__ import annotations\n\nimport os\n+\n\n' + OF_TORCH,
        "import os\n+\n" + OF_TORCH,
        "# A licence.\n\n+\n\n" + OF_TORCH + "\nimport os\n",
    ],
)
def test_an_import_stands_where_a_sorter_would_put_it(imports: str) -> None:
    """The line with a plus is the new one; a section of its own has a blank line below."""
    new = "from contextlib import nullcontext\n"
    before = imports.replace("\n\n+\n\n", "\n\n").replace("+\n", "")
    after = mended("DDP504", before + ACCUMULATING)
    assert after.startswith(imports.replace("+\n", new))


RUNNING = """
    import os

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    class Runner:
        def __init__(self, net):
            self.here = int(os.environ["LOCAL_RANK"])
            self.overall = {overall}
            self.net = DistributedDataParallel(net.cuda(), device_ids=[self.here])

        def run(self):
            if {test}:
                torch.save(self.net.module.state_dict(), "last.pt")


    dist.init_process_group("nccl")
    Runner(torch.nn.Linear(2, 2)).run()
"""


@pytest.mark.parametrize(
    ("overall", "test"),
    [
        ('int(os.environ["RANK"])', "self.overall == 0"),
        ("dist.get_rank()", "self.overall == 0"),
        ('int(os.environ.get("RANK", 0))', "self.overall == 0"),
        ('int(os.environ.get("RANK", -1))', "dist.get_rank() == 0"),
        ('os.environ["RANK"]', "dist.get_rank() == 0"),
        ('int(os.environ["WORLD_SIZE"])', "dist.get_rank() == 0"),
    ],
)
def test_the_rank_in_the_job_is_called_by_the_name_that_it_has(overall: str, test: str) -> None:
    check(
        "DDP402",
        RUNNING.format(overall=overall, test="self.here == 0"),
        RUNNING.format(overall=overall, test=test),
    )


# -- no_sync ------------------------------------------------------------------------------------

LATE = """
    import contextlib
    import os

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        images = torch.randn(32, 32).cuda()
        last = step % 4 == 3
        {body}
        if last:
            optimizer.step()
            optimizer.zero_grad()
    torch.distributed.destroy_process_group()
"""


def test_no_sync_is_entered_before_the_forward() -> None:
    before = """
        # one micro-batch
        scores = model(images)
        loss = scores.square().mean() / 4

        with contextlib.nullcontext() if last else model.no_sync():  # not yet
            loss.backward()"""
    after = """
        # one micro-batch
        with contextlib.nullcontext() if last else model.no_sync():  # not yet
            scores = model(images)
            loss = scores.square().mean() / 4

            loss.backward()"""
    check("DDP505", LATE.replace("{body}", before.strip()), LATE.replace("{body}", after.strip()))


@pytest.mark.parametrize(
    "body",
    [
        """loss = model(images).square().mean() / 4
        skip = not last
        with model.no_sync() if skip else contextlib.nullcontext():
            loss.backward()""",
        """loss = model(images).square().mean() / 4
        if last:
            loss.backward()
        else:
            with model.no_sync():
                loss.backward()""",
    ],
    ids=["asks for what is made between", "in an arm"],
)
def test_no_sync_that_cannot_begin_earlier(body: str) -> None:
    check("DDP505", LATE.replace("{body}", body), None)

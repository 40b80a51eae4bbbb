"""Ways to start the suite, and to stop it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from ddp_lint import verify
from runtime_checks import __main__ as suite_main
from runtime_checks import proofs, world
from runtime_checks.compare import first_digest
from runtime_checks.harness import Needs, needs
from runtime_checks.proofs import Unreadable, discover, read, select
from runtime_checks.worker import Task, unmet
from runtime_checks.world import Launch, agree, choose_backend
from tests.runtime.launch import ROOT, environment, own, processes_with, run, torchrun

PYTHON = [sys.executable, "-m", "runtime_checks"]


def test_one_process_says_what_it_cannot_show(tmp_path: Path) -> None:
    done = run(PYTHON, own("holds", "noisy"), tmp_path)
    assert done.code == 0, done.stderr
    assert done.proofs["holds"]["reason"] == "needs 2 ranks, this run has 1"
    assert done.proofs["noisy"]["status"] == "proven"
    assert "DDP501 holds: needs 2 ranks" in done.stdout


def test_only_things_that_cannot_run_is_no_success(tmp_path: Path) -> None:
    assert run(PYTHON, own("holds"), tmp_path).code == 2


def test_a_rule_that_has_no_proof_is_named_once(tmp_path: Path) -> None:
    done = run(torchrun(), ["--only=DDP999"], tmp_path)
    assert done.stderr.count("no proof for 'DDP999'") == 1
    assert done.record == {}


def test_a_gpu_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = run(PYTHON, ["--device=cuda"], tmp_path, environment(CUDA_VISIBLE_DEVICES=""))
    assert done.code == 2
    assert done.stderr.strip() == "--device cuda, but torch finds no GPU"


def test_verify_from_another_folder(tmp_path: Path) -> None:
    # What the user has lying around must not be imported in place of what we need.
    (tmp_path / "torch.py").write_text("raise RuntimeError('the wrong torch')")
    (tmp_path / "runtime_checks").mkdir()
    env = environment(PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-m", "ddp_lint", "verify", "--only=DDP201", "--out=here"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here" / "record.json").exists()
    assert (tmp_path / "here" / "record.html").exists()


def test_verify_tells_disproved_from_failed(tmp_path: Path) -> None:
    for counts, code in {(1, 0, 0): 0, (1, 1, 1): 1, (1, 0, 1): 2, (0, 0, 0): 2}.items():
        proven, disproved, failed = counts
        path = tmp_path / "record.json"
        path.write_text(
            f'{{"summary": {{"proven": {proven}, "disproved": {disproved}, "failed": {failed}}}}}'
        )
        assert verify._verdict(path) == code
    assert verify._verdict(tmp_path / "absent.json") == 2


@pytest.mark.parametrize("main", [verify.main, suite_main.main])
def test_without_torch_one_line_says_what_to_install(
    main: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (verify, suite_main):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert callable(main)
    assert main([]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert 'pip install "ddp-lint[verify]"' in said


def test_debug_detail_does_not_crash_the_proofs(tmp_path: Path) -> None:
    env = environment(TORCH_DISTRIBUTED_DEBUG="DETAIL")
    done = run(torchrun(), ["--only=DDP201"], tmp_path, env)
    assert done.code == 0, done.stdout


def test_two_nodes(tmp_path: Path) -> None:
    """Two agents on the loopback address compute what one node with two ranks does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    rendezvous = ["--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}"]
    agent = torchrun(1, *rendezvous, "--rdzv-id=test", "--local-addr=127.0.0.1")
    only = ["--only=reference_loop", "--only=DDP201"]
    with ThreadPoolExecutor() as pool:
        nodes = [pool.submit(run, agent, only, tmp_path / f"node{node}") for node in range(2)]
        ended = [node.result() for node in nodes]
    assert [one.code for one in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    (written,) = [one for one in ended if one.record]
    assert written.record["environment"]["launch"]["nodes"] == 2
    assert "several nodes" not in written.record["not_covered"]
    together = run(torchrun(), only, tmp_path / "one_node")
    assert first_digest(written.record, together.record) == ""


@contextlib.contextmanager
def hanging(command: Sequence[str], out: Path) -> Iterator[subprocess.Popen[str]]:
    """The suite at a proof that does not end, as soon as it runs."""
    process = subprocess.Popen(
        [*command, f"--out={out}"], cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True
    )
    try:
        log = out / "logs" / "hangs.rank1.txt"
        deadline = time.monotonic() + 120
        while not log.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert log.exists(), process.communicate()
        assert processes_with(str(out))
        yield process
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_process(tmp_path: Path, number: int) -> None:
    with hanging([*torchrun(), *own("hangs")], tmp_path / "out") as process:
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode != 0
    assert processes_with(str(tmp_path)) == []


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a process that its parent died"
)
def test_a_killed_torchrun_leaves_no_process(tmp_path: Path) -> None:
    with hanging([*torchrun(), *own("hangs")], tmp_path / "out") as process:
        process.kill()
        process.communicate(timeout=60)
        deadline = time.monotonic() + 30
        while processes_with(str(tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.1)
    assert processes_with(str(tmp_path)) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_in_verify_leaves_no_process(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = "'--exit-zero', *sys.argv[1:], " + ", ".join(map(repr, own("hangs")))
    code = (
        f"import sys; from ddp_lint.verify import _torchrun; sys.exit(_torchrun(2, [{arguments}]))"
    )
    with hanging([sys.executable, "-c", code], tmp_path / "out") as process:
        os.kill(process.pid, number)
        process.communicate(timeout=60)
    assert process.returncode in (130, 143)
    assert processes_with(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("asked", "gpus", "ranks", "name", "device", "shared"),
    [
        ("auto", 0, 2, "gloo", "cpu", False),
        ("auto", 1, 1, "nccl", "cuda", False),
        ("auto", 1, 2, "gloo", "cuda", True),
        ("auto", 8, 8, "nccl", "cuda", False),
        ("cpu", 8, 2, "gloo", "cpu", False),
        ("cuda", 1, 4, "gloo", "cuda", True),
    ],
)
def test_backend(asked: str, gpus: int, ranks: int, name: str, device: str, shared: bool) -> None:
    choice = choose_backend(asked, gpus, ranks)
    assert (choice.name, choice.device, choice.shared_gpu) == (name, device, shared)


def test_nodes_agree_on_what_all_of_them_have() -> None:
    own_gpu, shared = choose_backend("auto", 2, 2), choose_backend("auto", 1, 2)
    cpu = choose_backend("auto", 0, 2)
    assert agree([own_gpu, own_gpu]) == own_gpu
    assert agree([own_gpu, shared]) == shared
    assert agree([own_gpu, shared, cpu]) == cpu


def test_cuda_that_was_asked_for_is_not_replaced() -> None:
    with pytest.raises(ValueError, match="no GPU"):
        choose_backend("cuda", 0, 1)


def test_gpus_are_counted_without_touching_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count comes from another process, where there is a CUDA to be touched at all."""
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", os.getpid)
    counted = world._count_gpus()
    assert counted not in (0, os.getpid())
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    assert world._count_gpus() == 0


def test_place_as_torchrun_tells_it() -> None:
    told = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert Launch.from_environment({**told, "GROUP_WORLD_SIZE": "2"}) == Launch(
        3, 4, 1, 2, 2, "torchrun"
    )
    assert Launch.from_environment({}).world_size == 1


def test_rules_can_be_asked_for_by_code_or_name() -> None:
    found = discover()
    (by_code,) = select(found, ["ddp201"])
    (by_name,) = select(found, ["clip-before-unscale"])
    assert by_code == by_name
    with pytest.raises(Unreadable, match="no proof for 'DDP2'"):
        select(found, ["DDP2"])


def test_needs_are_read_without_an_import(tmp_path: Path) -> None:
    path = tmp_path / "proof.py"
    sides = "import none_such\ndef good(): ...\ndef evidence(bad, good): ...\n"
    path.write_text(sides + 'NEEDS = needs(ranks=3, torch="2.6")\n')
    assert read(path).needs == needs(ranks=3, torch="2.6")
    path.write_text(sides)
    assert read(path).needs == needs()
    for wrong in ("needs(ranks=how_many())", "needs(rank=2)"):
        path.write_text(f"{sides}NEEDS = {wrong}\n")
        with pytest.raises(Unreadable, match="NEEDS cannot be read"):
            discover(tmp_path)


@pytest.mark.parametrize(
    ("needed", "missing"),
    [
        (needs(), ""),
        (needs(ranks=2, modules=("json",), torch="2.4"), ""),
        (needs(ranks=3), "needs 3 ranks, this run has 2"),
        (needs(cuda=True), "needs a GPU"),
        (needs(gpu_per_rank=True), "needs a GPU"),
        (needs(torch="99.0"), "needs torch 99.0"),
        (needs(modules=("none_such",)), "needs none_such: pip install none_such"),
        (needs(shared_folder=True), "needs a folder that all nodes share"),
    ],
)
def test_what_is_missing_is_said(needed: Needs, missing: str) -> None:
    proof = proofs.Proof(Path("proof.py"), "", "", True, needed)
    launch = Launch(0, 2, 0, 2, 1, "torchrun")
    backend = choose_backend("cpu", 0, 2)
    task = Task(proof, 0, launch, backend, 1, 1.0, Path(), False, Path())
    assert unmet(needed, task) == missing


def test_a_shared_gpu_is_not_one_for_each_rank() -> None:
    launch = Launch(0, 2, 0, 2, 1, "torchrun")
    proof = proofs.Proof(Path("proof.py"), "", "", True)
    task = Task(proof, 0, launch, choose_backend("auto", 1, 2), 1, 1.0, Path(), True, Path())
    assert unmet(needs(cuda=True), task) == ""
    assert unmet(needs(gpu_per_rank=True), task) == "needs a GPU for each rank"

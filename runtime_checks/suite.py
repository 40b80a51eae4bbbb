"""A whole run: which proofs, on which backend, one after the other, and what is written of it."""

from __future__ import annotations

import ctypes
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from . import environment, page, progress, proofs, record, supervisor, table
from .options import Options
from .proofs import Proof
from .record import Record
from .worker import Sabotage, Task
from .world import Backend, Launch, Meeting, connect, rendezvous, settle


def run(options: Options) -> int:
    """Run the suite on this rank.  The exit code is rank 0's; the others' is 0."""
    began, clock = datetime.now(timezone.utc), time.monotonic()
    _end_with_torchrun()
    supervisor.stop_on_signals()
    launch = Launch.from_environment()
    try:
        chosen = _chosen(options)
        rendezvous(launch)
        meeting = connect("supervisors", launch, patience=options.timeout + 60)
        backend = settle(options.device, launch, meeting)
    except (proofs.Unreadable, ValueError) as error:
        if launch.rank == 0:
            print(error, file=sys.stderr)
        return 0 if options.exit_zero else 2
    supervisor.warm_up()
    scratch = Scratch(launch, meeting)
    try:
        entries = _run_all(chosen, options, launch, backend, meeting, scratch)
    finally:
        scratch.remove()
    code = 0
    if launch.rank == 0:
        written = {
            "schema": record.SCHEMA,
            "environment": environment.describe(launch, backend),
            "settings": _settings(options),
            "proofs": entries,
            "summary": record.summary(entries),
            "not_covered": environment.not_covered(launch, backend),
            "observed": {
                "started": began.isoformat(timespec="seconds"),
                "seconds": round(time.monotonic() - clock, 1),
            },
        }
        _tell(written, options.out)
        code = 0 if options.exit_zero else record.exit_code(entries)
    # Nobody may leave with an error while another rank still writes: torchrun would end it.
    meeting.gather("over")
    return code


def _chosen(options: Options) -> list[Proof]:
    if options.proof_files:
        found = [proofs.read(path.resolve()) for path in options.proof_files]
    else:
        found = proofs.discover()
    return proofs.select(found, options.only) if options.only else found


def _settings(options: Options) -> dict[str, object]:
    kept = asdict(options)
    for name in ("out", "exit_zero", "proof_files"):
        del kept[name]
    return {**kept, "only": list(options.only)}


def _run_all(
    chosen: list[Proof],
    options: Options,
    launch: Launch,
    backend: Backend,
    meeting: Meeting,
    scratch: Scratch,
) -> list[Record]:
    logs = options.out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    line = progress.Progress(len(chosen)) if launch.rank == 0 else None
    sabotage: Sabotage = options.sabotage  # type: ignore[assignment]
    entries = []
    for number, proof in enumerate(chosen):
        if line:
            line.start(proof)
        task = Task(
            proof,
            number,
            launch,
            backend,
            options.seed,
            options.timeout,
            scratch.folder / proof.stem,
            scratch.shared,
            logs / f"{proof.stem}.rank{launch.rank}.txt",
            sabotage,
            options.expect_mended,
        )
        entries.append(record.entry(proof, supervisor.run(task, meeting)))
        shutil.rmtree(task.scratch, ignore_errors=True)
        if line:
            line.done(entries[-1])
    if line:
        line.end()
    return entries


class Scratch:
    """A temporary folder for the ranks of a node, and for those of all nodes where it can be."""

    def __init__(self, launch: Launch, meeting: Meeting) -> None:
        self._mine = ""
        if launch.local_rank == 0:
            self._mine = tempfile.mkdtemp(prefix="ddp-lint-")
        folders = meeting.gather(self._mine)
        # What rank 0 made is common to all where all can see it.
        self.shared = all(meeting.gather(Path(folders[0]).is_dir()))
        leader = 0 if self.shared else launch.rank - launch.local_rank
        self.folder = Path(folders[leader])

    def remove(self) -> None:
        if self._mine:
            shutil.rmtree(self._mine, ignore_errors=True)


def _tell(written: Record, out: Path) -> None:
    """Write record and page, and say the table on stdout."""
    record.write(out / "record.json", record.dumps(written))
    record.write(out / "record.html", page.render(written))
    table.write(written["proofs"], sys.stdout)
    counts = ", ".join(
        f"{count} {status.replace('_', ' ')}"
        for status, count in written["summary"].items()
        if count or status == "proven"
    )
    print(f"\n{counts} in {written['observed']['seconds']:g} s")
    print(f"not covered by this run: {'; '.join(written['not_covered'])}")
    print(f"record: {out / 'record.json'}, page: {out / 'record.html'}")
    sys.stdout.flush()


def _end_with_torchrun() -> None:
    """Do not outlive torchrun, however it ends."""
    if sys.platform == "linux":
        parent_death_signal = 1
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)

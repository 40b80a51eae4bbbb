"""The engine: what is found does not depend on how the work is shared out."""

from __future__ import annotations

from pathlib import Path

from ddp_lint.engine import analyse
from ddp_lint.registry import all_rules
from ddp_lint.sources import Project, SourceFile

CASES = Path(__file__).parent / "cases"


def test_processes_share_programs_and_find_the_same() -> None:
    files = {
        path.name: SourceFile(path, path.name)
        for path in sorted(CASES.glob("*.py"))
        if path.stem in _STEMS
    }
    project = Project(CASES, files, frozenset(files))
    rules = list(all_rules().values())
    alone = analyse(project, rules)
    assert alone.findings
    assert analyse(project, rules, jobs=2) == alone


_STEMS = frozenset(
    {"host_sync_in_step", "branch_on_device_value", "unguarded_save", "clip_before_unscale",
     "sampler_without_set_epoch", "forward_around_ddp", "collective_in_rank_guard",
     "data_parallel", "synchronize_in_step", "zero_grad_missing", "stream_per_epoch"}
)  # fmt: skip

"""A run made by hand, with everything that a format has to cope with."""

from __future__ import annotations

from pathlib import Path

from ddp_lint.finding import Edit, Finding, Fix, Place, Problem, Related
from ddp_lint.report import Run
from ddp_lint.rule import Rule
from ddp_lint.sources import Project, SourceFile
from tests.test_notebook import notebook

PAGE = """\
Gradients are clipped while they are still scaled.

The limit is compared with numbers that are 65536 times too large, see
https://example.org/amp.

Bad:

```python
clip_grad_norm_(model.parameters(), 1.0)  # DDP201: <b>here</b>
```

Cannot see:

* wrappers that `unscale_` **inside**
* `optimizer_step` of another library
"""

TRAIN = """\
import torch

for step, batch in enumerate(loader):
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # </script><b>é
    scaler.step(optimizer)
"""


def _no_findings(_: object) -> list[object]:
    return []


def rule(code: str = "DDP201", name: str = "clip-before-unscale", level: str = "error") -> Rule:
    return Rule(code, name, level, True, "safe", PAGE, _no_findings)  # type: ignore[arg-type]


def run(folder: Path) -> Run:
    """Three findings in two files, one of them a notebook, and a file that is no Python."""
    (folder / "a b").mkdir()
    train = _source(folder, "a b/train.py", TRAIN)
    book = _source(folder, "nb.ipynb", notebook("# é", "#! prose", "%time f()\nx = 'é', g(x)"))
    clip = Place(train.name, 5, 4, 5, 59)
    loop = Place(train.name, 3, 0, 3, 37)
    g = Place(book.name, 2, 9, 2, 13, 3)
    fix = Fix("unscale first", (Edit(Place(train.name, 5, 0, 5, 0), "    unscale()\n"),), True)
    findings = (
        Finding(
            "DDP201",
            "error",
            clip,
            "100% of `</script>` is\nclipped: a,b::c",
            (Related(loop, "the loop, `for`"), Related(g, "called here")),
            fix,
        ),
        Finding("DDP301", "note", Place(train.name, 6, 4, 7, 0), "worth a look \x08 <i>"),
        Finding("DDP201", "warning", g, "in a cell", (), Fix("h", (Edit(g, "h(x)"),), False)),
    )
    rules = {"DDP201": rule(), "DDP301": rule("DDP301", "other-rule", "note")}
    problems = (Problem("old.py", 3, "is Python 2: print 'x'"), Problem("bin.py", 0, "NUL bytes"))
    sources = {source.name: source for source in (train, book)}
    return Run(findings, problems, 4, rules, folder, sources)


def project(made: Run) -> Project:
    return Project(made.cwd, made.sources, frozenset(made.sources))


def _source(folder: Path, name: str, text: str) -> SourceFile:
    (folder / name).write_text(text, encoding="utf-8")
    return SourceFile(folder / name, name)

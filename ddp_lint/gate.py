"""Which files are parsed: decided on their bytes, before anything is parsed.

Most files of a repository cannot matter to a training loop, and parsing is what takes the time.
A program may start in a file that holds one of the words below, or that is started by people and
imports such a file.  Other files are parsed when an import that somebody follows leads there.
Where not everything is linted (an editor, a commit hook), only those files are parsed that the
linted ones are part of a program with.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from ddp_lint.finding import Problem
from ddp_lint.model.codebase import CodeBase
from ddp_lint.sources import Unreadable

#: A program is about training if a file it reaches holds one of these; of others no rule speaks.
_TRAINING = (
    b"DataLoader", b"DataParallel", b"DistributedSampler", b"DistributedType", b"fully_shard",
    b"init_process_group", b"torch.distributed", b"training_step", b"GradScaler", b"deepspeed",
    b"Accelerator", b"Fabric(", b"cuda.amp", b"torch.save", b"is_main_process", b"set_epoch",
    b".barrier(",
)  # fmt: skip
#: The same for words that mean something only in a certain shape.
_SHAPED = tuple(
    (word, re.compile(shape))
    for word, shape in (
        (b"backward", rb"backward\s*\("),
        (b"Dataset", rb"Dataset\b"),
        (b"Trainer", rb"Trainer\b"),
        (b"Callback", rb"Callback\b"),
        (b"Hook", rb"Hook\b"),
    )
)
#: A file can hold a finding only if it holds one of these or of those above.
_MORE = (
    b"autocast", b"torch.load", b".save_checkpoint", b"save_state", b"zero_grad", b"no_sync",
    b"cuda.Stream", b"LightningModule",
)  # fmt: skip
_ENTRY = re.compile(rb"^if __name__|\.spawn\(", re.M)
#: White space, also over the end of a line that goes on.
_GAP = rb"(?:[ \t]|\\\r?\n)"
_IMPORT = re.compile(
    rb"^[ \t]*(?:from%(gap)b+(?P<source>[.\w]+)%(gap)b+import%(gap)b*"
    rb"(?P<names>\([^)]*\)|(?:\\\r?\n|[^\n#])+)"
    rb"|import%(gap)b+(?P<plain>(?:%(gap)b|[\w.,])+))" % {b"gap": _GAP},
    re.M,
)
_NAME = re.compile(rb"[\w.]+")


def is_about_training(raw: bytes) -> bool:
    # Looking for one word after the other is much faster than for all of them at once.
    return any(word in raw for word in _TRAINING) or any(
        word in raw and shape.search(raw) for word, shape in _SHAPED
    )


class Gate:
    """The files of a project that have to be parsed for what is to be linted."""

    def __init__(self, codebase: CodeBase) -> None:
        self.codebase = codebase
        self.project = codebase.project

    def wanted(self) -> list[str]:
        """Keys of the files in which programs may start, in the order of the project."""
        files = self.project.files
        near = set(files) if len(self.project.targets) == len(files) else self._near()
        return [
            key for key in files if key in near and (key in self._strong or self._leads_there(key))
        ]

    def _near(self) -> set[str]:
        """The targets and every file that imports one, directly or through others."""
        importers: dict[str, set[str]] = defaultdict(set)
        for key in self.project.files:
            for target in self._imports(key):
                importers[target].add(key)
        near: set[str] = set()
        todo = list(self.project.targets)
        while todo:
            key = todo.pop()
            if key not in near:
                near.add(key)
                todo.extend(importers.get(key, ()))
        return near

    def _raw(self, key: str) -> bytes:
        file = self.project.files[key]
        try:
            return file.raw
        except Unreadable as error:
            self.codebase.problems[key] = Problem(file.name, error.line, str(error))
            return b""

    def _code(self, key: str) -> bytes:
        """The bytes of the Python in a file: in a notebook each line of a cell is a string."""
        file, raw = self.project.files[key], self._raw(key)
        if not raw or not file.is_notebook:
            return raw
        try:
            return file.text.encode("utf-8", "surrogatepass")
        except Unreadable:
            return b""  # said where it is parsed

    @cached_property
    def _strong(self) -> frozenset[str]:
        """The files that can hold a finding for their own sake."""
        found = set()
        for key in self.project.files:
            raw = self._raw(key)
            if is_about_training(raw) or any(word in raw for word in _MORE):
                found.add(key)
        return frozenset(found)

    def _leads_there(self, key: str) -> bool:
        """Whether a file without any of the words starts a program that holds them."""
        if not self._is_started(key):
            return False
        return any(target in self._strong for target in self._imports(key))

    def _is_started(self, key: str) -> bool:
        return self.project.files[key].is_notebook or _ENTRY.search(self._raw(key)) is not None

    def _imports(self, key: str) -> Iterator[str]:
        """Keys of the project's files that a file imports, as far as its text tells."""
        for found in _IMPORT.finditer(self._code(key)):
            plain = found["plain"]
            if plain is not None:
                names = [
                    part.split()[0]
                    for part in plain.replace(b"\\", b" ").split(b",")
                    if part.split()
                ]
                level = 0
            else:
                source = found["source"]
                bare = source.lstrip(b".")
                level = len(source) - len(bare)
                names = [bare] if bare or level else []
                for name in _NAME.findall(found["names"]):
                    names.append(bare + b"." + name if bare else name)
            for name in names:
                target = self.codebase.find(name.decode("ascii", "replace"), key, level)
                if target is not None and target != key:
                    yield target

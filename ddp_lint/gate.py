"""Which files are parsed: decided on their bytes, before anything is parsed.

Most files of a repository cannot matter to a training loop, and parsing is what takes the time.
A file is parsed for its own sake if it holds one of the words below; others only when an import
that somebody follows leads there.  Where not everything is linted (an editor, a commit hook),
only those files are parsed that the linted ones are part of a program with.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from ddp_lint.finding import Problem
from ddp_lint.model.codebase import CodeBase
from ddp_lint.sources import Unreadable

#: A file can hold a finding only if it holds one of these.
_WORDS = re.compile(
    rb"backward\s*\(|DataLoader|DistributedSampler|DistributedDataParallel|FullyShardedDataParallel"
    rb"|fully_shard|DataParallel|init_process_group|torch\.distributed|GradScaler|autocast"
    rb"|torch\.save|torch\.load|\.save_checkpoint|save_state|Dataset\b|training_step|zero_grad"
    rb"|is_main_process|set_epoch|deepspeed|Accelerator|Fabric\(|no_sync|cuda\.Stream"
    rb"|Trainer\b|Callback\b|LightningModule|Hook\b"
)
#: A program is about training if a file it reaches holds one of these; of others no rule speaks.
_TRAINING = re.compile(
    rb"backward\s*\(|DataLoader|Dataset\b|init_process_group|Distributed|DataParallel|fully_shard"
    rb"|torch\.distributed|training_step|GradScaler|deepspeed|Accelerator|Fabric\(|cuda\.amp"
    rb"|torch\.save|is_main_process|set_epoch|\.barrier\(|Trainer|Callback\b|Hook\b"
)
_ENTRY = re.compile(rb"^if __name__|\.spawn\(", re.M)
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?P<source>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#]+)"
    rb"|import[ \t]+(?P<plain>[\w., \t]+))",
    re.M,
)
_NAME = re.compile(rb"[\w.]+")


def is_about_training(raw: bytes) -> bool:
    return _TRAINING.search(raw) is not None


class Gate:
    """The files of a project that have to be parsed for what is to be linted."""

    def __init__(self, codebase: CodeBase, *, open_: bool = False) -> None:
        self.codebase = codebase
        self.project = codebase.project
        self.open = open_

    def wanted(self) -> list[str]:
        """Keys of the files to parse, in the order of the project."""
        strong = [key for key in self.project.files if self._is_strong(key)]
        if len(self.project.targets) == len(self.project.files):
            known = set(strong)
            entries = [
                k for k in self.project.files if k not in known and self._leads_to(k, known)
            ]
            known.update(entries)
            return [key for key in self.project.files if key in known]
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
        known = {k for k in strong if k in near}
        known.update(k for k in near if self._leads_to(k, known))
        return [key for key in self.project.files if key in known]

    def _raw(self, key: str) -> bytes:
        file = self.project.files[key]
        try:
            return file.raw
        except Unreadable as error:
            self.codebase.problems[key] = Problem(file.name, error.line, str(error))
            return b""

    def _is_strong(self, key: str) -> bool:
        return self.open or _WORDS.search(self._raw(key)) is not None

    def _leads_to(self, key: str, strong: set[str]) -> bool:
        """Whether a file without any of the words starts a program that holds them."""
        if key in strong or _ENTRY.search(self._raw(key)) is None:
            return False
        return any(target in strong for target in self._imports(key))

    def _imports(self, key: str) -> Iterator[str]:
        """Keys of the project's files that a file imports, as far as its text tells."""
        for found in _IMPORT.finditer(self._raw(key)):
            plain = found["plain"]
            if plain is not None:
                names = [part.split()[0] for part in plain.split(b",") if part.split()]
                level = 0
            else:
                source = found["source"]
                bare = source.lstrip(b".")
                level = len(source) - len(bare)
                names = [bare] if bare else []
                for name in _NAME.findall(found["names"]):
                    names.append(bare + b"." + name if bare else name)
            for name in names:
                target = self.codebase.find(name.decode("ascii", "replace"), key, level)
                if target is not None and target != key:
                    yield target

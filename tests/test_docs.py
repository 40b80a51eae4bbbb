"""The documents say what the program does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ddp_lint.finding import Edit, Finding, Fix, Place, Problem, Related
from ddp_lint.report import Run, renderer
from ddp_lint.settings import KEYS, read_settings
from tests.fake_engine import RULES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_pages_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "docs"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_configuration_in_the_readme_is_valid_and_whole() -> None:
    from ddp_lint.registry import all_rules

    (text,) = re.findall(r"^```toml\n(.*?)^```", README, re.M | re.S)
    settings = read_settings(text, Path("pyproject.toml"), all_rules().values())
    assert settings is not None
    for key in KEYS:
        assert re.search(rf"^\[?(tool\.ddp-lint\.)?{key}\b", text, re.M), key


@pytest.mark.parametrize("path", ["README.md", "CONTRIBUTING.md", "docs/json.md"])
def test_links_lead_somewhere(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (ROOT / path).parent.joinpath(target).exists(), target


def test_json_page_names_every_field() -> None:
    place = Place("a.ipynb", 1, 0, 1, 5, cell=2)
    fix = Fix("mend it", (Edit(place, "x"),), safe=True)
    finding = Finding("DDP201", "error", place, "it breaks", (Related(place, "here"),), fix)
    run = Run((finding,), (Problem("b.py", 3, "is broken"),), 2, RULES, Path.cwd())

    def fields(value: object) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(fields, value))
        if isinstance(value, dict):
            return set(value).union(*map(fields, value.values()))
        return set()

    page = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    written = fields(json.loads(renderer("json")(run))) - {"DDP201", "note", "warning", "error"}
    assert written == {name for name in written if f"`{name}`" in page}


def test_the_example_of_the_json_page_has_the_fields_it_describes() -> None:
    page = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```json\n(.*?)^```", page, re.M | re.S)
    place = Place("meters.py", 12, 20, 12, 32)
    call = Place("engine.py", 58, 8, 58, 27)
    finding = Finding(
        "DDP101",
        "warning",
        place,
        "`value.item()` waits for the GPU on every step",
        (Related(call, "`update()` is called for every batch"),),
    )
    run = Run((finding,), (), 9, RULES, Path.cwd())
    assert json.loads(renderer("json")(run)) == json.loads(example)


@pytest.mark.parametrize("path", ["README.md", "CONTRIBUTING.md", ".ci/run", "pyproject.toml"])
def test_no_package_registry_is_named(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8").lower()
    assert not re.search(r"pypi|pythonhosted|conda\.anaconda|index-url", text)

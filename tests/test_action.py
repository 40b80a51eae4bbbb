"""The GitHub action: its steps run as GitHub runs them, and the examples of docs/ci.md fit it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.test_flake8 import DATA, TOLD, TRAIN
from tests.test_packaging import _LEFT_OVER as LEFT_OVER

yaml: Any = pytest.importorskip("yaml")  # pre-commit brings it

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
EXAMPLES = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)]
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass
class Job:
    """A job that uses the action once: what GitHub would have it see, and what came out."""

    action: Path
    workspace: Path
    temp: Path
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    log: str = ""

    def run(self, step: dict[str, Any]) -> None:
        """Run the script of a step with the environment and the shell that GitHub gives it."""
        script, output = self.temp / "step.sh", self.temp / "output.txt"
        script.write_text(step["run"], encoding="utf-8")
        output.write_text("", encoding="utf-8")
        given = {name: self._value(text) for name, text in step.get("env", {}).items()}
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env={
                **{key: os.environ[key] for key in os.environ if not key.startswith("INPUT_")},
                "CI": "true",
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTION_PATH": str(self.action),
                "GITHUB_WORKSPACE": str(self.workspace),
                "GITHUB_OUTPUT": str(output),
                "RUNNER_TEMP": str(self.temp),
                **given,
            },
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.codes[step["id"]] = ran.returncode
        self.log += ran.stdout + ran.stderr
        for line in output.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            self.outputs[f"steps.{step['id']}.outputs.{name}"] = value

    def lint(self, **inputs: str) -> None:
        """The steps after the installation, with other inputs."""
        self.inputs |= {name.replace("_", "-"): value for name, value in inputs.items()}
        self.log = ""
        for step in STEPS:
            if step.get("id") in ("lint", "sarif"):
                self.run(step)

    def _value(self, text: str) -> str:
        known = {f"inputs.{name}": value for name, value in self.inputs.items()} | self.outputs
        return EXPRESSION.sub(lambda match: known[match[1]], text)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job in which the action has installed itself from its own folder."""
    folder = tmp_path_factory.mktemp("runner")
    shutil.copytree(ROOT, folder / "action", ignore=LEFT_OVER)
    (folder / "work").mkdir()
    (folder / "temp dir").mkdir()
    defaults = {name: one["default"] for name, one in ACTION["inputs"].items()}
    job = Job(folder / "action", folder / "work", folder / "temp dir", defaults)
    job.outputs["steps.python.outputs.python-path"] = sys.executable
    (install,) = [step for step in STEPS if step.get("id") == "install"]
    job.run(install)
    assert job.codes == {"install": 0}, job.log
    return job


@pytest.fixture
def job(installed: Job) -> Job:
    """That job in a fresh checkout with one defect."""
    shutil.rmtree(installed.workspace)
    (installed.workspace / "a b").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=installed.workspace, check=True)
    for name, text in {"train.py": TRAIN, "data.py": DATA, "a b/none.py": "x = 1\n"}.items():
        (installed.workspace / name).write_text(text, encoding="utf-8")
    defaults = {name: one["default"] for name, one in ACTION["inputs"].items()}
    return Job(
        installed.action,
        installed.workspace,
        installed.temp,
        defaults,
        dict(installed.outputs),
    )


def test_findings_are_annotations_and_sarif_and_fail_the_lint_step(job: Job) -> None:
    job.lint()
    assert job.codes == {"lint": 1, "sarif": 0}, job.log
    assert re.search(r"^::error file=train.py,line=9,.*title=DDP301 ", job.log, re.M)
    file = Path(job.outputs["steps.sarif.outputs.file"])
    (result,) = json.loads(file.read_text(encoding="utf-8"))["runs"][0]["results"]
    assert result["ruleId"] == "DDP301"


def test_a_clean_checkout_passes(job: Job) -> None:
    (job.workspace / "train.py").write_text(TOLD, encoding="utf-8")
    job.lint()
    assert job.codes == {"lint": 0, "sarif": 0}, job.log
    assert "::error" not in job.log


def test_inputs_choose_files_rules_and_what_fails(job: Job) -> None:
    job.lint(fail_on="never")
    assert job.codes["lint"] == 0
    assert "DDP301" in job.log
    job.lint(fail_on="", args="--ignore DDP301")
    assert job.codes["lint"] == 0
    job.lint(args="", paths="'a b'\ndata.py\n")
    assert job.codes["lint"] == 0
    assert "DDP301" not in job.log


def test_a_mistake_in_an_input_fails_both_steps_and_says_why(job: Job) -> None:
    job.lint(args="--ignore DDP3o1")
    assert job.codes == {"lint": 2, "sarif": 1}
    assert "DDP3o1" in job.log
    job.lint(args="'open")
    assert job.codes == {"lint": 1, "sarif": 1}
    assert "No closing quotation" in job.log


def test_nothing_in_an_input_is_run(job: Job) -> None:
    bait = "$(touch caught) `touch caught`; touch caught"
    job.lint(paths=bait, args=f"--exclude '{bait}'", fail_on=bait)
    assert job.codes["lint"] == 2
    assert not (job.workspace / "caught").exists()


def test_scripts_take_inputs_only_as_variables() -> None:
    for step in STEPS:
        assert ("run" in step) != ("uses" in step)
        if "run" in step:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
        else:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"])


def test_every_expression_names_something_that_is_there() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"\binputs\.([\w-]+)", text))
    assert named == ACTION["inputs"].keys()
    ids = {step["id"] for step in STEPS if "id" in step}
    assert set(re.findall(r"\bsteps\.(\w+)\.", text)) <= ids


def test_sarif_is_written_and_uploaded_only_where_it_is_asked_for() -> None:
    """Also after the lint step has failed, which a step without a condition would not see."""
    (write,) = [step for step in STEPS if step.get("id") == "sarif"]
    upload = STEPS[-1]
    assert "inputs.sarif == 'true'" in write["if"]
    assert "steps.sarif.outcome == 'success'" in upload["if"]
    assert all("!cancelled()" in step["if"] for step in (write, upload))
    assert ACTION["inputs"]["sarif"]["default"] == "false"


def test_examples_for_github_fit_the_action() -> None:
    workflows = [one for one in EXAMPLES if "jobs" in one]
    used = [
        step
        for one in workflows
        for step in one["jobs"]["ddp-lint"]["steps"]
        if "/ddp-lint@" in step["uses"]
    ]
    assert len(used) == 2
    for workflow, step in zip(workflows, used, strict=True):
        assert step["with"].keys() <= ACTION["inputs"].keys()
        uploads = bool(step["with"].get("sarif"))
        assert (workflow["permissions"].get("security-events") == "write") == uploads
    table = set(re.findall(r"^\| `([\w-]+)` \|", PAGE, re.M))
    assert table == ACTION["inputs"].keys()


def test_the_example_for_gitlab_writes_the_artifact_that_it_names(job: Job) -> None:
    (example,) = [one["ddp-lint"] for one in EXAMPLES if "ddp-lint" in one]
    install, command = example["script"]
    assert install == "pip install ddp-lint"
    path = f"{job.outputs['steps.install.outputs.bin']}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=job.workspace,
        env={**os.environ, "PATH": path, "CI_PROJECT_DIR": str(job.workspace)},
    )
    assert ran.returncode == 1
    assert example["artifacts"]["when"] == "always"
    report = job.workspace / example["artifacts"]["reports"]["codequality"]
    (issue,) = json.loads(report.read_text(encoding="utf-8"))
    assert issue["location"]["path"] == "train.py"


def test_the_example_for_pre_commit_names_our_hook() -> None:
    (example,) = [one for one in EXAMPLES if "repos" in one]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (hook,) = example["repos"][0]["hooks"]
    assert hook["id"] in [one["id"] for one in hooks]

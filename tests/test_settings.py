"""[tool.ddp-lint]: which file holds for what, what it says, and how mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddp_lint.api import Linter, Options, check
from ddp_lint.settings import Configurations, Settings, SettingsError, read_settings, shown
from tests.fake_engine import RULES

pytestmark = pytest.mark.usefixtures("engine")


def read(text: str) -> Settings:
    settings = read_settings(text, Path("pyproject.toml"), RULES.values())
    assert settings is not None
    return settings


def wanted(settings: Settings, path: str | None = None) -> list[str]:
    return [rule.code for rule in RULES.values() if settings.wants(rule, path)]


def test_everything_that_can_be_said() -> None:
    settings = read(
        """
        [project]
        name = "x"

        [tool.ddp-lint]
        select = ["DDP1", "DDP201", "starved-loader"]
        ignore = ["DDP105"]
        extend-select = ["DDP301"]
        exclude = ["third_party/", "*_pb2.py"]
        fail-on = "error"
        guards = ["on_main"]
        samplers = ["OurSampler"]
        loggers = ["log_metrics"]
        scaler-wrappers = ["NativeScaler"]

        [tool.ddp-lint.per-file-ignores]
        "tests/*" = ["DDP201"]

        [tool.ddp-lint.levels]
        DDP101 = "error"
        DDP2 = "note"
        """
    )
    assert wanted(settings) == ["DDP101", "DDP201", "DDP301", "DDP309"]
    assert settings.fail_on == "error"
    assert settings.guards == ("on_main",)
    assert settings.samplers == ("OurSampler",)
    assert settings.loggers == ("log_metrics",)
    assert settings.scaler_wrappers == ("NativeScaler",)
    here = Path.cwd()
    assert settings.excludes(str(here / "third_party/a/b.py"))
    assert settings.excludes(str(here / "x/y_pb2.py"))
    assert not settings.excludes(str(here / "x/y.py"))
    assert "DDP201" not in wanted(settings, str(here / "tests/test_x.py"))
    assert "DDP201" in wanted(settings, str(here / "x/test_x.py"))
    assert settings.level_of(RULES["DDP101"], "warning") == "error"
    assert settings.level_of(RULES["DDP201"], "error") == "note"
    assert settings.level_of(RULES["DDP301"], "error") == "error"


@pytest.mark.parametrize(
    ("said", "codes"),
    [
        ("", ["DDP101", "DDP105", "DDP201", "DDP301"]),
        ("extend-select = ['DDP309']", ["DDP101", "DDP105", "DDP201", "DDP301", "DDP309"]),
        ("extend-select = ['DDP3']", ["DDP101", "DDP105", "DDP201", "DDP301"]),
        ("select = ['DDP1']", ["DDP101", "DDP105"]),
        ("select = ['DDP']", ["DDP101", "DDP105", "DDP201", "DDP301"]),
        ("select = []", []),
        ("ignore = ['DDP1']", ["DDP201", "DDP301"]),
        ("ignore = ['clip-before-unscale']", ["DDP101", "DDP105", "DDP301"]),
        ("select = ['DDP101']\nignore = ['DDP1']", ["DDP101"]),
        ("select = ['DDP1']\nignore = ['DDP101']", ["DDP105"]),
        ("select = ['DDP101']\nignore = ['DDP101']", []),
    ],
)
def test_which_rules(said: str, codes: list[str]) -> None:
    assert wanted(read(f"[tool.ddp-lint]\n{said}\n")) == codes


@pytest.mark.parametrize(
    ("said", "line", "words"),
    [
        ("slect = ['DDP1']", 3, ["there is no setting 'slect'", "did you mean 'select'?"]),
        ("select = 'DDP1'", 3, ["select must be a list of strings, not a string"]),
        ("select = ['DDP1', 3]", 3, ["select must be a list of strings"]),
        ("select = [\n  'DDP1',\n  'DDP999',\n]", 5, ["select: no rule is called 'DDP999'"]),
        ("ignore = ['clip-before-unscal']", 3, ["did you mean 'clip-before-unscale'?"]),
        ("fail-on = 'warn'", 3, ["one of note, warning, error, never", "did you mean 'warning'?"]),
        ("fail-on = 3", 3, ["fail-on must be one of"]),
        ("levels = ['DDP1']", 3, ["levels must be a table"]),
        ("\n[tool.ddp-lint.levels]\nDDP101 = 'eror'", 5, ["DDP101 must be", "'error'?"]),
        ("\n[tool.ddp-lint.levels]\nDDP888 = 'error'", 5, ["levels: no rule is called 'DDP888'"]),
        ("per-file-ignores = {'a.py' = 'DDP1'}", 3, ["a.py must be a list of strings"]),
        ("[tool.ddp-lint.per-file-ignores]\n'a' = []\n'b' = ['DDP7']", 5, ["'DDP7'"]),
        ("guards = [1]", 3, ["guards must be a list of strings"]),
        ("exclude = ['a'", 3, ["is not TOML"]),
        ("exclude = a", 3, ["is not TOML"]),
    ],
)
def test_mistakes_name_the_line(said: str, line: int, words: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        read(f"# select = 3\n[tool.ddp-lint]\n{said}\n")
    assert str(caught.value).startswith(f"pyproject.toml:{line}:")
    assert all(word in str(caught.value) for word in words)


def test_the_table_itself_must_be_one() -> None:
    with pytest.raises(SettingsError, match=r"pyproject.toml:2: tool.ddp-lint must be a table"):
        read("[tool]\nddp-lint = 3\n")


def test_a_file_without_our_table_says_nothing(tmp_path: Path) -> None:
    assert read_settings("[tool.ruff]\n", tmp_path / "pyproject.toml", RULES.values()) is None


def test_the_nearest_file_wins(folder: Path) -> None:
    for name, code in ((".", "DDP101"), ("inner", "DDP201"), ("inner/other", None)):
        (folder / name).mkdir(exist_ok=True)
        table = f"[tool.ddp-lint]\nselect = ['{code}']\n" if code else "[tool.black]\n"
        (folder / name / "pyproject.toml").write_text(table)
    (folder / "inner/deep").mkdir()
    text = "find_DDP101\nfind_DDP201\n"
    for name in ("a.py", "inner/b.py", "inner/deep/c.py", "inner/other/d.py"):
        (folder / name).write_text(text)
    codes = {one.place.path: one.code for one in check(["."]).run.findings}
    assert codes == {
        "a.py": "DDP101",
        "inner/b.py": "DDP201",
        "inner/deep/c.py": "DDP201",
        "inner/other/d.py": "DDP201",
    }
    only = check(["."], Options(config=folder / "pyproject.toml"))
    assert {one.code for one in only.run.findings} == {"DDP101"}
    isolated = check(["."], Options(isolated=True))
    assert len(isolated.run.findings) == 8


def test_nothing_above_the_project_is_read(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.ddp-lint]\nselect = ['DDP201']\n")
    inner = folder / "third_party"
    (inner / ".git").mkdir(parents=True)
    linter = Linter(Options())
    assert linter.settings_of(inner / "a.py", inner).select is None
    assert linter.settings_of(folder / "a.py", folder).select == ("DDP201",)


def test_the_command_line_comes_first() -> None:
    settings = read("[tool.ddp-lint]\nselect = ['DDP2']\nignore = ['DDP101']\nfail-on = 'note'")
    assert wanted(Options().on_top_of(settings)) == ["DDP201"]
    assert wanted(Options(select=("DDP1",)).on_top_of(settings)) == ["DDP101", "DDP105"]
    assert wanted(Options(extend_select=("DDP301",)).on_top_of(settings)) == ["DDP201", "DDP301"]
    assert wanted(Options(ignore=("DDP201",)).on_top_of(settings)) == []
    assert Options().on_top_of(settings).fail_on == "note"
    assert Options(fail_on="never").on_top_of(settings).fail_on == "never"


def test_settings_are_shown_as_they_are_written() -> None:
    lists = "select = ['DDP1']\nexclude = ['a\"b']\n"
    settings = read(f"[tool.ddp-lint]\n{lists}\n[tool.ddp-lint.levels]\nDDP1 = 'note'")
    assert read(shown(settings)) == settings
    assert shown(settings).startswith("# from pyproject.toml\n")
    assert read(shown(Settings())) == Settings()


def test_config_must_have_our_table(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text("[tool.black]\n")
    with pytest.raises(SettingsError, match="has no"):
        Configurations(RULES.values(), only=path)

"""The HTML page: whole, safe whatever the linted files hold, and usable from the keyboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ddp_lint.finding import Finding, Place, Problem
from ddp_lint.report import Run, html
from ddp_lint.report._html_page import SCRIPT
from ddp_lint.report._markdown import code_only, to_html
from ddp_lint.sources import SourceFile
from tests.sample_run import run

HOSTILE = "\"'><img src=x onerror=alert(1)></script></pre><script>alert(2)</script>&amp;"
#: Elements that have no end tag.
VOID = frozenset({"meta", "input", "br", "hr", "img", "link"})
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)


class Page(HTMLParser):
    """A page as a browser builds it; an end tag without its start tag is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def each(self, name: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.tags if tag == name]

    def of_class(self, name: str) -> list[dict[str, str]]:
        return [one for _, one in self.tags if name in one.get("class", "").split()]


@pytest.fixture
def made(tmp_path: Path) -> Run:
    return run(tmp_path)


@pytest.fixture
def hostile(tmp_path: Path) -> Run:
    """Every text that comes from the linted project tries to break out."""
    name = f"{HOSTILE}.py".replace("/", "_")
    source = SourceFile(tmp_path / "x.py", name, f"x = 1  # {HOSTILE}\n")
    place = Place(name, 1, 0, 1, 5)
    message = f"`{HOSTILE}` and {HOSTILE} [here](https://example.org/) https://example.org/"
    finding = Finding("DDP201", "error", place, message)
    made = run(tmp_path)
    return replace(
        made,
        findings=(finding,),
        problems=(Problem(name, 1, HOSTILE),),
        sources={name: source},
        rules={"DDP201": replace(made.rules["DDP201"], page=f"{HOSTILE}\n\n* {HOSTILE}\n")},
    )


def test_every_finding_is_there_with_its_source_and_the_page_of_its_rule(made: Run) -> None:
    page = Page(html.render(made))
    shown = page.of_class("finding")
    assert [one["data-rule"] for one in shown] == [one.code for one in made.findings]
    assert [one["data-level"] for one in shown] == ["error", "note", "warning"]
    assert [one["data-file"] for one in shown] == [one.place.path for one in made.findings]
    assert len({one["id"] for one in shown}) == 3
    assert "nb.ipynb:cell 3:2" in page.text
    assert "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)" in page.text
    assert "1the loop, for" not in page.text
    for said in ("the loop, ", "called here", "unscale first", "is Python 2: print 'x'"):
        assert said in page.text
    # Three findings, two related places: each of them has its line marked.
    assert len(page.of_class("hit")) == 5
    pages = [one["id"] for one in page.each("article") if one["id"].startswith("rule-")]
    assert pages == ["rule-DDP201", "rule-DDP301"]
    assert "clip_grad_norm_(model.parameters(), 1.0)  # DDP201: <b>here</b>" in page.text


def test_the_marked_text_is_that_of_the_place(made: Run) -> None:
    marks = re.findall(r"<mark>(.*?)</mark>", html.render(made))
    assert marks[0] == "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    assert marks[1] == "for step, batch in enumerate(loader):"
    assert marks[-1] == "g(x)"


def test_a_run_without_findings_says_so(made: Run) -> None:
    page = Page(html.render(Run((), (), 3, made.rules, made.cwd)))
    assert "No findings in 3 files." in page.text
    assert page.of_class("finding") == []


def test_nothing_of_the_project_becomes_markup(hostile: Run) -> None:
    text = html.render(hostile)
    page = Page(text)
    assert text.count("<script") == 1
    assert page.each("img") == []
    assert page.each("a") == []
    assert not any(name.startswith("on") for _, one in page.tags for name in one)
    assert page.texts.count(SCRIPT) == 1
    # Name, message, source, problem and rule still say what they said.
    assert page.text.count(HOSTILE) >= 6


def test_nothing_is_loaded_and_no_script_but_its_own_may_run(made: Run) -> None:
    page = Page(html.render(made))
    assert not {"link", "img", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.tags}
    assert not any("src" in one or "style" in one for _, one in page.tags)
    (style,) = [text for text in page.texts if "tab-size" in text]
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = [one for one in page.each("meta") if "http-equiv" in one]
    assert policy["content"].startswith("default-src 'none'; ")
    assert {one["href"] for one in page.each("a")} == {"https://example.org/amp"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A `b`", "<h2>A <code>b</code></h2>"),
        ("one\ntwo", "<p>one two</p>"),
        ("* a\n  b\n* c", "<ul><li>a b</li><li>c</li></ul>"),
        ("2. a\n3. b", '<ol start="2"><li>a</li><li>b</li></ol>'),
        ("```python\n# <x>\n```", '<pre class="code"><code># &lt;x&gt;</code></pre>'),
        (
            "| a | b |\n| --- | --- |\n| `c` | **d** |",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead>"
            "<tbody><tr><td><code>c</code></td><td><strong>d</strong></td></tr></tbody></table>",
        ),
        ("`*a*` 2*3*4", "<p><code>*a*</code> 2*3*4</p>"),
        ("[a](b.md) [c](javascript:x)", "<p>a c</p>"),
        ("[a](https://b.org/?c&d)", '<p><a href="https://b.org/?c&amp;d">a</a></p>'),
    ],
)
def test_markdown_of_rule_pages(text: str, expected: str) -> None:
    assert to_html(text, top=2) == expected


def test_a_message_has_code_and_nothing_else() -> None:
    said = "`f(*a)` takes *args* [x](https://example.org/)"
    assert code_only(said) == "<code>f(*a)</code> takes *args* [x](https://example.org/)"


DRIVER = """
<script>
const key = (key, target = document.activeElement) =>
  target.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
const search = document.getElementById("search");
const shown = () => [...document.querySelectorAll("#findings .finding:not([hidden])")]
  .map((one) => one.dataset.rule);
const groups = () => [...document.querySelectorAll(".group:not([hidden]) > h2")]
  .map((one) => one.textContent);
const selected = () => [...document.querySelectorAll(".finding")].indexOf(
  document.querySelector(".selected"));
const said = {files: groups()};
key("g"); said.rules = groups(); key("g");
key("j"); key("j"); said.second = selected(); key("k"); said.first = selected();
key("Enter"); said.open = document.querySelectorAll(".finding > details[open]").length;
key("/"); said.searching = document.activeElement === search;
search.value = "cell 3"; search.dispatchEvent(new Event("input"));
said.found = shown();
search.value = "no such words"; search.dispatchEvent(new Event("input"));
said.nothing = !document.getElementById("nothing").hidden;
key("Escape"); said.all = shown().length;
document.querySelector("[data-choose=level][data-value=note]").click();
said.notes = shown();
document.getElementById("theme").click();
said.theme = document.documentElement.dataset.theme;
document.body.textContent = "SAID" + JSON.stringify(said) + "DIAS";
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium to open the page in")
def test_search_and_keys_in_a_browser(made: Run, tmp_path: Path) -> None:
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    # The policy keeps this script out like any other; that it lets ours run is tested below.
    text = policy.sub("", html.render(made)).replace("</body>", DRIVER + "</body>")
    (tmp_path / "driven.html").write_text(text, encoding="utf-8")
    dom = _open(tmp_path / "driven.html", tmp_path)
    (said,) = re.findall(r"SAID(.*)DIAS\s*</body>", dom)
    assert json.loads(said.replace("&amp;", "&")) == {
        "files": ["a b/train.py", "nb.ipynb"],
        "rules": ["DDP201 clip-before-unscale", "DDP301 other-rule"],
        "second": 1,
        "first": 0,
        "open": 1,
        "searching": True,
        "found": ["DDP201"],
        "nothing": True,
        "all": 3,
        "notes": ["DDP301"],
        "theme": "dark",
    }


@pytest.mark.skipif(BROWSER is None, reason="no Chromium to open the page in")
def test_the_policy_lets_the_script_of_the_page_run(made: Run, tmp_path: Path) -> None:
    text = html.render(made)
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    dom = _open(tmp_path / "page.html", tmp_path)
    assert re.search(r'<html[^>]* class="scripted"', dom)
    assert "3 shown" in dom
    (tmp_path / "other.html").write_text(text.replace('"use strict";', "", 1), encoding="utf-8")
    assert 'class="scripted"' not in _open(tmp_path / "other.html", tmp_path)


def _open(page: Path, scratch: Path) -> str:
    """The page as it stands after its scripts have run."""
    command = [
        str(BROWSER),
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        *("--disable-background-networking", f"--user-data-dir={scratch / 'browser'}"),
        *("--dump-dom", page.as_uri()),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

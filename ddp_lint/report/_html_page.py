"""The style and the script of the HTML report."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2430; --soft: #5b6675; --line: #d9dee5;
  --code: #f3f5f8; --mark: #fff0c2; --markline: #fff9e6; --accent: #1f5fc4; --focus: #1f5fc4;
  --error: #b3261e; --warning: #8a5a00; --note: #2f6b4f;
  --error-soft: #fbe9e7; --warning-soft: #fdf1da; --note-soft: #e5f3ec;
}
@media (prefers-color-scheme: dark) {
  :root:not([data-theme="light"]) {
    --page: #12161c; --card: #1a2028; --ink: #e4e8ee; --soft: #9aa6b5; --line: #2e3743;
    --code: #141a21; --mark: #5d4a10; --markline: #2a2615; --accent: #8ab4f8; --focus: #8ab4f8;
    --error: #ff8a80; --warning: #f0b95a; --note: #7fcfa6;
    --error-soft: #3a1d1c; --warning-soft: #35290f; --note-soft: #16301f;
  }
}
:root[data-theme="light"] { color-scheme: light; }
:root[data-theme="dark"] {
  color-scheme: dark;
  --page: #12161c; --card: #1a2028; --ink: #e4e8ee; --soft: #9aa6b5; --line: #2e3743;
  --code: #141a21; --mark: #5d4a10; --markline: #2a2615; --accent: #8ab4f8; --focus: #8ab4f8;
  --error: #ff8a80; --warning: #f0b95a; --note: #7fcfa6;
  --error-soft: #3a1d1c; --warning-soft: #35290f; --note-soft: #16301f;
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
code, pre, kbd { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { font-size: .92em; overflow-wrap: anywhere; }
a { color: var(--accent); }
button, input { font: inherit; color: inherit; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
.page {
  display: grid; grid-template-columns: minmax(15rem, 19rem) minmax(0, 1fr); gap: 1.5rem;
  max-width: 84rem; margin: 0 auto; padding: 1.25rem;
}
aside { position: sticky; top: 1.25rem; align-self: start; max-height: calc(100vh - 2.5rem);
  overflow-y: auto; padding: 2px; }
h1 { font-size: 1.25rem; margin: 0; }
.top { display: flex; justify-content: space-between; align-items: center; gap: .5rem; }
.soft { color: var(--soft); }
.plain { border: 1px solid var(--line); background: var(--card); border-radius: .4rem;
  padding: .25rem .6rem; cursor: pointer; }
.plain:hover { border-color: var(--accent); }
.plain[aria-pressed="true"] { border-color: var(--accent); color: var(--accent); }
#search { width: 100%; margin: .75rem 0 .5rem; padding: .45rem .6rem; border-radius: .4rem;
  border: 1px solid var(--line); background: var(--card); }
.row { display: flex; flex-wrap: wrap; gap: .35rem; margin-bottom: .5rem; }
.index { list-style: none; margin: .25rem 0 1rem; padding: 0; }
.index button { display: flex; width: 100%; gap: .5rem; text-align: left; border: 0;
  background: none; border-radius: .3rem; padding: .15rem .4rem; cursor: pointer; }
.index button:hover { background: var(--card); }
.index button[aria-pressed="true"] { background: var(--card); color: var(--accent); }
.index span:first-child { flex: 1; overflow-wrap: anywhere; }
aside h2 { font-size: .8rem; text-transform: uppercase; letter-spacing: .05em; margin: 1rem 0 0;
  color: var(--soft); }
.keys { font-size: .85rem; }
kbd { border: 1px solid var(--line); border-radius: .25rem; padding: 0 .3rem; font-size: .8rem;
  background: var(--card); }
.group > h2 { font-size: 1rem; margin: 1.25rem 0 .5rem; overflow-wrap: anywhere; }
.group:first-child > h2 { margin-top: 0; }
.finding { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  margin-bottom: .5rem; border-left: 4px solid var(--level); }
.error { --level: var(--error); --level-soft: var(--error-soft); }
.warning { --level: var(--warning); --level-soft: var(--warning-soft); }
.note { --level: var(--note); --level-soft: var(--note-soft); }
.finding.selected { box-shadow: 0 0 0 2px var(--focus); }
summary { cursor: pointer; }
.finding > details > summary { padding: .6rem .8rem; list-style: none; border-radius: .4rem; }
.finding > details > summary::-webkit-details-marker { display: none; }
.head { display: flex; flex-wrap: wrap; gap: .2rem .6rem; align-items: baseline;
  font-size: .88rem; }
.badge { color: var(--level); background: var(--level-soft); border-radius: .3rem;
  padding: 0 .4rem; font-weight: 600; }
.where { color: var(--soft); overflow-wrap: anywhere; }
.message { margin: .2rem 0 0; overflow-wrap: anywhere; }
.body { padding: 0 .8rem .8rem; }
.source { margin: .25rem 0 .75rem; padding: .4rem 0; background: var(--code);
  border: 1px solid var(--line); border-radius: .4rem; overflow-x: auto; font-size: .85rem;
  line-height: 1.55; tab-size: 4; }
.source span.l { display: block; min-width: max-content; padding-right: .8rem; white-space: pre; }
.source span.hit { background: var(--markline); }
.source i { display: inline-block; width: 4.2em; padding-right: 1em; text-align: right;
  color: var(--soft); font-style: normal; user-select: none; }
mark { background: var(--mark); color: inherit; border-radius: .2rem; padding: .08em 0; }
.chain { margin: 0 0 .75rem; padding-left: 1.2rem; }
.chain .source { margin: .25rem 0; }
.rule { border-top: 1px solid var(--line); padding-top: .5rem; }
.prose { max-width: 46rem; overflow-wrap: anywhere; }
.prose pre { background: var(--code); border: 1px solid var(--line); border-radius: .4rem;
  padding: .6rem .8rem; overflow-x: auto; font-size: .85rem; }
.prose table { border-collapse: collapse; display: block; overflow-x: auto; }
.prose th, .prose td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; }
.problems { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem .8rem; margin-bottom: 1rem; }
.problems ul { margin: .25rem 0 0; padding-left: 1.2rem; overflow-wrap: anywhere; }
.pages { margin-top: 2.5rem; border-top: 1px solid var(--line); }
.pages h2 { font-size: 1.1rem; }
.pages article { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .2rem 1rem .6rem; margin-bottom: .75rem; }
[hidden] { display: none !important; }
.scripted .pages { display: none; }
:root:not(.scripted) .needs-script { display: none; }
@media (max-width: 50rem) {
  .page { display: block; padding: .75rem; }
  aside { position: static; max-height: none; }
  aside { margin-bottom: 1rem; }
  aside details.fold > summary { padding: .3rem 0; }
  .keys { display: none; }
  .plain { padding: .4rem .7rem; }
  .index button { padding: .4rem; }
  .source i { width: 3.4em; padding-right: .7em; }
}
@media (min-width: 50.01rem) { aside details.fold > summary { display: none; } }
@media print { aside { display: none; } .page { display: block; } }
"""

SCRIPT = """
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const $ = (id) => document.getElementById(id);
  const list = $("findings"), search = $("search"), count = $("count");
  const findings = [...document.querySelectorAll(".finding")];
  const chosen = {level: "", rule: "", file: ""};
  let grouped = "file", selected = null;

  const visible = () => findings.filter((one) => !one.hidden);
  const ordered = () => [...list.querySelectorAll(".finding:not([hidden])")];

  function arrange() {
    const groups = new Map();
    const sorted = findings.map((one, at) => [one.dataset[grouped], at, one]);
    sorted.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
    list.replaceChildren();
    for (const [name, , one] of sorted) {
      if (!groups.has(name)) {
        const group = document.createElement("section");
        group.className = "group";
        const title = document.createElement("h2");
        title.textContent = grouped === "rule" ? one.dataset.ruleTitle : name;
        group.append(title);
        list.append(group);
        groups.set(name, group);
      }
      groups.get(name).append(one);
    }
    filter();
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
    for (const one of findings) {
      const text = one.dataset.text;
      one.hidden = !words.every((word) => text.includes(word)) ||
        Object.entries(chosen).some(([key, value]) => value && one.dataset[key] !== value);
    }
    for (const group of list.children)
      group.hidden = !group.querySelector(".finding:not([hidden])");
    const shown = visible().length;
    count.textContent = shown === findings.length
      ? `${shown} shown` : `${shown} of ${findings.length} shown`;
    $("nothing").hidden = shown > 0 || findings.length === 0;
    if (selected && selected.hidden) select(null);
  }

  function select(one, scroll = true) {
    if (selected) selected.classList.remove("selected");
    selected = one;
    if (!one) return;
    one.classList.add("selected");
    one.querySelector("summary").focus({preventScroll: true});
    if (scroll) one.scrollIntoView({block: "nearest"});
    history.replaceState(null, "", "#" + one.id);
  }

  function step(by) {
    const all = ordered();
    if (!all.length) return;
    const at = all.indexOf(selected);
    select(all[at < 0 ? (by > 0 ? 0 : all.length - 1)
                      : Math.min(Math.max(at + by, 0), all.length - 1)]);
  }

  function press(button, key, value) {
    chosen[key] = chosen[key] === value ? "" : value;
    for (const other of document.querySelectorAll(`[data-choose="${key}"]`))
      other.setAttribute("aria-pressed", String(other.dataset.value === chosen[key]));
    filter();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-choose]");
    if (button) press(button, button.dataset.choose, button.dataset.value);
    const one = event.target.closest(".finding");
    if (one && one !== selected) select(one, false);
  });
  document.addEventListener("toggle", (event) => {
    const details = event.target;
    if (!details.open || !details.dataset || !details.dataset.page) return;
    const page = $("rule-" + details.dataset.page);
    if (page && details.children.length === 1) {
      const copy = page.querySelector(".prose").cloneNode(true);
      details.append(copy);
    }
  }, true);
  search.addEventListener("input", filter);
  $("group").addEventListener("click", group);
  function group() {
    grouped = grouped === "file" ? "rule" : "file";
    $("group").textContent = grouped === "file" ? "Group by rule" : "Group by file";
    arrange();
    if (selected) select(selected);
  }
  $("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === search) {
      if (event.key === "Escape") { search.value = ""; filter(); search.blur(); }
      if (event.key === "Enter" || event.key === "ArrowDown") {
        event.preventDefault(); search.blur(); selected = null; step(1);
      }
      return;
    }
    const keys = {
      "/": () => search.focus(),
      "j": () => step(1),
      "k": () => step(-1),
      "g": group,
      "Enter": () => {
        if (!selected || event.target.closest("button, a, details.rule")) return false;
        const details = selected.querySelector("details");
        details.open = !details.open;
        selected.scrollIntoView({block: "nearest"});
      },
      "Escape": () => {
        for (const key of Object.keys(chosen)) if (chosen[key]) press(null, key, chosen[key]);
        search.value = ""; filter();
      },
    };
    const act = keys[event.key];
    if (act && act() !== false) event.preventDefault();
  });

  for (const fold of document.querySelectorAll("details.fold"))
    fold.open = matchMedia("(min-width: 50.01rem)").matches;
  arrange();
  const asked = location.hash && $(decodeURIComponent(location.hash.slice(1)));
  if (asked && asked.classList.contains("finding")) {
    asked.querySelector("details").open = true;
    select(asked);
  }
})();
"""

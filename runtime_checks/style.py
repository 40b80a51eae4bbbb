"""The frame of the page: its markup around what the record fills in, its style, its one script."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d8dee6;
  --paper: #fff; --shade: #f4f6f9; --bad: #b8430f; --good: #0b6e75; --warn: #8a6100;
  --odd: #7a3b9a; --link: #1f5fbf; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f0; --soft: #9aa6b5; --line: #36404d;
  --paper: #12161c; --shade: #1b212a; --bad: #ff9a66; --good: #58c7cf; --warn: #e8bd55;
  --odd: #d3a3ee; --link: #8ab4ff; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 0 0 .5rem; }
a { color: var(--link); }
p { margin: .4rem 0; max-width: 46rem; }
.soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
thead th { position: sticky; top: 0; background: var(--paper); }
.code, .number { font-variant-numeric: tabular-nums; }
.code, .all .number { white-space: nowrap; }
.number { overflow-wrap: anywhere; min-width: 6rem; }
td.bad { color: var(--bad); } td.good { color: var(--good); }
.verdict { display: inline-block; border: 1px solid; border-radius: 1rem; padding: 0 .6rem;
  font-size: .85rem; font-weight: 600; white-space: nowrap; margin-right: .4rem; }
.proven { color: var(--good); } .disproved { color: var(--bad); }
.not_run { color: var(--warn); } .failed { color: var(--odd); }
.model { color: var(--warn); font-size: .85rem; white-space: nowrap; }
.reason { border-left: 3px solid; padding-left: .7rem; overflow-wrap: anywhere; }
section { border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 1rem 0;
  scroll-margin-top: 1rem; }
section:target { border-color: var(--link); box-shadow: 0 0 0 1px var(--link); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .6rem 0;
  font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
input { font: inherit; color: inherit; background: var(--shade); border: 1px solid var(--line);
  border-radius: .4rem; padding: .4rem .7rem; width: 100%;
  max-width: 24rem; margin: 1rem 0 .5rem; }
figure { margin: .8rem 0; max-width: 44rem; }
figcaption { color: var(--soft); font-size: .9rem; }
svg { width: 100%; height: auto; background: var(--shade); border-radius: .4rem; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg .value { fill: var(--ink); } svg .label { fill: var(--ink); }
svg .label.bad { fill: var(--bad); font-weight: 600; }
svg .label.good { fill: var(--good); font-weight: 600; }
svg .grid { stroke: var(--line); fill: none; } svg .axis-line { stroke: var(--soft); fill: none; }
svg .line { stroke: var(--soft); stroke-width: 2; fill: none; }
svg .line.bad { stroke: var(--bad); } svg .line.good { stroke: var(--good); }
svg .dot, svg .bar { fill: var(--soft); }
svg .dot.bad, svg .bar.bad { fill: var(--bad); }
svg .dot.good, svg .bar.good { fill: var(--good); }
svg .box { fill: var(--paper); stroke: var(--good); stroke-width: 1.5; }
svg .box.bad { stroke: var(--bad); } svg .box.missing { stroke-dasharray: 4 3; }
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
  .wide:has(.all) th:nth-child(3), .all td:nth-child(3) { display: none; }
  th, td { padding: .35rem .3rem; } .all .number { white-space: normal; min-width: 3rem; }
}
"""

SCRIPT = """
const field = document.querySelector("input");
const parts = document.querySelectorAll("tbody.all tr, div.proofs section");
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\\s+/);
  for (const part of parts) {
    const text = part.textContent.toLowerCase();
    part.hidden = !words.every((word) => text.includes(word));
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  }
});
"""

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Proofs: what the rules say, measured</title>
<style>{style}</style>
</head>
<body>
<h1>Proofs: what the rules say, measured</h1>
<p>$verdicts</p>
<p class="soft">$where</p>
<input type="search" placeholder="Find a rule, a word, a verdict (press /)" aria-label="Find">
<div class="wide"><table>
<thead><tr><th>rule</th><th>proof</th><th>measured</th><th>bad</th><th>good</th><th>verdict</th></tr></thead>
<tbody class="all">$rows</tbody>
</table></div>
<div class="proofs">$details</div>
<section><h2>What this run does not cover</h2><ul>$not_covered</ul></section>
<section><h2>What it ran on</h2>$environment</section>
<section><h2>What it was told</h2>$settings</section>
<script>{script}</script>
</body>
</html>
"""

#: A ``string.Template``; literal dollar signs are doubled.
PAGE = _FRAME.replace("{style}", STYLE).replace("{script}", SCRIPT)

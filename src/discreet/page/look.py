"""How the report looks: one style sheet for light and dark, on screen and on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #f7f6f2; --card: #ffffff; --ink: #1b2330; --muted: #5d6776; --line: #e3e2dc; --grid: #ecebe5;
  --ours: #0f766e; --wash: #0f766e1a; --second: #a8580a; --third: #b3153f; --cap: #1b2330; --beyond: #b3153f0d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #10141a; --card: #171d25; --ink: #e8ecf1; --muted: #98a4b3; --line: #27303b; --grid: #222a34;
    --ours: #3fd0bd; --wash: #3fd0bd1f; --second: #f0b04a; --third: #ff7d94; --cap: #e8ecf1; --beyond: #ff7d9412;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 980px; margin: 0 auto; padding: 56px 24px 72px; }
h1 { font-size: clamp(30px, 5vw, 46px); line-height: 1.1; letter-spacing: -0.022em; margin: 0 0 16px; }
h2 { font-size: 23px; line-height: 1.25; letter-spacing: -0.01em; margin: 0 0 6px; }
p { margin: 0 0 12px; max-width: 70ch; }
.lead { font-size: 20px; line-height: 1.5; color: var(--muted); }
.lead b { color: var(--ink); font-weight: 600; }
.note { color: var(--muted); font-size: 15px; }
code, .sql { font: 13.5px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; margin: 28px 0 20px; }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: 14px; }
.tile { padding: 18px 20px; }
.tile b {
  display: block; font-size: 31px; white-space: nowrap;
  line-height: 1.15; letter-spacing: -0.02em; font-weight: 650; color: var(--ours);
}
.tile span { color: var(--muted); font-size: 14.5px; line-height: 1.4; display: block; margin-top: 4px; }
section { padding: 28px 30px 22px; margin: 20px 0; }
figure { margin: 14px 0 4px; }
.four { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 14px 26px; margin-top: 14px; }
.four h3 { font-size: 15.5px; margin: 0 0 2px; }
.four h3 span { color: var(--muted); font-weight: 400; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 12px 0 8px; font-size: 15px; }
td { font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 600; color: var(--muted); font-size: 13px; padding: 6px 10px; }
td { text-align: right; padding: 8px 10px; border-top: 1px solid var(--line); white-space: nowrap; }
td.sql, th.sql { text-align: left; white-space: normal; }
td.sql { min-width: 260px; }
.free { color: var(--ours); font-weight: 600; }
.paid { color: var(--second); }
.missed { color: var(--third); }
dt { font-weight: 600; margin-top: 12px; }
dd { margin: 2px 0 0; color: var(--muted); max-width: 72ch; }
.key { display: inline-block; vertical-align: -1px; margin: 0 4px 0 0; border-radius: 50%; width: 10px; height: 10px; }
.key.ours { background: var(--ours); }
.key.outside { background: var(--third); }
.key.truth { background: var(--ink); width: 3px; height: 14px; border-radius: 0; }
footer { color: var(--muted); font-size: 14px; margin-top: 26px; }

.chart { display: block; width: 100%; height: auto; overflow: visible; }
.text { fill: var(--ink); font-size: 13px; font-family: inherit; }
.tick, .label { fill: var(--muted); font-size: 12.5px; }
.tick, .number { font-variant-numeric: tabular-nums; }
.name { font-size: 13.5px; }
.text.strong { fill: var(--ink); font-weight: 600; }
.text.muted { fill: var(--muted); }
.end { font-size: 19px; font-weight: 650; }
.text.ours { fill: var(--ours); } .text.second { fill: var(--second); } .text.third { fill: var(--third); }
.text.outside { fill: var(--third); }
.line { fill: none; stroke: var(--muted); stroke-width: 1; stroke-linejoin: round; }
.line.ours, .line.second, .line.third { stroke-width: 2.5; }
.line.ours { stroke: var(--ours); } .line.second { stroke: var(--second); } .line.third { stroke: var(--third); }
.line.faint { stroke-width: 1.25; opacity: 0.55; }
.line.grid { stroke: var(--grid); }
.line.axis { stroke: var(--line); }
.line.cap { stroke: var(--cap); stroke-width: 1.25; stroke-dasharray: 5 4; }
.line.law { stroke: var(--ink); stroke-width: 1.25; opacity: 0.5; }
.line.worst { stroke: var(--third); stroke-width: 1.5; }
.line.whisker { stroke-width: 5; stroke-linecap: round; opacity: 0.35; }
.line.outside { stroke: var(--third); }
.area { stroke: none; } .area.ours { fill: var(--wash); }
.beyond { fill: var(--beyond); }
.inside { fill: var(--ours); opacity: 0.75; }
rect.outside { fill: var(--third); opacity: 0.85; }
.truth { fill: var(--ink); }
.dot { stroke: var(--card); stroke-width: 1.5; fill: var(--muted); }
.dot.ours { fill: var(--ours); } .dot.second { fill: var(--second); } .dot.third { fill: var(--third); }
.dot.outside { fill: var(--third); }
@media (max-width: 640px) {
  main { padding: 32px 14px 48px; } section { padding: 20px 16px 14px; }
  .wide { overflow-x: auto; } .wide .chart { min-width: 640px; }
  .four { grid-template-columns: minmax(0, 1fr); }
}
@media print { body { background: none; } section, .tile { break-inside: avoid; } }
""".strip()

"""How the page of a release looks: one style sheet for light and dark, on screen and on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #f7f6f2; --sheet: #ffffff; --ink: #1b2330; --muted: #566070; --line: #e3e2dc; --grid: #ecebe5;
  --ours: #0f766e; --cell: #4fa99e; --wash: #0f766e24; --warm: #a8580a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #10141a; --sheet: #171d25; --ink: #e8ecf1; --muted: #a3aebc; --line: #2b3541; --grid: #222a34;
    --ours: #3fd0bd; --cell: #1a7067; --wash: #3fd0bd26; --warm: #f0b04a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16.5px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1020px; margin: 0 auto; padding: 52px 24px 64px; }
h1 { font-size: clamp(28px, 4.6vw, 42px); line-height: 1.12; letter-spacing: -0.02em; margin: 0 0 14px; }
h1, h3, dd, td { overflow-wrap: anywhere; }
h2 { font-size: 22px; line-height: 1.25; letter-spacing: -0.01em; margin: 0 0 6px; }
h3 { font-size: 15.5px; line-height: 1.3; margin: 0 0 6px; }
h3 span { color: var(--muted); font-weight: 400; }
p { margin: 0 0 12px; max-width: 74ch; }
.lead { font-size: 19px; line-height: 1.5; color: var(--muted); }
.lead b { color: var(--ink); font-weight: 600; }
.note { color: var(--muted); font-size: 14.5px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 12px; margin: 26px 0 20px; }
.tile, section { background: var(--sheet); border: 1px solid var(--line); border-radius: 14px; }
.tile { padding: 16px 20px; }
.tile b {
  display: block; font-size: 28px; line-height: 1.2; letter-spacing: -0.02em; font-weight: 650; color: var(--ours);
}
.tile span { color: var(--muted); font-size: 14.5px; line-height: 1.4; display: block; margin-top: 3px; }
section { padding: 26px 30px 22px; margin: 20px 0; }
figure { margin: 12px 0 4px; }
.charts { columns: 2 400px; column-gap: 36px; margin-top: 16px; }
.charts figure { break-inside: avoid; margin: 0 0 26px; }
.said { display: grid; grid-template-columns: 1.35fr 1fr 1fr; gap: 8px 32px; }
.said h3 { margin-top: 10px; color: var(--ours); }
.said .less h3 { color: var(--warm); }
.said ul { margin: 0; padding-left: 18px; }
.said li { margin: 0 0 8px; }
dl { display: grid; grid-template-columns: minmax(110px, max-content) 1fr; gap: 7px 22px; margin: 12px 0 4px; }
dt { color: var(--muted); }
dd { margin: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 12px 0 8px; font-size: 15px; }
th { text-align: left; font-weight: 600; color: var(--muted); font-size: 13.5px; padding: 4px 24px 4px 0; }
td { padding: 5px 24px 5px 0; font-variant-numeric: tabular-nums; border-top: 1px solid var(--line); }
footer { color: var(--muted); font-size: 14px; margin-top: 26px; }
.chart { display: block; width: 100%; height: auto; overflow: visible; }
.text { fill: var(--ink); font-size: 12px; font-family: inherit; }
.tick, .label { fill: var(--muted); }
.label { font-size: 12.5px; font-weight: 600; }
.tick, .number { font-variant-numeric: tabular-nums; }
.small { font-size: 11px; }
.bar { fill: var(--ours); }
.cell { fill: var(--cell); }
.line { fill: none; stroke: var(--muted); stroke-width: 1; stroke-linejoin: round; }
.line.ours { stroke: var(--ours); stroke-width: 2.5; }
.line.grid { stroke: var(--grid); }
.line.axis { stroke: var(--line); }
.line.mean { stroke: var(--warm); stroke-width: 1.5; stroke-dasharray: 5 4; }
.area { fill: var(--wash); stroke: none; }
@media (max-width: 640px) {
  main { padding: 30px 14px 44px; } section { padding: 18px 16px 14px; }
  .said { grid-template-columns: minmax(0, 1fr); }
  .wide { overflow-x: auto; } .wide .chart { min-width: 640px; }
}
@media print {
  :root {
    --paper: #ffffff; --sheet: #ffffff; --ink: #000000; --muted: #444444; --line: #cccccc; --grid: #e8e8e8;
    --ours: #0f766e; --cell: #4fa99e; --wash: #0f766e24; --warm: #8a4a08;
  }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 11pt; } main { max-width: none; padding: 0; }
  section { border: 0; border-top: 1px solid var(--line); border-radius: 0; padding: 14px 0; }
  .tile, figure, li { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .charts { columns: 2; } .tiles { grid-template-columns: repeat(4, 1fr); } .tile { padding: 10px 14px; }
}
""".strip()

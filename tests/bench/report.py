# SPDX-License-Identifier: MIT
"""One page of everything that was measured: opens from disk, needs nothing else, light or dark as the reader's system is."""
import html

import plot

STYLE = """
:root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--soft:#57606a;--grid:#d8dee4;--met:#116329;--bad:#a40e26;
--line-0:#0b5cad;--line-1:#b34700;--line-2:#1a7f37;--line-3:#8250df;--line-4:#a0146b;--line-5:#5c4b00;--line-6:#444c56}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--soft:#9aa4af;--grid:#30363d;--met:#56d364;--bad:#ff7b72;
--line-0:#79b8ff;--line-1:#ffa657;--line-2:#7ee787;--line-3:#d2a8ff;--line-4:#ff9bce;--line-5:#e3c54a;--line-6:#c9d1d9}}
body{background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:76rem;padding:1.5rem}
h1{font-size:1.6rem;margin:0}h2{margin:2.5rem 0 .3rem;font-size:1.25rem}h3{font-size:1rem;margin:1rem 0 .2rem}
p{margin:.4rem 0;max-width:60rem}p.soft,td.soft,figcaption{color:var(--soft)}
table{border-collapse:collapse;font-size:.88rem;margin:.5rem 0}.wide{overflow-x:auto}
th,td{border-bottom:1px solid var(--grid);padding:.25rem .7rem;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.met{color:var(--met);font-weight:600}.missed{color:var(--bad);font-weight:600}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr));gap:1rem 2rem}
figure{margin:0}svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:var(--soft)}svg text.label{fill:var(--text)}
.grid{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--soft);fill:none}.line{fill:none;stroke-width:2}
line.limit{stroke:var(--bad);stroke-dasharray:6 4;stroke-width:1.5}svg text.limit{fill:var(--bad)}
svg.key{width:26px;height:14px;vertical-align:middle;margin-right:.3rem}.keys{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;font-size:.85rem}
nav a{margin-right:1rem}a{color:var(--line-0)}summary{cursor:pointer;color:var(--soft)}
"""


def text(value):
    return html.escape(str(value))


def verdict(word):
    """met and MISSED in their colours."""
    kind = {"met": "met", "MISSED": "missed"}.get(word, "soft")
    return f'<td class="{kind}">{text(word)}</td>'


def table(heads, rows):
    """heads: names, those of figures ending in a tab; rows: cells, ready to use."""
    head = "".join(f'<th class="n">{text(name.strip())}</th>' if name.endswith("\t") else f"<th>{text(name)}</th>"
                   for name in heads)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def figure_cell(value):
    return f'<td class="n">{plot.number(value)}</td>'


def budgets(rows):
    lines = [(f"<td>{text(row['what'])}</td>", figure_cell(row["measured"]), f"<td>{text(row['budget'])}</td>",
              verdict(row["verdict"]), f'<td class="soft">{text(row["detail"])}</td>') for row in rows]
    return '<h2 id="budgets">Budgets</h2>' + table(("what", "measured\t", "budget", "", "how"), lines)


def ratio(point):
    return point["value"] / point["base"] if point.get("base") else None


def judged(series):
    """(worst ratio, verdict) of a series that is to stay below a multiple of its baseline."""
    ratios = [ratio(point) for point in series["points"]
              if ratio(point) is not None and series.get("from", 0) <= point["x"] <= series.get("to", float("inf"))]
    if not ratios or not series.get("limit"):
        return None, ""
    return max(ratios), "met" if max(ratios) <= series["limit"] else "MISSED"


def limited(curves):
    """A line for each series with a limit, over all curves, and the last value of those that are told for themselves."""
    rows = []
    for curve in curves:
        for series in curve["series"]:
            worst, word = judged(series)
            if series.get("told"):
                last, most = series["points"][-1], series.get("most")
                rows.append({"what": f"{curve['title']}: {series['name']}, {series['chart']}", "measured": last["value"],
                             "budget": f"<= {most}" if most else series["unit"], "detail": f"with {last['x']} {curve['x']}",
                             "verdict": "" if not most else "met" if last["value"] <= most else "MISSED"})
            if worst is not None:
                rows.append({"what": f"{curve['title']}: {series['name']}, {series['chart']}", "measured": worst,
                             "budget": f"<= {series['limit']} times", "verdict": word,
                             "detail": f"worst ratio to {series['baseline']}"})
    return rows


def chart(curve, name):
    """One drawing of the values, one of the ratios where there are baselines, and the figures."""
    found = [series for series in curve["series"] if series["chart"] == name]
    unit = found[0]["unit"]
    lines = [(series["name"], [(point["x"], point["value"]) for point in series["points"]]) for series in found]
    parts = [f"<figure><h3>{text(name)}, {text(unit)}</h3>", plot.key([line[0] for line in lines]),
             plot.svg(f"{curve['title']}: {name}", curve["x"], unit, lines, x_log=curve.get("x_log")), "</figure>"]
    compared = [(series["name"], [(point["x"], ratio(point)) for point in series["points"] if ratio(point)])
                for series in found]
    compared = [line for line in compared if line[1]]
    if compared:
        limits = sorted({(series["limit"], f"limit {series['limit']}") for series in found if series.get("limit")})
        baselines = sorted({series["baseline"] for series in found if series.get("baseline")})
        parts += [f"<figure><h3>{text(name)}, times the baseline</h3>", plot.key([line[0] for line in compared]),
                  plot.svg(f"{curve['title']}: {name} as ratio", curve["x"], "times the baseline", compared, limits,
                           x_log=curve.get("x_log")),
                  f"<figcaption>Baseline: {text('; '.join(baselines))}</figcaption></figure>"]
    return "".join(parts)


def figures(curve):
    lines = [(f"<td>{text(series['chart'])}: {text(series['name'])}</td>", figure_cell(point["x"]),
              figure_cell(point["value"]), f"<td>{text(series['unit'])}</td>", figure_cell(point.get("base")),
              figure_cell(ratio(point)), f'<td class="soft">{text(series.get("baseline") or "")}</td>')
             for series in curve["series"] for point in series["points"]]
    return ("<details><summary>all figures</summary>" +
            table(("what", curve["x"] + "\t", "value\t", "unit", "baseline\t", "ratio\t", "baseline is"), lines) + "</details>")


def section(curve):
    parts = [f'<h2 id="{text(curve["name"])}">{text(curve["title"])}</h2><p class="soft">{text(curve["about"])}</p>']
    names = list(dict.fromkeys(series["chart"] for series in curve["series"]))
    if names:
        parts.append('<div class="charts">' + "".join(chart(curve, name) for name in names) + "</div>")
    for missed in curve["missed"]:
        parts.append(f'<p><span class="missed">not measured</span> {text(curve["x"])} {plot.number(missed["x"])}: '
                     f'{text(missed["why"])}</p>')
    if names:
        parts.append(figures(curve))
    return "".join(parts)


def soak(data):
    """Figures that stayed flat over time, and figures that did not."""
    rows = [(f"<td>{text(row['what'])}</td>", f"<td>{text(row['measured'])}</td>", f"<td>{text(row['budget'])}</td>",
             verdict(row["verdict"]), f'<td class="soft">{text(row["detail"])}</td>') for row in data["rows"]]
    parts = [f'<h2 id="soak">Soak</h2><p class="soft">{text(data["about"])}</p>',
             table(("what", "measured", "allowed", "", "how"), rows), '<div class="charts">']
    for drawn in data["charts"]:
        lines = [(line["name"], [tuple(point) for point in line["points"]]) for line in drawn["lines"]]
        parts.append(f"<figure><h3>{text(drawn['title'])}, {text(drawn['unit'])}</h3>" +
                     plot.key([line[0] for line in lines], marked=False) +
                     plot.svg(drawn["title"], "minutes", drawn["unit"], lines, x_log=False, marked=False) + "</figure>")
    return "".join(parts) + "</div>"


def page(data):
    curves = data.get("curves", [])
    names = [("budgets", "Budgets")] if data.get("budgets") else []
    names += [(curve["name"], curve["title"]) for curve in curves] + ([("soak", "Soak")] if data.get("soak") else [])
    links = "".join(f'<a href="#{text(name)}">{text(title)}</a>' for name, title in names)
    facts = " · ".join(text(fact) for fact in data["facts"])
    rows = data.get("budgets", []) + limited(curves)
    parts = [f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>notegate: {text(data["title"])}</title>'
             f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>',
             f'<h1>notegate: {text(data["title"])}</h1><p class="soft">{facts}</p><nav>{links}</nav>',
             f"<p>{text(data['about'])}</p>", budgets(rows) if rows else "",
             *[section(curve) for curve in curves], soak(data["soak"]) if data.get("soak") else "", "</body></html>\n"]
    return "\n".join(part for part in parts if part)

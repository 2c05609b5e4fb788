"""One table, three renderings: Markdown, booktabs LaTeX and a self-contained HTML page."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;color:#1b1f24;margin:2rem auto;max-width:90rem;padding:0 1rem}
h1{font-size:1.15rem;margin:0 0 .3rem}p.caption{margin:.2rem 0 1rem;color:#444}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}
thead th{border-top:2px solid #1b1f24;border-bottom:1px solid #1b1f24;padding:.4rem .5rem;text-align:right;vertical-align:bottom}
thead th:first-child{padding-left:0}thead th:first-child,tbody th{text-align:left}thead small{display:block;font-weight:400;color:#57606a;line-height:1.25}
tbody th{font-weight:400;padding:.22rem .7rem .22rem 0;position:sticky;left:0;background:#fff}tbody td{text-align:right;padding:.22rem .5rem}tbody th,tbody td{vertical-align:top}
tbody tr.group th{font-weight:650;padding-top:.7rem;border-top:1px solid #c9d1d9}
tbody tr.group:first-child th{border-top:0}tbody tr.derived td,tbody tr.derived th[scope]{color:#41474d;background:#f6f8fa}
tbody tr:last-child td,tbody tr:last-child th{border-bottom:2px solid #1b1f24}
td small{display:block;color:#57606a;line-height:1.15}tbody tr td.muted{color:#8b949e;font-style:italic}
ul.notes{color:#444;font-size:.9rem;padding-left:1.1rem;margin-top:1rem}
"""

ONE_SEED = "†"
ONE_SEED_NOTE = (
    f"{ONE_SEED} One training seed of a method: the interval, and bold with it, is over problems only and compares these two "
    "trained models, not the methods."
)

NO_INTERVAL_NOTE = (
    "A difference without brackets: both methods have the same score on every problem, as where neither solves any. No "
    "difference was seen, and resampling cannot say how large one might be."
)


@dataclass(frozen=True)
class Cell:
    """`text` is the number, `spread` its uncertainty in smaller print, `title` a tooltip in HTML; `muted` for 'not run'."""

    text: str
    spread: str = ""
    bold: bool = False
    muted: bool = False
    title: str = ""


@dataclass(frozen=True)
class Row:
    """A labelled row; `derived` marks differences, which are set apart from scores."""

    label: str
    cells: Sequence[Cell]
    derived: bool = False


@dataclass(frozen=True)
class Column:
    """A heading with small-print lines below it (n, k, T)."""

    title: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """Groups of rows under common columns; a group with an empty title has no heading of its own."""

    title: str
    caption: str
    corner: str
    columns: Sequence[Column]
    groups: Sequence[tuple[str, Sequence[Row]]]
    notes: Sequence[str] = field(default_factory=tuple)


def markdown(table: Table) -> str:
    """GitHub-flavoured Markdown with the caption above and the notes below."""
    heads = [" ".join((f"**{column.title}**", *column.notes)) for column in table.columns]
    lines = [f"**{table.title}** {table.caption}", ""]
    lines += ["| " + " | ".join([table.corner, *map(_md, heads)]) + " |"]
    lines += ["| --- |" + " ---: |" * len(table.columns)]
    for title, rows in table.groups:
        if title:
            lines.append(f"| **{_md(title)}** |" + " |" * len(table.columns))
        lines += ["| " + " | ".join([_md(row.label), *(_md_cell(cell) for cell in row.cells)]) + " |" for row in rows]
    lines += ["", *(f"- {note}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """A `table*` float in booktabs style; the preamble needs \\usepackage{booktabs}."""
    width = len(table.columns) + 1
    heads = [f"{tex(column.title)}" for column in table.columns]
    depth = max(len(column.notes) for column in table.columns)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table*}",
        "\\centering\\footnotesize\\setlength{\\tabcolsep}{3pt}",
        "\\setlength{\\belowcaptionskip}{4pt}",
        f"\\caption{{{tex(table.caption)}}}",
        f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        "\\toprule",
        " & ".join([tex(table.corner), *heads]) + " \\\\",
    ]
    for line in range(depth):
        notes = [column.notes[line] if line < len(column.notes) else "" for column in table.columns]
        lines.append(" & ".join(["", *(f"{{\\scriptsize {tex(note)}}}" if note else "" for note in notes)]) + " \\\\")
    for title, rows in table.groups:
        lines.append("\\midrule")
        if title:
            lines.append(f"\\multicolumn{{{width}}}{{l}}{{\\textbf{{{tex(title)}}}}} \\\\")
        lines += [" & ".join([tex(row.label), *(_tex_cell(cell) for cell in row.cells)]) + " \\\\" for row in rows]
    lines += ["\\bottomrule", "\\end{tabular}"]
    if table.notes:
        notes = " ".join(tex(note) for note in table.notes)
        lines.append(f"\\par\\smallskip\\begin{{minipage}}{{\\linewidth}}\\footnotesize {notes}\\end{{minipage}}")
    return "\n".join([*lines, "\\end{table*}"]) + "\n"


def page(table: Table) -> str:
    """A self-contained HTML page; every text is escaped."""
    heads = "".join(
        f'<th scope="col">{_esc(column.title)}<small>{"<br>".join(map(_esc, column.notes))}</small></th>'
        for column in table.columns
    )
    body = []
    for title, rows in table.groups:
        if title:
            body.append(f'<tr class="group"><th colspan="{len(table.columns) + 1}">{_esc(title)}</th></tr>')
        for row in rows:
            kind = ' class="derived"' if row.derived else ""
            cells = "".join(map(_html_cell, row.cells))
            body.append(f'<tr{kind}><th scope="row">{_esc(row.label)}</th>{cells}</tr>')
    notes = "".join(f"<li>{_esc(note)}</li>" for note in table.notes)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_esc(table.title)}</title>'
        f"<style>{STYLE}</style></head><body>\n<h1>{_esc(table.title)}</h1>"
        f'<p class="caption">{_esc(table.caption)}</p>\n<div class="scroll"><table><thead><tr>'
        f'<th scope="col">{_esc(table.corner)}</th>{heads}</tr></thead>\n<tbody>\n' + "\n".join(body) + "\n</tbody>"
        f'</table></div>\n<ul class="notes">{notes}</ul>\n</body></html>\n'
    )


TEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
    "−": "$-$",
    "×": "$\\times$",
    "≤": "$\\le$",
    "–": "--",
    "·": "$\\cdot$",
    "†": "$\\dagger$",
}


def tex(text: str) -> str:
    """`text` with every character that LaTeX gives a meaning escaped, and signs in mathematics mode."""
    return "".join(TEX.get(character, character) for character in text)


def _tex_cell(cell: Cell) -> str:
    text = tex(cell.text)
    if cell.muted:
        return f"\\textit{{{text}}}"
    text = f"\\textbf{{{text}}}" if cell.bold else text
    if not cell.spread:
        return text
    return f"\\begin{{tabular}}[t]{{@{{}}r@{{}}}}{text}\\\\[-3pt]{{\\tiny {tex(cell.spread)}}}\\end{{tabular}}"


def _md(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _md_cell(cell: Cell) -> str:
    text = _md(cell.text)
    if cell.muted:
        return f"*{text}*"
    text = f"**{text}**" if cell.bold else text
    return f"{text} {_md(cell.spread)}" if cell.spread else text


def _esc(text: str) -> str:
    return html.escape(text, quote=True)


def _html_cell(cell: Cell) -> str:
    text = f"<b>{_esc(cell.text)}</b>" if cell.bold else _esc(cell.text)
    spread = f" <small>{_esc(cell.spread)}</small>" if cell.spread else ""
    attributes = ' class="muted"' if cell.muted else ""
    attributes += f' title="{_esc(cell.title)}"' if cell.title else ""
    return f"<td{attributes}>{text}{spread}</td>"

"""One plain, printable frame for the report's pages: no script, no network, fonts of the reader's system."""

import html
from collections.abc import Sequence
from importlib import resources


def body_of(document: str) -> str:
    """What stands inside <body> of one of our own pages, with headings one level down, to set it into another page."""
    inner = document.split("<body>", 1)[1].rsplit("</body>", 1)[0]
    return inner.replace("<h1>", "<h2>").replace("</h1>", "</h2>")


def text_of(name: str) -> str:
    """A text file of this package."""
    return (resources.files("fr3e.report") / name).read_text(encoding="utf-8")


def page(title: str, sections: Sequence[str]) -> str:
    """A whole document around sections of finished HTML."""
    body = "\n".join(f"<section>{section}</section>" for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{text_of('report.css')}</style></head><body>\n<main>\n{body}\n</main>\n</body></html>\n"
    )

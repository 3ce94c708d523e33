"""The frame of every page: one head, one style sheet, one script, nothing from the network."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from deadheat._internal.packages import own_version, require


def write_page(name: str, *, title: str, **content: object) -> str:
    """Write a page.

    Parameters
    ----------
    name
        Name of the template, style sheet and script in this folder that the page has besides
        those of all pages.
    content
        Values of the template; texts are escaped.
    """
    jinja2 = require("jinja2", "a report page")
    script = _file("page.js") + _file(f"{name}.js")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_file),
    )
    compact = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    environment.policies["json.dumps_kwargs"] = compact
    page: str = environment.get_template(f"{name}.html").render(
        title=title,
        version=own_version(),
        css=_file("page.css") + _file(f"{name}.css"),
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **content,
    )
    return re.sub("[\ud800-\udfff]", "\ufffd", page)  # UTF-8 has no lone surrogates


def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")

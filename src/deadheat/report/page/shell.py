"""The frame of every page: one head, one style sheet, one script, nothing from the network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files

from deadheat._internal.packages import own_version, require


def write_page(
    template: str, *, title: str, styles: Sequence[str], scripts: Sequence[str], **content: object
) -> str:
    """Write a page.

    Parameters
    ----------
    template
        The file in this folder that fills in `shell.html`.
    styles, scripts
        Files in this folder; they become one style sheet and one script inside the page.
    content
        Values of the template; texts are escaped.
    """
    jinja2 = require("jinja2", "a report page")
    script = "\n".join(map(_file, scripts))
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_file),
    )
    compact = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    environment.policies["json.dumps_kwargs"] = compact
    page: str = environment.get_template(template).render(
        title=title,
        version=own_version(),
        css="\n".join(map(_file, styles)),
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **content,
    )
    return re.sub("[\ud800-\udfff]", "\ufffd", page)  # UTF-8 has no lone surrogates


def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")

"""The compiled modules, and the README for the package index. The rest is in pyproject.toml.

Where there is no C compiler the installation goes on without compiled modules: the kernels of the
measures are then interpreted, and ``ties/numpy_counting.py``, ``formats/keys.py`` and
``formats/trec.py`` replace the others.

Environment variables:

- ``REPOSITORY_URL``: where the repository is, such as ``https://example.org/owner/deadheat``. The
  release workflow sets it. Relative links of the README then lead there, otherwise they become
  plain text.
- ``LDFLAGS``: if set, symbols are not stripped.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = Path("src/deadheat")
COMPILED = [*FOLDER.glob("*/*.pyx")]
# The kernels of measures are Python; the types for their compilation are in .pxd files.
KERNELS = [path.with_suffix(".py") for path in FOLDER.glob("measures/*.pxd")]
DIRECTIVES = {
    "annotation_typing": False,  # annotations are for readers and mypy
    "boundscheck": False,
    "cdivision": True,
    "infer_types": True,
    "initializedcheck": False,
    "wraparound": False,
}
# Without fused multiply-add, which compilers for ARM use by default: the same bits everywhere.
COMPILE_ARGS = ["-O3", "-g0", "-ffp-contract=off"]
STRIP_ARGS = {"linux": ["-s"], "darwin": ["-Wl,-x"]}


class BuildIfPossible(build_ext):  # type: ignore[misc]
    def build_extensions(self) -> None:
        if self.compiler.compiler_type != "msvc":  # its defaults are right
            for ext in self.extensions:
                ext.extra_compile_args = COMPILE_ARGS
                if not os.environ.get("LDFLAGS"):
                    ext.extra_link_args = STRIP_ARGS.get(sys.platform, [])
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:  # whatever a missing or broken compiler raises
            print(f"{ext.name} was not compiled: {error}", file=sys.stderr)  # noqa: T201


def extension(path: Path) -> Extension:
    made = Extension(".".join(path.relative_to("src").with_suffix("").parts), [str(path)])
    made.optional = True  # its absence is not an error of the later steps
    return made


def compile_all(paths: list[Path], directives: dict[str, bool]) -> list[Extension]:
    made: list[Extension] = cythonize(
        [extension(path) for path in sorted(paths)],
        language_level=3,
        compiler_directives=directives,
        build_dir="build/cython",  # the generated C
    )
    return made


def index_readme(url: str) -> str:
    """Return the README with absolute links, or without those to files if no `url` is known."""
    text = Path("README.md").read_text(encoding="utf-8")
    if not url:
        images = r"<picture>.*?</picture>|<img\b[^>]*>|!\[[^\]]*\]\([^)]*\)"
        text = re.sub(images, "", text, flags=re.DOTALL)
        return re.sub(r"\[([^\]]+)\]\((?!\w+:|#)[^)\s]+\)", r"\1", text)
    text = re.sub(r'(!\[[^\]]*\]\(|\bsrc(?:set)?=")(?!\w+:)', rf"\1{url}/raw/HEAD/", text)
    return re.sub(r"(\]\()(?!\w+:|#)", rf"\1{url}/blob/HEAD/", text)


repository = os.environ.get("REPOSITORY_URL", "").rstrip("/")
setup(
    ext_modules=compile_all(COMPILED, {}) + compile_all(KERNELS, DIRECTIVES),
    cmdclass={"build_ext": BuildIfPossible},
    options={"build_ext": {"parallel": os.cpu_count()}},
    long_description=index_readme(repository),
    long_description_content_type="text/markdown",
    project_urls={"Repository": repository} if repository else {},
)

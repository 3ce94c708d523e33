"""The compiled parts. Everything else is in pyproject.toml.

Where there is no C compiler the installation goes on without them: the kernels of the measures are
then interpreted, and ``ties/numpy_counting.py``, ``formats/keys.py`` and ``formats/trec.py`` take
the place of the compiled modules.
"""

from __future__ import annotations

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


def extension(path: Path) -> Extension:
    name = ".".join(path.relative_to("src").with_suffix("").parts)
    made = Extension(name, [str(path)], extra_compile_args=["-O3", "-g0"])
    made.optional = True  # its absence is not an error of the later steps
    return made


class BuildIfPossible(build_ext):  # type: ignore[misc]
    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:  # whatever a missing or broken compiler raises
            print(f"{ext.name} was not compiled: {error}", file=sys.stderr)  # noqa: T201


def compile_all(paths: list[Path], directives: dict[str, bool]) -> list[Extension]:
    made: list[Extension] = cythonize(
        [extension(path) for path in sorted(paths)],
        language_level=3,
        compiler_directives=directives,
        build_dir="build/cython",  # the generated C
    )
    return made


setup(
    ext_modules=compile_all(COMPILED, {}) + compile_all(KERNELS, DIRECTIVES),
    cmdclass={"build_ext": BuildIfPossible},
)

"""The compiled parts. Everything else is in pyproject.toml.

Where there is no C compiler the installation goes on without them; their twins in NumPy and
Python (``ties/numpy_counting.py``, ``formats/keys.py``, ``formats/trec.py``, the measures
themselves) take their places.
"""

from __future__ import annotations

import sys

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NAMES = (
    "formats.compiled_keys",
    "formats.compiled_lines",
    "ties.compiled_counting",
    "measures.compiled_passes",
)


class BuildIfPossible(build_ext):  # type: ignore[misc]
    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:  # whatever a missing or broken compiler raises
            print(f"{ext.name} was not compiled: {error}", file=sys.stderr)  # noqa: T201


extensions = cythonize(
    [
        Extension(
            f"deadheat.{name}",
            [f"src/deadheat/{name.replace('.', '/')}.pyx"],
            extra_compile_args=["-O3"],
        )
        for name in NAMES
    ],
    language_level=3,
    build_dir="build/cython",  # the generated C
)
for extension in extensions:
    extension.optional = True  # its absence is not an error of the later steps, either

setup(ext_modules=extensions, cmdclass={"build_ext": BuildIfPossible})

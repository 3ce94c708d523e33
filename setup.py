"""The one compiled part. Everything else is in pyproject.toml.

``optional`` lets the installation go on where there is no C compiler; the
NumPy twin of the extension (``deadheat.ties._reference``) then takes its place.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

counting = Extension(
    "deadheat.ties._counting",
    ["src/deadheat/ties/_counting.pyx"],
    extra_compile_args=["-O3"],
    optional=True,
)

setup(ext_modules=cythonize([counting], language_level=3))

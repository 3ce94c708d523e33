"""The compiled parts. Everything else is in pyproject.toml.

``optional`` lets the installation go on where there is no C compiler; the twins of the
extensions in NumPy and Python (``ties/_reference.py``, ``formats/keys.py``) take their places.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

EXTENSIONS = ("ties._counting", "formats._keys")

extensions = [
    Extension(
        f"deadheat.{name}",
        [f"src/deadheat/{name.replace('.', '/')}.pyx"],
        extra_compile_args=["-O3"],
        optional=True,
    )
    for name in EXTENSIONS
]

setup(ext_modules=cythonize(extensions, language_level=3))

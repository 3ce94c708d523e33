"""From results to what people read; called, ``dh.report(results, path)`` writes the page."""

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any


class _Room(_ModuleType):
    """The package itself, which users call by its name."""

    def __call__(self, *args: _Any, **options: _Any) -> _Any:
        from deadheat.report.writing import report

        return report(*args, **options)


_sys.modules[__name__].__class__ = _Room

"""Host libraries: absent, too old, too new."""

from __future__ import annotations

import pytest

from deadheat import packages
from deadheat.errors import InputError, MissingPackageError

REQUIREMENTS = [
    "numpy>=1.26",
    'json-host<3,>=2.18; extra == "json"',
    'helper; extra == "json"',
    'deadheat[models,json]; extra == "all"',
    'other>=9; extra == "other"',
]


@pytest.fixture
def installed(monkeypatch):
    """A host whose module is json and whose version a test sets."""
    versions = {"json-host": "2.26.24", "helper": "1"}

    def version(package):
        if package not in versions:
            raise packages.PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(packages, "requires", lambda name: REQUIREMENTS)
    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setitem(packages.EXTRAS, "json", "json")
    return versions


def host():
    return packages.require_host("json", "json", "`wrap`")


@pytest.mark.parametrize("version", ["2.18", "2.18.0", "2.26.24", "2.100.1+cpu", "2.19rc1"])
def test_a_supported_version_is_imported(installed, version):
    installed["json-host"] = version
    assert host().dumps([]) == "[]"


@pytest.mark.parametrize("version", ["2.17.9", "2.9", "3", "3.0.0", "3.0rc1", "10.0"])
def test_another_version_is_refused_with_the_range(installed, version):
    installed["json-host"] = version
    with pytest.raises(InputError, match=rf"`wrap` supports json-host <3,>=2.18, but {version} is"):
        host()


def test_a_missing_host_names_the_extra(installed):
    del installed["json-host"]
    with pytest.raises(MissingPackageError, match=r"'json-host': pip install 'deadheat\[json\]'"):
        host()


def test_the_ranges_of_the_hosts_are_in_the_package_itself():
    assert packages.supported_versions("mteb")["mteb"] == ["<3", ">=2.18"]

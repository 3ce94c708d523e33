"""Optional packages and host libraries: missing, too old, too new, and the install command."""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace

import pytest

from deadheat._internal import packages
from deadheat._internal.packages import EXTRAS, install_command, require
from deadheat.errors import InputError, MissingPackageError

REQUIREMENTS = [
    "numpy>=1.26",
    'json-host<3,>=2.18; extra == "json"',
    'helper; extra == "json"',
    'deadheat[models,json]; extra == "all"',
    'other>=9; extra == "other"',
    'exact==0.1.1; extra == "exact"',
    'old-python-only>=1; python_version < "3" and extra == "json"',
    'newer-python-only>=1; python_version >= "9" and extra == "newer"',
]


@pytest.fixture
def installed(monkeypatch):
    """A host library whose module is json and whose version is set by the test."""
    versions = {"json-host": "2.26.24", "helper": "1"}

    def version(package):
        if package not in versions:
            raise packages.PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(packages, "requires", lambda name: REQUIREMENTS)
    monkeypatch.setattr(packages, "version", version)
    monkeypatch.setitem(packages.EXTRAS, "json", "json")
    return versions


def import_host():
    return packages.require_host("json", "json", "`wrap`")


@pytest.mark.parametrize("version", ["2.18", "2.18.0", "2.26.24", "2.100.1+cpu", "2.19rc1"])
def test_supported_version_is_imported(installed, version):
    installed["json-host"] = version
    assert import_host().dumps([]) == "[]"


@pytest.mark.parametrize("version", ["2.17.9", "2.18rc1", "2.9", "3", "3.0.0", "3.0rc1", "10.0"])
def test_unsupported_version_error_names_the_range(installed, version):
    installed["json-host"] = version
    with pytest.raises(
        InputError, match=rf"`wrap` .*json-host <3,>=2\.18, .*{re.escape(version)} is"
    ):
        import_host()


@pytest.mark.parametrize(
    ("version", "fits"), [("0.1.1", True), ("0.1.1+cpu", True), ("0.2", False)]
)
def test_exact_version_requirement(installed, version, fits):
    installed["exact"] = version
    if fits:
        packages.require_host("json", "exact", "`wrap`")
        return
    with pytest.raises(InputError, match=rf"`wrap` .*exact ==0\.1\.1, .*{re.escape(version)} is"):
        packages.require_host("json", "exact", "`wrap`")


def test_missing_host_error_has_the_install_command(installed):
    del installed["json-host"]
    with pytest.raises(MissingPackageError) as caught:
        import_host()
    message = str(caught.value)
    assert message.startswith("`wrap`") and "'json-host'" in message
    assert message.endswith(f": {install_command('json')}")


def test_supported_versions_come_from_the_package_metadata():
    assert packages.supported_versions("ranx") == {"ranx": "<0.4,>=0.3.20"}


def test_extra_for_newer_python_is_rejected(installed):
    with pytest.raises(InputError, match=r"`wrap` needs a newer Python than 3\."):
        packages.require_host("json", "newer", "`wrap`")


URL = "https://example.org/deadheat.git"


@pytest.mark.parametrize(
    ("recorded", "command"),
    [
        (
            {"url": "file:///home/me/my%20code", "dir_info": {"editable": True}},
            "cd '/home/me/my code' && pip install -e '.[plots]'",
        ),
        (
            {"url": "file:///src/deadheat", "dir_info": {}},
            "cd /src/deadheat && pip install '.[plots]'",
        ),
        (
            {
                "url": URL,
                "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "v"},
            },
            f"pip install 'deadheat[plots] @ git+{URL}@v'",
        ),
        (
            {"url": URL, "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            f"pip install 'deadheat[plots] @ git+{URL}@abc'",
        ),
        (
            {"url": "file:///tmp/deadheat-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'deadheat[plots] @ file:///tmp/deadheat-0.1.0-py3-none-any.whl'",
        ),
    ],
)
def test_install_command_matches_the_installation(monkeypatch, recorded, command):
    distribution = SimpleNamespace(read_text=lambda _: json.dumps(recorded))
    monkeypatch.setattr(packages, "distributions", lambda **_: [distribution])
    assert install_command("plots") == command


HOSTS = [
    "beir",
    "faiss",
    "haystack",
    "hnswlib",
    "ir-measures",
    "lancedb",
    "lightgbm",
    "llama-index",
]
HOSTS += ["mteb", "pyterrier", "pytrec-eval", "ranx", "ray", "torchmetrics", "trm", "usearch"]


@pytest.mark.parametrize("extra", [*sorted(set(EXTRAS.values())), *HOSTS])
def test_install_command_of_unknown_origin_lists_the_packages(monkeypatch, extra):
    """The command must not name deadheat, which may be another project on the package index."""
    distribution = SimpleNamespace(read_text=lambda _: None)
    monkeypatch.setattr(packages, "distributions", lambda **_: [distribution])
    command = install_command(extra)
    assert command.startswith("pip install ") and len(command) > len("pip install ")
    assert "deadheat" not in command


def test_missing_package_error_has_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError) as caught:
        require("matplotlib", "a figure")
    message = str(caught.value)
    assert message.startswith("a figure") and "'matplotlib'" in message
    assert message.endswith(f": {install_command('plots')}")

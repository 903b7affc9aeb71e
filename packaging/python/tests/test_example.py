"""The example in the documentation does what it says."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "agent_loop.py"


@pytest.mark.skipif(sys.platform == "win32", reason="its commands are those of a Unix")
def test_the_agent_repairs_its_program_and_is_refused_the_download(tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLE))
    transcript = example["converse"](example["ScriptedModel"](), tmp_path)
    answers = [answer for _, answer in transcript]
    assert (tmp_path / "sums.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert any("AssertionError" in answer for answer in answers), answers
    assert any(answer.startswith("refused") for answer in answers), answers
    assert transcript[-1][0].done == "the test passes, and the download was not needed"

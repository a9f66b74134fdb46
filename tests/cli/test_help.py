"""What everybody sees first is there at once."""

from __future__ import annotations

import subprocess
import sys


def test_help_imports_no_command() -> None:
    """Nor pydantic, nor a loop: `spoolvisor --help` answers before they would be there."""
    code = (
        "import sys\nfrom supervisor.cli import main\n"
        "heavy = {'pydantic', 'asyncio', 'supervisor.supervisor', 'supervisor.cli.run'}\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    print(sorted(heavy & {*sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "Run a command, show its output" in done.stdout
    assert done.stderr == "[]\n"

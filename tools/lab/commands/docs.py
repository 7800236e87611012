"""./lab docs: the documentation site."""
import sys

from build import shell
from call import Call
from chapters import ROOT
from process import Refusal, become, run, say


def main(call: Call) -> int:
    """Builds it, and says where it begins; --serve shows it on this computer alone, since the search needs a server."""
    shell("set_up", "docs", "", str(call.yes).lower())
    folder = ROOT / "build" / "docs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"{folder.relative_to(ROOT)} cannot be made: {error.strerror}") from None
    say("building the documentation")
    if run([sys.executable, str(ROOT / "tools" / "build_site.py"), str(folder)]) != 0:
        raise Refusal("building the documentation failed")
    if "--serve" in call.options:
        become([sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder / "html")])
    return 0

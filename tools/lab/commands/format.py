"""./lab format: all C++ and CUDA sources as .clang-format says."""
import process
from call import Call
from chapters import ROOT


def main(call: Call) -> int:
    """Leaves it to tools/check_format, which knows the one version of clang-format that counts."""
    process.become([str(ROOT / "tools" / "check_format"), *([] if "--check" in call.options else ["--fix"])])

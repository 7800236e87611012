"""./lab docs: the documentation site."""
from build import set_up
from call import Call


def main(call: Call) -> int:
    """Builds it, and says where it begins."""
    build = set_up("docs", "", call.yes)
    build.build("docs")
    print(build.folder / "html" / "index.html")
    return 0

"""./lab plan: what each algorithm would take, by bin/plan, which asks no GPU and so is built beside the virtual ones."""
from typing import NoReturn

import process
from build import set_up
from call import Call


def main(call: Call) -> NoReturn:
    """Builds it, and leaves the rest to it."""
    if call.backend == "cuda":
        raise process.Refusal("nothing is run to predict: plan takes no --backend cuda")
    build = set_up("run", "virtual", call.yes)
    build.build("plan")
    process.become([*build.command("bin/plan"), *call.arguments])

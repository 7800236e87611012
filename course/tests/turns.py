"""Tests of every chapter that take long take turns, where the environment's OVERLAP_TURNS says so: its value is a day's number, and
a chapter's turn is every fourth day. Without it each call is a turn."""
import os
import sys

DAYS = 4


def end_unless_it_is_the_turn_of(chapter: str) -> None:
    """Exit status 77, and the reason, if it is another chapter's turn. `chapter`: NN_name."""
    day = os.environ.get("OVERLAP_TURNS", "")
    if day and int(chapter[:2]) % DAYS != int(day) % DAYS:
        print(f"not the turn of {chapter}: OVERLAP_TURNS is {day}, and a quarter of the chapters is tested each day")
        sys.exit(77)

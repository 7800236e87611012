"""What is special about the program 21_by_size, an experiment that compares its results itself."""
import chapter_program
from program_test_case import ONCE


class Program(chapter_program.ExperimentProgram):
    def test_wrong_result(self) -> None:
        for section in ("sizes", "norm"):
            with self.subTest(section):
                self.assert_fails(1, ("--gpus", "2", "--m", "4", "--n", "64", "--k", "8", *ONCE, "--only", section, "--corrupt"),
                                  r"wrong result: .*element \d+ (of \d+ )?is ")

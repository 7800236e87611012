"""What is special about the program 16_tensor_core_gemm."""
import tensor_core_program


class Program(tensor_core_program.TensorCoreProgram):
    help_says = ("by our own kernel",)
    # larger_tile and persistent are one kernel in different grids: with more tiles than multiprocessors their times differ.
    told_apart_by = ("Store", "Tile")
    kernels = {"without_tma": "multiply_without_tma<Tile = Tile<128, 128, 1>>",
               "one_stage": "multiply_one_stage<Tile = Tile<128, 128, 1>>", "ring_of_stages": "multiply_ring<Tile = Tile<128, 128, 4>>",
               "specialised": "multiply_specialised<Store = PlainStore, Tile = Tile<128, 128, 4>>",
               "larger_tile": "multiply_specialised<Store = PlainStore, Tile = Tile<128, 256, 4>>",
               "persistent": "multiply_specialised<Store = PlainStore, Tile = Tile<128, 256, 4>>",
               "tma_store": "multiply_specialised<Store = TmaStore, Tile = Tile<128, 256, 4>>",
               "fitting": "multiply_specialised<Store = TmaStore, Tile = Tile<128, 128, 6>>"}
    counted_call = "--m 384 --n 768 --k 24 --gpus 1"

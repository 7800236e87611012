"""The rules of sums of row-sparse gradients: the host waits for the GPU in between, so nothing overlaps."""
from tools.results.plan_machine import Machine
from tools.results.plan_model import Call, collective_us, kernel_us

SECTOR = 32  # bytes that memory transfers for a single number


def _frame(machine: Machine, call: Call) -> float:
    """Steps 1, 2 and 4 of all versions: coalesce, the lists, the sum. Kernels read and write the rank's rows three times to
    coalesce them and three times to move them to their places (once more than necessary, because rows are scattered), and fill
    the result's rows once. Four collectives send a few numbers or row numbers: records, lists, count, result."""
    moved = 6 * call.rows(call.card["entries"]) + call.rows(call.card["global"])
    steps = call.ranks - 1
    return call.frame_waits * machine.host_wait_us + moved / machine.memory_rate + \
        4 * collective_us(machine, call.ranks, steps, 0) + collective_us(machine, call.ranks, 2 * steps, call.bytes_out)


def _driven(machine: Machine, call: Call) -> float:
    """A call that the host drives: it launches kernels, and waits more often than the frame does."""
    return call.launches * machine.host_launch_us + (call.host_waits - call.frame_waits) * machine.host_wait_us


def _compared(machine: Machine, call: Call) -> float:
    return call.comparisons / machine.compare_rate


def search_by_host(machine: Machine, call: Call) -> float:
    """Row by row."""
    return _frame(machine, call) + max(_driven(machine, call), _compared(machine, call))


def search_by_graph(machine: Machine, call: Call) -> float:
    """A CUDA graph of so many kernels, which the cost card counts as one launch."""
    return _frame(machine, call) + _driven(machine, call) + max(call.nodes * machine.graph_node_us, _compared(machine, call))


def search_by_matrix(machine: Machine, call: Call) -> float:
    """Each kernel visits every pair; the first writes the matrix, the second reads it."""
    return _frame(machine, call) + _driven(machine, call) + \
        call.launches * max(_compared(machine, call), call.memory / machine.memory_rate)


def search_by_kernel(machine: Machine, call: Call) -> float:
    """Kernels that compare."""
    return _frame(machine, call) + _driven(machine, call) + _compared(machine, call)


def search_by_halves(machine: Machine, call: Call) -> float:
    """Each comparison reads a single number."""
    return _frame(machine, call) + _driven(machine, call) + SECTOR * call.comparisons / machine.memory_rate


def search_by_table(machine: Machine, call: Call) -> float:
    """Writes the places of all rows, and reads and writes the rank's own rows."""
    accesses = call.card["global"] + 2 * call.card["entries"]
    return _frame(machine, call) + _driven(machine, call) + SECTOR * accesses / machine.memory_rate


def dense_sum(machine: Machine, call: Call) -> float:
    """Coalesces, scatters and gathers rows; the table is filled before and read after."""
    moved = 6 * call.rows(call.card["entries"]) + 2 * call.rows(call.card["global"]) + 2 * call.memory
    return call.host_waits * machine.host_wait_us + moved / machine.memory_rate + \
        collective_us(machine, call.ranks, 2 * (call.ranks - 1), call.bytes_out)


def _row_plan(machine: Machine, call: Call) -> float:
    """The steps before the sums: coalesce reads and writes the rank's rows three times; the plan reads all messages twice,
    writes a place for each rank and row, and reads it."""
    ranks, size = call.ranks, call.message_bytes
    moved = 3 * call.rows(call.card["entries"]) + 2 * ranks * size + 2 * ranks * 4.0 * call.card["global"]
    return call.host_waits * machine.host_wait_us + moved / machine.memory_rate + \
        collective_us(machine, ranks, ranks - 1, (ranks - 1) * size)


def _meet(machine: Machine, call: Call) -> float:
    """All ranks wait for all others, by signals."""
    return machine.signal_us if call.ranks > 1 else 0


def _sums(call: Call, all_bytes: int) -> int:
    """Bytes of the sums, without those of the plan."""
    return all_bytes - (call.ranks - 1) * call.message_bytes


def planned_nccl(machine: Machine, call: Call) -> float:
    """A dense all-reduce of the rows with a gradient."""
    filled = call.rows(call.card["entries"]) + call.rows(call.card["global"])
    return _row_plan(machine, call) + kernel_us(machine, filled) + \
        collective_us(machine, call.ranks, 2 * (call.ranks - 1), _sums(call, call.bytes_out))


def planned_copies(machine: Machine, call: Call) -> float:
    """Copies to the owners, and from them: one for each other rank, one after the other."""
    ranks = call.ranks
    copies = 2 * (ranks - 1) * machine.push_us + _sums(call, call.bytes_out) / machine.link_rate
    added = call.rows(ranks * call.card["entries"] // ranks) + call.rows(call.card["global"] // ranks)
    return _row_plan(machine, call) + copies + 2 * _meet(machine, call) + kernel_us(machine, added)


def planned_pulls(machine: Machine, call: Call) -> float:
    """Each rank's kernel reads rows of the others between two barriers; afterwards sums in 16 bits are widened."""
    moved = max(_sums(call, call.bytes_in), _sums(call, call.bytes_out))
    written = 1.5 * call.rows(call.card["global"]) if call.widened else 0
    return _row_plan(machine, call) + 2 * _meet(machine, call) + call.launches * machine.launch_us + \
        moved / machine.link_rate + written / machine.memory_rate

"""The rules of dense calls: dependencies and overlap, from the first kernel's start to the last one's end."""
import math

from tools.results.plan_machine import Machine
from tools.results.plan_model import Call, Product, collective_us, filled_us, kernel_us, part_of, products_on_two_streams_us, products_us


def kernel(machine: Machine, call: Call) -> float:
    """One of the call's own kernels."""
    return kernel_us(machine, call.bytes)


def products(machine: Machine, call: Call) -> float:
    """One GEMM, however it is launched."""
    return products_us(machine, call.cut(1)) + (max(call.products, 1) - 1) * machine.launch_us


def collective(machine: Machine, call: Call) -> float:
    """One of NCCL's collectives, or several among which the messages are divided."""
    times = call.get("times", 1)
    return times * collective_us(machine, call.ranks, call.messages // times, call.bytes_out / times, call.get("mode", "plain"))


def trips(machine: Machine, call: Call) -> float:
    """One kernel in which the ranks wait for each other a number of times, one after the other, and read or write the bytes."""
    return machine.launch_us + (call.trips * machine.trip_us + call.bytes_out / machine.link_rate if call.bytes_out else 0)


def nccl_ring(machine: Machine, call: Call) -> float:
    """A ring of NCCL's sends and receives beside GEMMs, from which it takes multiprocessors."""
    leaves = call.ranks > machine.gpus_per_node  # through one network card of a node: the slowest step delays all
    rate = min(machine.send_rate, machine.network_rate) if leaves else machine.send_rate
    transfer = machine.send_us + (machine.network_us if leaves else 0) + call.message / rate
    alone = part_of(machine, call.cut())
    beside = part_of(machine, call.cut(), max(1, machine.multiprocessors - machine.nccl_blocks))
    now = here = 0.0
    for step in range(call.products):
        passes_on = step < call.messages
        now = max(now, here) + machine.launch_us + (beside if passes_on else alone).us
        if passes_on:
            here = (here if step else machine.event_us) + transfer
    return now


def copy_ring(machine: Machine, call: Call) -> float:
    """A ring of copies; the GEMM of a part waits for its shard. With two streams, another stream waits for the shards, and
    GEMMs fill each other's last waves."""
    part, two_streams = part_of(machine, call.cut()), call.get("streams", 1) == 2
    hop = machine.push_us + machine.signal_us + call.message / machine.link_rate

    def here(step: int) -> float:
        return machine.event_us + step * hop + (machine.event_us if two_streams else 0) if step else 0
    if two_streams:
        return filled_us(machine, part, call.products, machine.launch_us, here)
    now = 0.0
    for step in range(call.products):  # reading a signal takes a stream as long as waiting for it
        now = max(now + (machine.signal_us if step else 0), here(step)) + machine.launch_us + part.us
    return now


def pulls(machine: Machine, call: Call) -> float:
    """Pulls in turn between two barriers, after a copy of the shard that all others pull."""
    if call.messages == 0:
        return products_us(machine, call.cut())
    hop = machine.pull_us + call.message / machine.link_rate
    return kernel_us(machine, 2 * call.message) + machine.signal_us + filled_us(
        machine, part_of(machine, call.cut()), call.products, machine.launch_us,
        lambda step: machine.event_us + step * hop if step else 0) + machine.event_us + machine.signal_us


def _ready(machine: Machine, part: Product, step: int) -> float:
    """The time at which the other stream sees the result of this part."""
    return machine.launch_us + (step + 1) * part.work_us + step * machine.launch_us + machine.event_us


def send_and_sum(machine: Machine, call: Call) -> float:
    """Parts of the GEMM are sent when they are computed; all arrived parts are added once: all slots are read, and the result
    is written."""
    cut = call.cut()
    if call.messages == 0:
        return products_us(machine, cut)
    part, products_done = part_of(machine, cut), products_on_two_streams_us(machine, cut)
    added = float(call.size) * (call.ranks + 1) * -(-cut.shape.m // call.ranks) * cut.shape.n
    sent = 0.0  # the last of a rank's sends arrives last
    for i in range(call.messages):
        sent = max(sent, _ready(machine, part, i)) + machine.push_us + call.message / machine.link_rate
    all_here = max(sent + machine.signal_us, products_done + machine.event_us)
    return all_here + (kernel_us(machine, added) if call.launches > 0 else 0) + machine.event_us


def rotation(machine: Machine, call: Call) -> float:
    """Accumulators circulate around the ring, first filled with zeros or the first partial result. The kernel that adds stores
    to the next rank, or a copy follows it. It waits for its accumulator and for free multiprocessors, and then occupies them; a
    kernel that stores to another GPU, for as long as the link takes."""
    cut = call.cut()
    if call.messages == 0:
        return products_us(machine, cut)
    part, done, delay = part_of(machine, cut), products_on_two_streams_us(machine, cut), 0.0
    elements = float(-(-cut.shape.m // call.ranks)) * cut.shape.n
    accumulator = elements * call.accumulator_size
    over_the_link = accumulator / machine.link_rate
    copy = machine.push_us + over_the_link + machine.signal_us

    def next_wave(time: float) -> float:  # a running wave is not preempted
        if time >= done or part.wave_us <= 0 or not machine.whole_waves:
            return time
        return min(done, math.ceil(time / part.wave_us - 1e-9) * part.wave_us + machine.launch_us)
    here = machine.event_us + copy if call.zeros else 0.0  # when the accumulator of this step arrives
    memory = kernel_us(machine, (2 if call.stores else 3) * accumulator)
    adding = max(memory, machine.launch_us + over_the_link) if call.stores else memory
    for step in range(cut.parts):
        last = step == cut.parts - 1
        multiplied = done + machine.event_us if last else _ready(machine, part, step) + delay
        if step == 0 and not call.zeros:
            here = multiplied + copy
            continue
        adds = next_wave(max(multiplied, here) + machine.signal_us)
        if last:
            return adds + kernel_us(machine, 2 * accumulator + elements * call.size) + machine.event_us
        here = adds + adding + (machine.signal_us if call.stores else copy)
        done, delay = done + adding, delay + adding
    return here


def persistent(machine: Machine, call: Call, hops: bool = False) -> float:
    """One persistent kernel that computes tiles in the order in which their shards arrive from their owners."""
    shard, before_each = call.shard / machine.link_rate, machine.push_us + (machine.signal_us if hops else 0)
    behind = 0 if hops else machine.signal_us

    def here(step: int) -> float:
        return machine.event_us + step * (before_each + shard) + behind if step else 0
    cut = call.shards()
    return filled_us(machine, part_of(machine, cut), cut.parts, 0, here)


def hopping(machine: Machine, call: Call) -> float:
    """The same with shards that are passed on from rank to rank."""
    return persistent(machine, call, hops=True)


def two_level(machine: Machine, call: Call) -> float:
    """One persistent kernel, whose tiles wait for shards that are sent along a rail from node to node and then pushed to all
    GPUs of a node. NCCL occupies some multiprocessors."""
    of_a_node = min(call.ranks, call.card["gpus_per_node"])
    nodes, others = call.ranks // of_a_node, of_a_node - 1
    pushed = float(call.bytes_out - call.rail_bytes) / machine.link_rate
    push = machine.push_us + (pushed / (others * nodes) if others else 0)  # a node's shard, to one GPU of this node
    message = call.rail_bytes / call.rail_messages if call.rail_messages else 0
    hop = machine.send_us + machine.network_us + message / min(machine.send_rate, machine.network_rate)
    here = [0.0]  # in the order of arrival: the own node's shards, then the one along the rail and its node's
    free = machine.event_us  # when a node's copies of the earlier shards are done
    for node in range(nodes):
        along_the_rail = machine.event_us + node * hop + machine.signal_us
        if node > 0:
            here.append(along_the_rail)
            free = max(free, along_the_rail)
        for _ in range(others):
            free += push
            here.append(free + machine.signal_us)
    aside = max(1, machine.multiprocessors // call.rail_share) if nodes > 1 else 0
    cut = call.shards()
    return filled_us(machine, part_of(machine, cut, machine.multiprocessors - aside), cut.parts, 0, lambda arrival: here[arrival])


def stepwise(machine: Machine, call: Call) -> float:
    """One persistent kernel with a grid barrier in each step, which sends a shard while it multiplies it."""
    cut = call.shards()
    part = part_of(machine, cut)
    return machine.launch_us + (cut.parts - 1) * (max(part.us, call.shard / machine.link_rate) + machine.signal_us) + part.us


def scattered(machine: Machine, call: Call) -> float:
    """One persistent kernel that sends partial tiles from its epilogue, own tiles last, and adds those that arrive."""
    whole = part_of(machine, call.cut(1)).us
    if call.bytes_out == 0:
        return machine.launch_us + whole
    # The first tile is sent after one wave; from then on the link is busy until all tiles are sent.
    sent = part_of(machine, call.cut(call.ranks)).wave_us + call.bytes_out / machine.link_rate
    return machine.launch_us + max(whole, sent) + machine.signal_us + call.bytes_in / machine.memory_rate

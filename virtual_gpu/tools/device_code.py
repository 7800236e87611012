"""The rewriting of device code beyond single words: the variables of a GPU, and notes on code that behaves differently here.

  __device__ int x[4] = {1};       int x[4] __attribute__((section("vgpu_symbols"))) = {1};
  __device__ void f() { x[0]; }    void f() { auto& vgpu_at_x = x; { auto& x = ::vgpu::on_this_gpu(vgpu_at_x); { x[0]; }}}

The program's own variable only holds the initial values of the GPUs' copies. The compiler decides which variable a name means;
for a host variable, on_this_gpu() returns the variable itself.
"""

from typing import Dict, List, Set, Tuple

from cuda_syntax import Syntax, is_identifier

CLOSED = "}}"


class DeviceCode:
    """A part of rewrite.Rewriter."""

    tokens: Syntax
    edits: Dict[int, Tuple[int, str]]

    def __init__(self) -> None:
        self.symbols: Set[str] = set()  # the names of device variables
        self.notes: List[str] = []  # messages that the program prints when it starts
        self._done: Set[int] = set()  # bodies that have been opened

    def make_symbol(self, word: int, name: str, end: int) -> None:
        """Token `word`, __device__ or __constant__, declares variable `name`, whose declarator ends in front of token `end`."""
        tokens = self.tokens
        self.blank(word, word)
        declaration = tokens.words[tokens.declaration_start(word):end]
        if {"const", "constexpr"}.intersection(declaration) and "*" not in declaration:
            return  # all copies are the same
        self.symbols.add(name)
        if "extern" in declaration:
            return
        while tokens.word(end) == "[":
            end = tokens.match[end] + 1
        while True:
            last = tokens.starts[end - 1]
            stop, text = self.edits.get(last, (tokens.end(end - 1), tokens.words[end - 1]))
            self.edits[last] = (stop, text + ' __attribute__((section("vgpu_symbols")))')
            end = next((at for at in range(end, len(tokens.words)) if tokens.words[at] in (",", ";")
                        and tokens.parent[at] == tokens.parent[word]), len(tokens.words))
            if tokens.word(end) != ",":
                return
            end = tokens.variable_end(end + 1)  # T x, y;
            self.symbols.add(tokens.declared_name(end))
            while tokens.word(end) == "[":
                end = tokens.match[end] + 1

    def opening(self, body: int) -> Tuple[str, str]:
        """The text after the '{' and before the '}' of a function's body, so that the function uses its GPU's variables."""
        tokens = self.tokens
        if body in self._done or tokens.word(body) != "{" or tokens.match[body] < 0:
            return "", ""
        self._done.add(body)
        self._note_volatile(body)
        names = []
        for at in range(body + 1, tokens.match[body]):
            word = tokens.words[at]
            if word not in self.symbols or tokens.words[at - 1] in (".", "->"):
                continue
            if tokens.words[at - 1] == "::":  # an unqualified name may be shadowed, a qualified one may not
                first = tokens.callee_start(at + 1)
                self.edits[tokens.starts[first]] = (tokens.end(first), "::vgpu::on_this_gpu(" + tokens.words[first])
                self.replace(at, word + ")")
            elif word not in names:
                names.append(word)
        if not names:
            return "", ""
        outer = "".join(" auto& vgpu_at_%s = %s;" % (name, name) for name in names)
        inner = "".join(" [[maybe_unused]] auto& %s = ::vgpu::on_this_gpu(vgpu_at_%s);" % (each, each) for each in names)
        return outer + " {" + inner + " {", CLOSED

    def open_body(self, body: int) -> None:
        """Inserts this text into the body of a function that is not a kernel."""
        begin, end = self.opening(body)
        if begin:
            self.replace(body, "{" + begin)
            self.replace(self.tokens.match[body], end + "}")

    def _note_volatile(self, body: int) -> None:
        """Notes a reduction of volatile words that relies on warps in lock step: v[i] += v[i + 32]; without __syncwarp."""
        tokens, end = self.tokens, self.tokens.match[body]
        words = tokens.words
        if "__syncwarp" in words[body:end] or not ("volatile" in words[tokens.declaration_start(body):end]
                                                   or "volatile" in words[max(0, body - 40):body]):
            return
        for at in range(body + 1, end - 3):
            name, index = words[at], tokens.match[at + 1]
            if words[at + 1] != "[" or not is_identifier(name) or words[index + 1] not in ("=", "+") or index < 0:
                continue
            stop = next((to for to in range(index, end) if words[to] == ";"), end)
            own = words[at + 2:index]
            reads_itself = any(words[to:to + 2] == [name, "["] and words[to + 2:tokens.match[to + 1]] != own
                               for to in range(index + 1, stop - 1))
            if reads_itself and self._is_volatile(name, body) and "__syncthreads" not in words[stop:end]:
                self.notes.append("%s:%d: this reduction without __syncwarp counts on the lanes of a warp to run in lock step, "
                                  "which no GPU since Volta promises and virtual GPUs do not do: sums are wrong here. Put "
                                  "__syncwarp() between the steps" % tokens.place(at))
                return

    def _is_volatile(self, name: str, body: int) -> bool:
        """Whether the nearest declaration of `name` before or in the function says volatile."""
        tokens = self.tokens
        for at in range(tokens.match[body], max(0, body - 60), -1):
            before = tokens.words[at - 1]
            if tokens.words[at] == name and (before in ("*", "__restrict__") or is_identifier(before)):
                if "volatile" in tokens.words[max(0, at - 6):at]:
                    return True
        return False

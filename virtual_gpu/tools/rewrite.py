"""Turns preprocessed CUDA C++ into C++ for virtual GPUs: rewrite(text) -> text.

Three constructs of CUDA are not C++, and are translated to it:

  kernel<<<grid, block>>>(x);    (::vgpu::configure_launch(grid, block), kernel(x));
  __global__ void k(int n) {..}  void k(int n) { ::vgpu::launch_kernel(name, bound, [=]() mutable -> void {..}); }
                                 (after the lambda, the parameters that are pointers: {"p", p}, ...)
  __shared__ int a[4], b;        a local struct of a and b, which ::vgpu::shared<struct>() finds in the block's memory

A launch stays a real call, so arguments convert, templates deduce and default arguments apply as usual. Because the text
is preprocessed, kernels in headers and macros work. No line is added or removed, and line markers stay: errors, the
debugger and race reports show lines of the .cu file. Constructs that virtual GPUs do not support are refused by name.
"""

from typing import Dict, List, NoReturn, Sequence, Tuple

from cuda_syntax import Syntax, is_identifier
from cuda_tokens import TOKEN
from device_code import DeviceCode

VARIABLE_WORDS = ("__constant__", "__managed__")
# Calls that take a kernel as a const void*.
KERNEL_CALLS = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "cudaFuncSetAttribute", "cudaFuncGetAttributes",
                "cudaFuncSetCacheConfig", "cudaOccupancyMaxActiveBlocksPerMultiprocessor", "cudaOccupancyMaxActiveClusters",
                "cudaOccupancyMaxPotentialBlockSize")
FUNCTION_WORDS = ("__device__", "__host__", "__global__", "__noinline__", "__grid_constant__")
ASM_WORDS = ("asm", "__asm__", "__asm")
WANTED = frozenset(("<<<", "__shared__") + VARIABLE_WORDS + FUNCTION_WORDS + ASM_WORDS + KERNEL_CALLS)
POINTER_QUALIFIERS = frozenset(("const", "volatile", "__restrict__", "__restrict"))
# Words with which a parameter's declaration without a name may end.
ALIGNMENT_WORDS = frozenset(("alignas", "__align__", "__attribute__"))


class Refusal(Exception):
    """The unit cannot be compiled for virtual GPUs. str() is the message: 'file:line: error: sentence'."""


def flatten(text: str) -> Tuple[str, str]:
    """Splits text into (its tokens on one line, its line breaks and line markers)."""
    if "\n" not in text:
        return text, ""
    line, breaks, end = [], [], 0
    for token in TOKEN.finditer(text):
        gap = text[end:token.start()]
        breaks.append("\n" * gap.count("\n"))
        if token.lastgroup in ("directive", "comment"):
            breaks.append(token.group())
        else:
            line.append((" " if gap and line else "") + token.group())
        end = token.end()
    return "".join(line), "".join(breaks)


class Rewriter(DeviceCode):
    """Rewrites one unit. Handlers examine tokens only, and collect edits: start -> (end, new text)."""

    def __init__(self, text: str):
        super().__init__()
        self.tokens = Syntax(text, WANTED)
        self.edits: Dict[int, Tuple[int, str]] = {}
        self.shared_names: Dict[Tuple[str, int], int] = {}

    def run(self) -> str:
        """The rewritten unit. Throws Refusal."""
        for start, end in self.tokens.pragmas:
            self.edits[start] = (end, "")
        for index in self.tokens.found:  # Left to right: words in a launch's callee are rewritten before it.
            word = self.tokens.words[index]
            if word == "<<<":
                self.launch(index)
            elif word == "__global__":
                self.kernel(index)
            elif word == "__shared__":
                self.shared(index)
            elif word in ASM_WORDS:
                if index not in self.tokens.in_macro:
                    self.refuse(index, "inline PTX is not supported on virtual GPUs")
            elif word == "__noinline__":
                # Inside __attribute__((...)) and [[gnu::...]] the word is g++'s own.
                if self.tokens.word(index - 1) not in ("(", ",", "::"):
                    self.replace(index, "__attribute__((noinline))")
            elif word in KERNEL_CALLS:
                self.strip_casts(index + 1)
            else:
                self.execution_space(index)
        return self.rendered(0, len(self.tokens.text)) + self.noted()

    def noted(self) -> str:
        """The notes, as code that prints them when the program starts."""
        return "".join('namespace { [[maybe_unused]] const bool vgpu_note_%d = ::vgpu::program_note("%s"); }'
                       % (number, note.replace("\\", "\\\\").replace('"', '\\"')) for number, note in enumerate(self.notes))

    # Edits

    def refuse(self, index: int, sentence: str) -> NoReturn:
        """Refuses the unit, with the line of token `index`."""
        raise Refusal("%s:%d: error: %s" % (self.tokens.place(index) + (sentence,)))

    def replace(self, index: int, new: str) -> None:
        """Replaces one token by `new`."""
        self.edits[self.tokens.starts[index]] = (self.tokens.end(index), new)

    def blank(self, first: int, last: int) -> None:
        """Blanks tokens [first, last]; the rest of the line keeps its columns."""
        for index in range(first, last + 1):
            self.replace(index, " " * len(self.tokens.words[index]))

    def rendered(self, start: int, end: int) -> str:
        """Text [start, end) with the edits made so far."""
        parts, position = [], start
        for begin in sorted(key for key in self.edits if start <= key < end):
            stop, new = self.edits[begin]
            parts += (self.tokens.text[position:begin], new)
            position = stop
        return "".join(parts) + self.tokens.text[position:end]

    def plain(self, first: int, last: int) -> str:
        """Tokens [first, last] on one line, with the edits made so far."""
        return flatten(self.rendered(self.tokens.starts[first], self.tokens.end(last)))[0] if first <= last else ""

    # Kernels

    def kernel(self, index: int) -> None:
        """Strips __global__; a definition's body becomes a lambda that the launch passes to the GPU."""
        tokens = self.tokens
        first = tokens.declaration_start(index)
        parameters = tokens.parameter_list(index)
        if parameters < 0 or tokens.match[parameters] < 0:
            self.refuse(index, "__global__ stands before something that is not a function")
        name = tokens.declared_name(parameters)
        head = tokens.words[first:parameters]
        if "void" not in head:
            self.refuse(index, "kernel '%s' must return void" % name)
        body = tokens.body(tokens.match[parameters] + 1)
        if tokens.scope(index) == "class" and ("friend" not in head or tokens.word(body) == "{"):
            self.refuse(index, "kernel '%s' is a member of a class or defined in a friend declaration "
                        "(CUDA allows only functions of a namespace)" % name)
        bound, cluster = "0", ""
        for at in range(first, body):
            if tokens.words[at] == "__global__":
                self.blank(at, at)
            elif tokens.words[at] == "__launch_bounds__" and tokens.word(at + 1) == "(":
                bound = self.plain(at + 2, tokens.commas(at + 2, tokens.match[at + 1])[0] - 1)
                self.blank(at, tokens.match[at + 1])
            elif tokens.words[at] == "__cluster_dims__" and tokens.word(at + 1) == "(":
                cluster = self.plain(at + 2, tokens.match[at + 1] - 1)
                self.blank(at, tokens.match[at + 1])
        self.refuse_exceptions(tokens.match[parameters] + 1, "kernel '%s'" % name)
        if cluster:
            bound = "{%s, %s}" % (bound, cluster)
        if tokens.word(body) == "{" and tokens.match[body] >= 0:  # The compiler reports unbalanced braces.
            begin, end = self.opening(body)
            self.replace(body, "{ ::vgpu::launch_kernel(__PRETTY_FUNCTION__, %s, [=]() mutable -> void {%s" % (bound, begin))
            pointers = ", ".join('{"%s", %s}' % (name, name) for name in self.pointers(parameters))
            self.replace(tokens.match[body], "%s}%s); }" % (end, ", {%s}" % pointers if pointers else ""))

    def refuse_exceptions(self, first: int, function: str) -> None:
        """Refuses throw and try in the device function whose parameters end before token `first`, as nvcc does.

        An exception would find no handler on the stack of a CUDA thread, or unwind it while other threads are suspended.
        """
        tokens = self.tokens
        body = tokens.body(first)
        if tokens.word(body) != "{" or tokens.match[body] < 0:
            return
        for at in range(first, tokens.match[body]):
            if tokens.words[at] in ("throw", "try"):
                self.refuse(at, "%s uses exceptions ('%s'): not supported in device code" % (function, tokens.words[at]))

    def pointers(self, parameters: int) -> List[str]:
        """The names of the parameters declared as T* name. (Other ways to pass a pointer, and packs, are left out.)"""
        tokens, names = self.tokens, []
        cuts = [parameters] + tokens.commas(parameters + 1, tokens.match[parameters])
        for first, end in ((a + 1, b) for a, b in zip(cuts, cuts[1:])):
            words = tokens.words[first:end]
            words = words[:words.index("=")] if "=" in words else words
            name = words.pop() if words and is_identifier(words[-1]) else ""
            while words and words[-1] in POINTER_QUALIFIERS:
                words.pop()
            if name and name not in POINTER_QUALIFIERS and words[-1:] == ["*"] and not {"(", "..."} & set(words):
                names.append(name)
        return names

    # Launches

    def launch(self, index: int) -> None:
        """callee<<<configuration>>>(arguments): configures the launch, then makes a real call."""
        tokens = self.tokens
        if tokens.word(index - 1) == "operator":
            return
        first = tokens.callee_start(index)
        if first == index or tokens.words[first:index] == ["(", ")"]:
            self.refuse(index, "a launch needs a kernel in front of '<<<'")
        callee = self.plain(first, index - 1)
        close, count = tokens.configuration_end(index)
        if close < 0:
            self.refuse(index, "the launch of '%s' has no '>>>'" % callee)
        if not 2 <= count <= 4:
            self.refuse(index, "the launch of '%s' needs grid, block and at most shared memory and stream "
                        "between '<<<' and '>>>'" % callee)
        if tokens.word(close + 3) != "(" or tokens.match[close + 3] < 0:
            self.refuse(index, "the launch of '%s' has no arguments in parentheses behind '>>>'" % callee)
        # The callee moves after the configuration. Its line breaks stay at their place, so that all later lines keep
        # their numbers.
        start, end = tokens.starts[first], tokens.end(index - 1)
        _, breaks = flatten(self.rendered(start, end))
        for moved in [key for key in self.edits if start <= key < end]:
            del self.edits[moved]
        self.edits[start] = (end, "(" + breaks + "::vgpu::configure_launch")
        self.replace(index, "(")
        self.edits[tokens.starts[close]] = (tokens.end(close + 2), "), " + callee)
        self.replace(tokens.match[close + 3], "))")

    def strip_casts(self, opener: int) -> None:
        """Arguments (void*)kernel and (const void*)kernel become the kernel, whose type has its parameters."""
        tokens = self.tokens
        if tokens.word(opener) != "(" or tokens.match[opener] < 0:
            return
        for cut in [opener] + tokens.commas(opener + 1, tokens.match[opener])[:-1]:
            cast = cut + 1 + (tokens.words[cut + 1:cut + 3] == ["(", "const"])
            if tokens.words[cast + 1:cast + 4] == ["void", "*", ")"] and tokens.words[cut + 1] == "(":
                self.blank(cut + 1, cast + 3)

    # Shared memory

    def shared(self, index: int) -> None:
        """__shared__ declarations: one struct per declaration, and a reference per variable."""
        tokens = self.tokens
        first, end = tokens.declaration_start(index), index
        while tokens.word(end) not in (";", ")", "]", "}", ""):
            end = max(end, tokens.match[end]) + 1
        names = [self.declarator(a, b) for a, b in self.declarators(first, end)]
        name = names[0]
        if tokens.word(end) != ";":
            self.refuse(index, "the declaration of __shared__ variable '%s' does not end with ';'" % name)
        is_dynamic = "extern" in tokens.words[first:end] and tokens.words[end - 3:end] == [name, "[", "]"]
        if is_dynamic and tokens.scope(index) == "namespace":
            return self.file_shared(first, end, name)
        if not tokens.in_function(index) or tokens.scope(index) == "class":
            self.refuse(index, "__shared__ variable '%s' stands outside of a function: not supported on virtual "
                        "GPUs (declare it in the kernel)" % name)
        dynamic = "extern" in tokens.words[first:end]
        for at in range(first, end):
            word = tokens.words[at]
            if word in ("__shared__", "static", "extern"):
                self.blank(at, at)
            elif dynamic and word in ALIGNMENT_WORDS and tokens.word(at + 1) == "(":
                self.blank(at, tokens.match[at + 1])
        if dynamic:
            self.dynamic_shared(index, first, end, names)
            return
        number = self.shared_number(index)
        start = tokens.starts[first]
        stop, text = self.edits.get(start, (start, ""))
        self.edits[start] = (stop, "struct vgpu_shared_%s { %s" % (number, text))
        references = "".join(" auto& %s = vgpu_block_%s.%s;" % (name, number, name) for name in names)
        self.replace(end, "; }; auto& vgpu_block_%s = ::vgpu::shared<vgpu_shared_%s>(\"%s\");%s"
                     % (number, number, ", ".join(names), references))

    def dynamic_shared(self, index: int, first: int, end: int, names: List[str]) -> None:
        """extern __shared__ T s[]: a reference to the block's dynamic shared memory."""
        tokens, name = self.tokens, names[0]
        if len(names) != 1 or tokens.words[end - 3:end] != [name, "[", "]"]:
            self.refuse(index, "extern __shared__ variable '%s' must be declared alone, and as an array without a "
                        "size" % name)
        element = self.plain(first, end - 4).strip()
        self.replace(end - 3, "(&%s)" % name)
        self.replace(end, " = *reinterpret_cast<%s (*)[]>(::vgpu::dynamic_shared());" % element)

    def file_shared(self, first: int, end: int, name: str) -> None:
        """extern __shared__ T s[]; outside of functions: functions that name it use the block's memory."""
        tokens = self.tokens
        for at in range(first, end):
            if tokens.words[at] in ("__shared__", "static", "extern"):
                self.blank(at, at)
            elif tokens.words[at] in ALIGNMENT_WORDS and tokens.word(at + 1) == "(":
                self.blank(at, tokens.match[at + 1])
        element = self.plain(first, end - 4).strip()
        if first < end - 3:
            self.blank(first, end - 4)
        self.symbols.add(name)
        self.replace(end - 3, "[[maybe_unused]] static ::vgpu::FileShared<%s> %s" % (element, name))
        self.blank(end - 2, end - 1)

    def shared_number(self, index: int) -> str:
        """The declaration's line: the same in every unit that includes a header, and unique in a function."""
        place = self.tokens.place(index)
        self.shared_names[place] = count = self.shared_names.get(place, 0) + 1
        return str(place[1]) if count == 1 else "%d_%d" % (place[1], count)

    def declarators(self, first: int, end: int) -> List[Tuple[int, int]]:
        """[first, end) split at its commas."""
        cuts = [first - 1] + self.tokens.commas(first, end)
        return [(a + 1, b) for a, b in zip(cuts, cuts[1:])]

    def declarator(self, first: int, end: int) -> str:
        """The name that declarator [first, end) declares. Refuses initialisers."""
        tokens, at = self.tokens, end - 1
        while at > first and tokens.words[at] in ("]", ")"):
            opener = tokens.match[at]
            before = tokens.word(opener - 1)
            if tokens.words[at] == ")" and before not in ALIGNMENT_WORDS:
                if tokens.word(opener + 1) == "*":  # T (*name)[4]
                    return self.declarator(opener + 1, at)
                if before != ")":
                    self.refuse_initialiser(first, opener)
            at = opener - (2 if before in ALIGNMENT_WORDS else 1)
        initialiser = next((i for i in range(first, end) if tokens.words[i] == "="
                            and tokens.parent[i] == tokens.parent[first]), -1)
        if initialiser >= 0:
            self.refuse_initialiser(first, initialiser)
        if tokens.words[at] == "}":
            self.refuse_initialiser(first, tokens.match[at])
        if not is_identifier(tokens.words[at]):
            self.refuse(first, "cannot read this __shared__ declaration")
        return tokens.words[at]

    def refuse_initialiser(self, first: int, end: int) -> NoReturn:
        """Refuses `T name = ...`, `T name(...)` and `T name{...}`."""
        self.refuse(first, "__shared__ variable '%s' has an initialiser (CUDA allows none)"
                    % self.declarator(first, end))

    # Device functions and variables

    def execution_space(self, index: int) -> None:
        """Strips __device__ and __host__ from functions and lambdas; gives each GPU its own device variables."""
        tokens = self.tokens
        word, before = tokens.words[index], index - 1
        while tokens.word(before) in FUNCTION_WORDS:
            before -= 1
        is_lambda = tokens.word(before) == "]" and not tokens.is_attribute(before)
        after = index + 1
        while tokens.word(after) in FUNCTION_WORDS:
            after += 1
        on_host = "__host__" in tokens.words[before + 1:after]
        if is_lambda and not on_host:
            self.refuse_exceptions(after, "a __device__ lambda")
        if is_lambda:
            self.open_body(tokens.body(tokens.match[after] + 1 if tokens.word(after) == "(" else after))
        if word in ("__host__", "__grid_constant__") or is_lambda:
            self.blank(index, index)
            return
        declaration = tokens.words[tokens.declaration_start(index):index]
        parameters = tokens.parameter_list(index + 1)
        opened = tokens.word(parameters + 1) if parameters >= 0 else ""
        # T x; T (*x)(int); T x(1); but not T f(), T f(int)
        is_variable = not (is_identifier(opened) or opened in (")", "[", "::", "."))
        end = parameters if opened else tokens.variable_end(index)
        declaration += tokens.words[index:end]
        if "__shared__" in declaration:
            self.blank(index, index)
            return
        for kind in VARIABLE_WORDS + (word,):
            if kind in declaration and (is_variable or kind in VARIABLE_WORDS):
                return self.variable(index, kind, end, tokens.word(parameters + 2) if opened == "*" else "")
        if parameters >= 0 and not on_host:
            self.refuse_exceptions(tokens.match[parameters] + 1,
                                   "__device__ function '%s'" % tokens.declared_name(parameters))
        self.blank(index, index)
        if parameters >= 0:
            self.open_body(tokens.body(tokens.match[parameters] + 1))

    def variable(self, index: int, kind: str, end: int, function_pointer: str) -> None:
        """A device variable, whose name ends before token `end`."""
        tokens, name = self.tokens, function_pointer or self.tokens.declared_name(end)
        first = tokens.declaration_start(index)
        if kind == "__managed__":  # the host and the GPUs share this memory, like all memory here
            self.blank(index, index)
            return
        if tokens.in_function(index) or tokens.scope(index) == "class" or tokens.word(first) == "template":
            self.refuse(index, "%s variable '%s' in a function, a class or a template: not supported on virtual GPUs (declare "
                        "it in a namespace)" % (kind, name))
        if function_pointer:
            end = tokens.match[tokens.match[end] + 1] + 1
        if name in self.symbols and tokens.starts[end - 1] in self.edits:
            self.blank(index, index)  # `static __device__ __constant__`: rewritten at its other word
            return
        self.make_symbol(index, name, end)


def rewrite(text: str, notes: Sequence[str] = ()) -> str:
    """Returns preprocessed C++ with the same lines for preprocessed CUDA C++; the program prints the notes. Throws Refusal."""
    rewriter = Rewriter(text)
    rewriter.notes += notes
    return rewriter.run()

"""The rewriter's queries about CUDA's syntax: the start of a declaration, the expression that a launch calls, ...

Each query walks over tokens and skips brackets. This is not a parser: it relies on the usual form of CUDA code, and a
wrong guess ends in a refusal or in an error of the compiler.
"""

from typing import Dict, List, Tuple

from cuda_tokens import CLOSERS, OPENERS, Tokens, is_identifier

# Words whose parentheses are part of a declaration's specifiers, and never its parameter list.
WORDS_WITH_PARENTHESES = frozenset(
    "alignas __align__ __attribute__ decltype explicit noexcept requires __launch_bounds__ __cluster_dims__".split())
CLASS_KEYS = frozenset(("class", "struct", "union"))
# Words that may precede a launch without being part of the kernel's name.
STATEMENT_WORDS = frozenset("return else do case goto co_return co_yield throw new delete sizeof operator".split())
WORDS_BEFORE_CONDITION = frozenset(("if", "while", "for", "constexpr"))


class Syntax(Tokens):
    """The tokens of a unit, with queries about their syntax. Indices are of tokens; -1 means none."""

    def __init__(self, text: str, wanted: frozenset):
        super().__init__(text, wanted)
        self._scopes: Dict[int, str] = {}

    def is_attribute(self, close: int) -> bool:
        """True if the ']' at `close` ends a [[...]]."""
        return (self.word(close - 1) == "]" and self.match[close] >= 0
                and self.match[close - 1] == self.match[close] + 1)

    def declaration_start(self, index: int, through_bases: bool = False) -> int:
        """First token of the declaration that token `index` belongs to.

        `through_bases` continues across ':', which the head of a class may contain.
        """
        stops = (";", "{", "}", "(") if through_bases else (";", "{", "}", "(", ":")
        index -= 1
        while index >= 0 and self.words[index] not in stops:
            word, before = self.words[index], index
            if word == "]":
                before = self.match[index]
            elif word == ")":
                before = self.match[index] - 1
                if self.word(before) not in WORDS_WITH_PARENTHESES:
                    break
            elif word == ">":
                before = self.open_angle(index)
            index = before - 1 if before >= 0 else index - 1
        return index + 1

    def scope(self, index: int) -> str:
        """The innermost scope of token `index`: "function", "class" or "namespace"."""
        opener = self.parent[index]
        while opener >= 0 and self.words[opener] != "{":
            opener = self.parent[opener]
        return self._kind_of_brace(opener) if opener >= 0 else "namespace"

    def in_function(self, index: int) -> bool:
        """True if a function's body is open around token `index`."""
        opener = self.parent[index]
        while opener >= 0:
            if self.words[opener] == "{" and self._kind_of_brace(opener) == "function":
                return True
            opener = self.parent[opener]
        return False

    def _kind_of_brace(self, brace: int) -> str:
        """The kind of scope that a '{' opens, from the words before it."""
        if brace not in self._scopes:
            head = self.words[self.declaration_start(brace, through_bases=True):brace]
            if "namespace" in head or (len(head) > 1 and head[-2] == "extern" and head[-1].startswith('"')):
                kind = "namespace"
            else:
                kind = "class" if CLASS_KEYS.intersection(head) else "function"
            self._scopes[brace] = kind
        return self._scopes[brace]

    def parameter_list(self, index: int) -> int:
        """The '(' of the parameters of the function that is declared from token `index` on; -1 if it is not a function."""
        while index < len(self.words):
            word, jump = self.words[index], index
            if word == "(":
                if self.words[index - 1] not in WORDS_WITH_PARENTHESES:
                    return index
                jump = self.match[index]
            elif word == "[" and self.word(index + 1) == "[":
                jump = self.match[index]
            elif word == "<":
                jump = self.close_angle(index)
            elif word == "operator":
                return next((at for at in range(index, len(self.words)) if self.words[at] == "("), -1)
            elif word in CLOSERS or word in OPENERS or word in (";", "=", ","):
                return -1
            index = max(index, jump) + 1
        return -1

    def body(self, index: int) -> int:
        """The token that begins the body or the end of a function: '{', ';', '=', ... Its parameters end before `index`."""
        while self.word(index) not in ("{", ";", "=", "}", ""):
            index = max(index, self.match[index]) + 1
        return index

    def declared_name(self, end: int) -> str:
        """The name that ends before token `end`, without template arguments."""
        index = end - 1
        if self.word(index) == ">":
            index = self.open_angle(index) - 1
        return self.word(index)

    def commas(self, first: int, end: int) -> List[int]:
        """The commas of [first, end) outside of brackets and template lists, and `end`."""
        found, at = [], first
        while at < end:
            word = self.words[at]
            if word in OPENERS:
                at = max(at, self.match[at])
            elif word == "<":
                close = self.close_angle(at)
                at = close if at < close < end else at
            elif word == ",":
                found.append(at)
            at += 1
        return found + [end]

    def variable_end(self, index: int) -> int:
        """The end of the name of the variable that is declared at token `index`."""
        while self.word(index) not in (";", "=", ",", "{", "}", ")", ""):
            if self.words[index] == "[" and self.word(index + 1) != "[":
                break
            jump = self.close_angle(index) if self.words[index] == "<" else self.match[index]
            index = max(index, jump) + 1
        return index

    def callee_start(self, index: int) -> int:
        """First token of the postfix expression that ends before token `index`; `index` if there is none."""
        while True:
            at = index - 1
            if self.word(at) == ">":
                at = self.open_angle(at) - 1
            word = self.word(at) if at >= 0 else ""
            if word in (")", "]"):
                if self.match[at] < 0:
                    return index
                index = self.match[at]
                before, opener = self.word(index - 1), self.match[index - 1]
                # if (x) (*kernel)<<<...>>>: the first parentheses belong to the statement.
                if before == ")" and self.word(opener - 1) in WORDS_BEFORE_CONDITION:
                    return index
                if before == "]" and self.is_attribute(index - 1):
                    return index
                continue
            if not word or not is_identifier(word) or word in STATEMENT_WORDS:
                return index
            index = at
            if self.word(at - 1) == "template":
                index = at - 1
            before = self.word(index - 1)
            if before not in ("::", ".", "->"):
                return index
            index -= 1
            if before == "::" and self.word(index - 1) in (")", "]"):
                return index  # if (x) ::kernel<<<...>>>

    def configuration_end(self, index: int) -> Tuple[int, int]:
        """(first '>' of the '>>>' that ends the launch's configuration, or -1; number of its arguments)."""
        fallback = (-1, 0)
        depth = commas = all_commas = 0  # depth: template lists open
        at = index + 1
        while at < len(self.words):
            word = self.words[at]
            if word in OPENERS and self.match[at] >= 0:
                at = self.match[at]
            elif word in OPENERS or word in CLOSERS or word in (";", "<<<"):
                break
            elif word == "<" and is_identifier(self.words[at - 1]):
                depth += 1
            elif word == ",":
                commas += depth == 0
                all_commas += 1
            elif word == ">":
                run = self.adjacent_closers(at)
                if run >= 3 and run > depth:  # more than the open template lists: the last three end the launch
                    plain = depth == run - 3
                    return at + run - 3, self.arguments(index, at, commas if plain else all_commas)
                if run >= 3 and fallback[0] < 0:
                    fallback = (at + run - 3, self.arguments(index, at, all_commas))
                depth = max(0, depth - run)
                at += run - 1
            at += 1
        return fallback

    def arguments(self, opener: int, closer: int, commas: int) -> int:
        """Number of arguments between two tokens; 0 if one of them is empty."""
        words = self.words
        return 0 if words[opener + 1] == "," or words[closer - 1] == "," else commas + 1

    def adjacent_closers(self, index: int) -> int:
        """The number of adjacent '>' from token `index` on, without a space between them; '>> >' counts as three."""
        run = self._without_spaces(index)
        last = index + run
        spaced = run == 2 and self.word(last) == ">" and not self.text[self.end(last - 1):self.starts[last]].strip(" \t")
        return 3 if spaced and self._without_spaces(last) == 1 else run

    def _without_spaces(self, index: int) -> int:
        run = 1
        while self.word(index + run) == ">" and self.starts[index + run] == self.starts[index] + run:
            run += 1
        return run

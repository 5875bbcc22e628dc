#!/usr/bin/env python3
"""Prints the places where opdispatch.h breaks the rules of its house style (see src/README.md), one per line.

usage: python3 tests/dialect.py [--names PERCENT] [FILE]

These rules are checked in the implementation.  The bodies of if, else, for, while and do have braces.  A line has one
statement.  A block of several lines begins and ends on lines of its own.  Comments are /* text */.  A variable is
declared by the statement that gives it its first value, and a counter in the head of its for.  One line may contain: a
block or a function of one statement, `case X: statement; break;`, structs and initialisers, the fields of a card
(op->x = ...;).  With --names, the script only checks that at most PERCENT of all names in the file have one letter.  If
there are more, it prints the rooms with most of them.
"""
import argparse
import bisect
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKEN = re.compile(r'(?P<note>/\*.*?\*/|//[^\n]*)|(?P<text>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\')|(?P<name>[A-Za-z_]\w*)'
                   r'|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<mark>->|&&|\|\||\S)', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#(?:/\*.*?\*/|\\\n|[^\n])*', re.M | re.S)
WORDS = set('''auto bool break case char const continue default do double else enum extern false float for goto if inline int
long register return short signed sizeof static struct switch true typedef union unsigned void volatile while class
catch delete explicit friend namespace new operator private protected public template this throw try typename using
virtual static_cast reinterpret_cast const_cast decltype constexpr noexcept nullptr int8_t int16_t int32_t int64_t
uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t intptr_t uintptr_t va_list FILE _Generic _Static_assert'''.split())

TYPES = set('''bool char const double float int long short signed struct unsigned void int8_t int16_t int32_t int64_t
uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t intptr_t uintptr_t FILE'''.split())


class Source:
    def __init__(self, text):
        self.text = text
        self.starts = [0] + [m.end() for m in re.finditer('\n', text)]

    def line(self, at):
        return bisect.bisect_right(self.starts, at)

    def tokens(self, begin, end, notes=False):
        """Returns (text, position, line, last line) of all tokens except comments."""
        return [(m.group(), m.start(), self.line(m.start()), self.line(m.end() - 1))
                for m in TOKEN.finditer(self.text, begin, end) if notes or m.lastgroup != 'note']


def without_directives(text):
    """Returns the text with blanks instead of directives.  Bodies of macros are checked separately."""
    blank = lambda m: re.sub(r'[^\n]', ' ', m.group())
    return DIRECTIVE.sub(blank, text)


def past(tokens, k):
    """Returns the index after the bracket that closes the one at k."""
    level = 0
    while k < len(tokens):
        level += (tokens[k][0] in '([{') - (tokens[k][0] in ')]}')
        k += 1
        if level == 0:
            break
    return k


def braces(tokens, open_end):
    """Yields the lines of bodies without braces.  open_end: the tokens are a macro's, and its user writes the last
    body."""
    tails = set()                                      # the whiles that end a do
    for k, t in enumerate(tokens):
        if t[0] == 'do' and k + 1 < len(tokens) and tokens[k + 1][0] == '{':
            tails.add(past(tokens, k + 1))
    for k, t in enumerate(tokens):
        if t[0] in ('if', 'for', 'while') and k + 1 < len(tokens) and tokens[k + 1][0] == '(' and k not in tails:
            body = past(tokens, k + 1)
        elif t[0] in ('else', 'do'):
            body = k + 1
        else:
            continue
        if body >= len(tokens):
            if not open_end:
                yield t[2], 'nothing follows ' + t[0]
        elif tokens[body][0] != '{' and not (t[0] == 'else' and tokens[body][0] == 'if'):
            if not open_end or has_statement(tokens, body):
                yield t[2], t[0] + ' without braces'


def has_statement(tokens, k):
    """Returns True if a statement ends or a block begins after k.  In a macro that consists only of heads, none
    does."""
    while k < len(tokens):
        if tokens[k][0] in ';{':
            return True
        k = past(tokens, k) if tokens[k][0] in '([' else k + 1
    return False


def is_code(tokens, k, outer):
    """Returns True if the { at k begins statements, inside of code (outer) or at the top level."""
    before, head = tokens[k - 1][0] if k else ';', k - 1
    while head > 0 and tokens[head - 1][0] not in ';{}':
        head -= 1
    while re.match(r'OPDI_[A-Z]+_(BEGIN|END)$', tokens[head][0]):     # skip a compile mode
        head += 1
    if tokens[head][0] in ('typedef', 'struct', 'union', 'enum'):
        return False
    if before in ')' or (outer and before in ('else', 'do', ';', '{', '}', ':')):
        return True
    names = [x[0] for x in tokens[max(0, k - 3):k]]
    return bool(outer and re.match(r'\w+$', before) and not {'struct', 'union', 'enum', 'return'} & set(names))


def statements(tokens):
    """Yields the lines that have more than one statement."""
    stack, depth, first, bodies = [], 0, 0, 0          # stack: (is code, line of {, something follows on this line)
    for k, (t, at, line, _) in enumerate(tokens):
        if k == 0 or tokens[k - 1][3] != line:
            first = t
            table = t in ('case', 'default') or (t == 'op' and tokens[k + 1:k + 2] and tokens[k + 1][0] == '->')
        follows = tokens[k + 1][0] if k + 1 < len(tokens) and tokens[k + 1][2] == line else ''
        code = bool(stack) and stack[-1][0]
        if t in '([':
            depth += 1
        elif t in ')]':
            depth -= 1
        elif t == '{':
            stack.append((is_code(tokens, k, code) and depth == 0, line, bool(follows) and follows != '}'))
            depth, stack[-1:] = 0, [stack[-1] + (depth,)]
            if stack[-1][0] and tokens[k + 1][1] == at + 1:
                yield line, 'no space behind {'
        elif t == '}' and stack:
            was, opened, filled, depth = stack.pop()
            if was and filled and opened != line and not table:
                yield opened, 'a block of several lines begins on the line of its head'
            if was and k and tokens[k - 1][1] + len(tokens[k - 1][0]) == at:
                yield line, 'no space in front of }'
            if was and opened != line and k and tokens[k - 1][3] == line:
                yield line, 'a block of several lines ends on the line of a statement'
            if was and follows and not table and follows not in ('else', 'while', '}', ';', ',', ')'):
                yield line, 'a statement behind a block'
        elif t == ';' and code and depth == 0 and follows and follows != '}' and not table:
            yield line, 'two statements'


def declared(tokens, k):
    """Returns the names that the statement at k declares without a value."""
    at, names = k, []
    while tokens[at][0] in TYPES or (at == k and tokens[at][0] not in WORDS) or tokens[at - 1][0] in ('const', 'struct'):
        at += 1
    if at == k:
        return []
    while True:
        while tokens[at][0] == '*':
            at += 1
        if not re.match(r'[A-Za-z_]', tokens[at][0]) or tokens[at + 1][0] not in '=,;[':
            return names
        if tokens[at + 1][0] in ',;':
            names.append(tokens[at][0])
        at = value_end(tokens, at)
        if tokens[at][0] != ',':
            return names
        at += 1


def value_end(tokens, k):
    """Returns the index of the , or ; or } after the expression at k."""
    while tokens[k][0] not in ',;}':
        k = past(tokens, k) if tokens[k][0] in '([{' else k + 1
    return k


def is_plain(tokens, k):
    """Returns True if `name = value;` begins at k, and no other assignment or comma follows in it."""
    end = value_end(tokens, k + 2)
    return tokens[end][0] == ';' and not any(
        tokens[i][0] == '=' and tokens[i + 1][0] != '=' and tokens[i - 1][0] not in '=!<>' for i in range(k + 2, end))


def is_late(tokens, name, k):
    """Returns True if name, which is declared without a value at k, could be declared at its first use: the first
    use is an assignment in the same block, or all uses are in loops whose heads assign it.  Returns False if a label
    or a case could jump over the declaration, or if name is only written."""
    end = k                                            # the end of the block
    while end < len(tokens) and tokens[end][0] != '}':
        end = past(tokens, end) if tokens[end][0] in '([{' else end + 1
    uses = [i for i in range(k, end) if tokens[i][0] == name and tokens[i - 1][0] not in ('.', '->', 'goto')][1:]
    if len(uses) < 2:
        return False
    first = uses[0]
    if tokens[first - 1][0] in ';}{' and tokens[first + 1][0] == '=' and tokens[first + 2][0] != '=':
        depth = sum((t[0] == '{') - (t[0] == '}') for t in tokens[k:first])
        jumps = any(tokens[i][0] in ('case', 'default') or (tokens[i][0] == ':' and tokens[i - 2][0] in ';{}')
                    for i in range(first, end))
        return depth == 0 and not jumps and is_plain(tokens, first) and uses[1] > value_end(tokens, first)
    loop = 0                                           # the end of the last for loop that assigns it
    for i in uses:
        if i > loop:
            if [t[0] for t in tokens[i - 2:i + 2]] != ['for', '(', name, '='] or not is_plain(tokens, i):
                return False
            loop = past(tokens, past(tokens, i - 1))
        elif tokens[i - 1][0] == '&' and tokens[i - 2][0] in '(,=' and tokens[i + 1][0] != '->':
            return False
    return True


def first_uses(tokens):
    """Yields the lines of declarations without a value that could be at the first use."""
    blocks = []                                        # for each open {, whether it begins code
    for k, (t, at, line, _) in enumerate(tokens):
        if t == '{':
            blocks.append(is_code(tokens, k, bool(blocks) and blocks[-1]))
        elif t == '}' and blocks:
            blocks.pop()
        elif blocks and blocks[-1] and tokens[k - 1][0] in ';{}' and re.match(r'[A-Za-z]', t):
            for name in declared(tokens, k):
                if is_late(tokens, name, k):
                    yield line, name + ' is declared before its first use'


def comments(text, first):
    """Yields the lines of // comments, except for banners, section lines, and the text below these."""
    kept = False
    for number, line in enumerate(text.split('\n'), first):
        if re.match(r'//(==|--.*---|  >>)', line):
            kept = True
        elif re.match(r' *//', line):
            if not kept or line.startswith('//--'):
                yield number, 'a comment that is not /* text */'
        else:
            kept = False


def rooms(text, most):
    """If more than `most` percent of all names have one letter, yields the rooms with most of them."""
    places = [(0, 'the manual and what follows it')]
    places += [(m.start(), m.group(1)) for m in re.finditer(r'^//  >>(\S+)', text, re.M)]
    begins, count = [p[0] for p in places], [[0, 0] for _ in places]
    for m in TOKEN.finditer(text):
        if m.lastgroup == 'name' and m.group() not in WORDS:
            room = count[bisect.bisect(begins, m.start()) - 1]
            room[0] += len(m.group()) == 1
            room[1] += 1
    short, all_names = sum(c[0] for c in count), sum(c[1] for c in count)
    if short * 100 > most * all_names:
        yield 'names of one letter: %d of %d, %.1f%%, more than %g%%' % (short, all_names, 100 * short / all_names, most)
        for c, place in sorted(zip(count, places), key=lambda x: -x[0][0])[:6]:
            yield '%s: %d of %d' % (place[1], c[0], c[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('file', nargs='?', default=os.path.join(ROOT, 'opdispatch.h'))
    parser.add_argument('--names', type=float, metavar='PERCENT')
    args = parser.parse_args()
    text = open(args.file, encoding='utf-8').read()
    if args.names is not None:
        found = list(rooms(text, args.names))
    else:
        begin, end = text.find('!defined(OPDI_IMPLEMENTED)'), text.find('\n#endif /* OPDISPATCH_IMPLEMENTATION */')
        if begin < 0 or end < 0:
            sys.exit('no implementation')
        begin = text.index('\n', begin) + 1
        source = Source(text)
        plain = Source(without_directives(text))
        tokens = plain.tokens(begin, end)
        found = list(braces(tokens, False)) + list(statements(tokens)) + list(first_uses(tokens))
        for m in DIRECTIVE.finditer(text, begin, end):
            head = re.match(r'\s*#\s*define\s+\w+(\([^)]*\))?', m.group())
            if head:
                found += braces([t for t in source.tokens(m.start() + head.end(), m.end()) if t[0] != '\\'], True)
        found += comments(text[begin:end], source.line(begin))
        found = ['%s:%d: %s' % (os.path.basename(args.file), line, why) for line, why in sorted(set(found))]
    for line in found:
        print(line)
    sys.exit(bool(found))


if __name__ == '__main__':
    main()

"""Generates the text of opdispatch.h that is in no file of src/, from the files of src/.  join.py calls it.

A file of src/ has a line #include "NAME.printed.h" in the place of this text.  The end of printing.py lists the names.

Operators are read as text from their cards in src/ops/.  A card is a comment with the code that fills in the
operator's descriptor:

    /* opd_sum_dim(self, dim, keepdim): the sum over dimensions */
    OPDI_OP(sum_dim_IntList) {
        op->schema = "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";

The comment names the typed function and says what the function does.  opd_sum_dim takes the arguments that the comment
lists, and opd_sum_dim_full takes all arguments.  If the comment lists no arguments, the short function takes those
without a default value.  If the operator makes a tensor from no tensor, the short function takes all arguments up to
the dtype.  For an operator with an in-place form, there is also a function opd_NAME_.
"""
import re
import sys

WIDTH = 120                      # columns in a line of C
SUFFIX = '.printed.h'


#-- operators: cards as text -------------------------------------------------------------------------------------------

# Tokens of C: a string, a name, the paste operator, or any other character.
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\w+|##|\\\n|.', re.S)
# A card: the comment, then OPDI_OP or a macro that makes a card, the arguments of this macro, and for OPDI_OP the body.
CARD = re.compile(r'^(?:/\* opd_(\w+)(?:\(([\w, ]+)\))?: ((?:[^*]|\*(?!/))*) \*/\n)?'
                  r'(OPDI_\w+)\((\w+)((?:, [^\n]*)?)\)(?:$| \{\n((?:.*\n)*?)\}$)', re.M)
OF_FOLDERS = {'make': 'create', 'matrix': 'linalg'}              # families whose names differ from their folders'


def split_arguments(text):
    """Splits "a, b[c, d], e" at the commas that are outside of brackets."""
    parts, depth, part = [], 0, ''
    for c in text:
        depth += (c in '([') - (c in ')]')
        if c == ',' and depth == 0:
            parts.append(part.strip())
            part = ''
        else:
            part += c
    return parts + ([part.strip()] if part.strip() else [])


class Schema:
    """A schema: its name, args with (type, name, default or None) for each argument, and returns, the text after
    "->"."""

    def __init__(self, text):
        self.name, rest = text.split('(', 1)
        depth, at = 1, 0
        while depth:
            depth += (rest[at] == '(') - (rest[at] == ')')
            at += 1
        returns = re.sub(r'\([a-z!>*| -]+\)', '', rest[at:].strip()[2:].strip())                 # without alias names
        self.returns = re.sub(r'^(Tensor\[\]|Tensor) \w+$', r'\1', returns)                      # and without a name
        self.args = []
        for part in split_arguments(rest[:at - 1]):
            if part == '*':
                continue
            kind, name, default = re.match(r'(.*?)\s+(\w+)(?:=(.*))?$', part).groups()
            kind = re.sub(r'\([a-z!>*| -]*\)', '', kind).replace('SymInt', 'int')
            self.args.append((re.sub(r'\[\d+\]', '[]', kind), name.lower(), default))     # [N]: N may be a macro

    def makes(self):
        """Returns True if the operator makes a tensor without a tensor argument."""
        names = [a[1] for a in self.args]
        return 'dtype' in names and 'layout' in names and names[0] != 'self'

    def takes(self):
        """Returns the number of arguments of the short function."""
        if self.makes():
            return [a[1] for a in self.args].index('dtype') + 1
        count = len([a for a in self.args if a[2] is None])
        if any(a[2] is not None for a in self.args[:count]):
            sys.exit('%s: an argument with a default comes before an argument without' % self.name)
        return count


class Operator:
    """The contents of a card.  card: the card's name.  schema; inplace: the schema of its in-place form, or None.
     function: the name of opd_FUNCTION.  says: the comment.  listed: the arguments that the comment lists, or None.
     text: the text of the schema.  body: the lines of the card."""

    def __init__(self, family, function, listed, says, card, body, macros):
        self.family, self.function, self.card, self.says = family, function, card, ' '.join(says.split())
        text, inplace = field_of(body, 'schema', macros), field_of(body, 'inplace', macros)
        if not text:
            sys.exit('OPDI_OP(%s): the descriptor must begin with op->schema = "...";' % card)
        self.schema, self.text, self.body = Schema(text), text, body
        self.inplace = inplace and Schema(inplace if '(' in inplace else inplace + text[text.index('('):])
        self.listed = listed and [name.strip().lower() for name in listed.split(',')]
        if self.listed and self.listed != [a[1] for a in self.schema.args[:len(self.listed)]]:
            sys.exit('/* opd_%s(%s): the comment must list the arguments of %s, which are %s' % (
                function, listed, self.schema.name, ', '.join(a[1] for a in self.schema.args)))


def text_of(words, macros):
    """Returns the text of string literals, and of macros that are string literals, one after the other."""
    found = ''
    for word in words:
        if word.startswith('"'):
            found += re.sub(r'\\(.)', r'\1', word[1:-1])
        elif word in macros:
            found += macros[word]
        elif word.strip() and word != '\\\n':
            raise KeyError(word)
    return found


def field_of(body, name, macros):
    """Returns the text to which a card sets a field, or None if it does not set the field."""
    m = re.search(r'\bop->%s = ((?:"(?:[^"\\]|\\.)*"|[^";])*);' % name, body)
    try:
        return text_of(WORD.findall(m.group(1)), macros) if m else None
    except KeyError as error:
        sys.exit('op->%s = %s: %s is not a macro for a string' % (name, m.group(1), error))


def macros_of(text):
    """Returns {macro for a string: its text}, and {macro that makes a card: (parameters, words of its body)}."""
    texts, cards = {}, {}
    for m in re.finditer(r'^#define (\w+)(\([^)]*\))? ((?:.*\\\n)*.*)$', text, re.M):
        name, parameters, words = m.group(1), m.group(2), WORD.findall(m.group(3))
        if parameters and 'OPDI_OP' in words:
            cards[name] = split_arguments(parameters[1:-1]), words
        elif not parameters and any(word.startswith('"') for word in words):
            try:
                texts[name] = text_of(words, texts)
            except KeyError:
                pass                                             # a macro that is not only a string
    return texts, cards


def body_of(macro, arguments):
    """Returns the body of a card that a macro makes with these arguments."""
    given = dict(zip(macro[0], arguments))
    return re.sub(r' *## *', '', ''.join(given.get(word, word) for word in macro[1] if word != '\\\n'))


def operators_of(files):
    """Returns the operators in the order of the files.  A file is (path, words of its row, text)."""
    found = []
    files = [file for file in files if file[0].startswith('ops/')]
    texts, makers = macros_of(''.join(text for _, _, text in files))
    for path, words, text in files:
        macro = next((word[len('OPD_NO_OP_'):].lower() for word in words if word.startswith('OPD_NO_OP_')), None)
        family = macro or OF_FOLDERS.get(path.split('/')[1], path.split('/')[1])
        count = len(found)
        for m in CARD.finditer(text):
            function, listed, says, maker, card, rest, body = m.groups()
            if maker != 'OPDI_OP' and maker not in makers or maker == 'OPDI_OP' and body is None:
                continue
            if not function:
                sys.exit('src/%s: %s(%s needs a comment /* opd_NAME: ... */ above it' % (path, maker, card))
            if maker != 'OPDI_OP':
                body = body_of(makers[maker], [card] + split_arguments(rest[1:]))
            found.append(Operator(family, function, listed, says, card, body, texts))
        rows = re.findall(r'^(?:OPDI_OP|%s)\((\w+)' % '|'.join(makers or ['OPDI_OP']), text, re.M)
        missing = set(rows) - {operator.card for operator in found[count:]}
        if missing:
            sys.exit('src/%s: OPDI_OP(%s) must have the form "OPDI_OP(name) {", lines, "}"' % (path, min(missing)))
    for what in ('descriptor', 'function'):
        names = [getattr(operator, 'card' if what == 'descriptor' else what) for operator in found]
        if len(set(names)) < len(names):
            sys.exit('two operators have the %s %s' % (what, next(name for name in names if names.count(name) > 1)))
    return found


#-- operators: what is printed -----------------------------------------------------------------------------------------

# {type in a schema: (type in C, function that makes an opd_value from it, its letter in signatures for opd_op_check)}.
C_TYPES = {
    'Tensor': ('opd_tensor *', 'opd_value_tensor', 'T'),
    'Tensor?': ('opd_tensor *', 'opd_value_tensor', 'T'),
    'Tensor[]': ('opd_tensors ', 'opd_value_of_tensors', 'L'),
    'Tensor?[]': ('opd_tensors ', 'opd_value_of_tensors', 'L'),
    'int': ('int64_t ', 'opd_value_int', 'i'),
    'ScalarType': ('opd_scalar_type ', 'opd_value_int', 'i'),
    'MemoryFormat': ('int64_t ', 'opd_value_int', 'i'),
    'float': ('double ', 'opd_value_double', 'd'),
    'bool': ('bool ', 'opd_value_bool', 'b'),
    'str': ('const char *', 'opd_value_str', 's'),
    'str?': ('const char *', 'opd_value_str', 's'),
    'Device': ('opd_device ', 'opd_value_device', 'D'),
    'Generator?': ('opd_generator *', 'opd_value_generator', 'G'),
    'int[]': ('opd_ints ', 'opd_value_of_ints', 'I'),
    'int[]?': ('opd_ints ', 'opd_value_optional_ints', 'I'),
}
ANY = ('opd_value ', '', 'V')                                    # numbers, and arguments that may be None

# Optional arguments that are passed as an opd_value, although there is a C type for their type.
VALUES = {
    ('nansum', 'dim'), ('nanmean', 'dim'), ('linalg_vector_norm', 'dim'), ('convolution_backward', 'bias_sizes'),
    ('searchsorted.Tensor', 'side'), ('searchsorted.Tensor', 'sorter'),
    ('upsample_nearest1d.vec', 'output_size'),
    ('upsample_nearest2d.vec', 'output_size'),
    ('upsample_nearest3d.vec', 'output_size'),
    ('_upsample_nearest_exact1d.vec', 'output_size'),
    ('_upsample_nearest_exact2d.vec', 'output_size'),
    ('_upsample_nearest_exact3d.vec', 'output_size'),
    ('upsample_linear1d.vec', 'output_size'),
    ('upsample_bilinear2d.vec', 'output_size'),
    ('upsample_trilinear3d.vec', 'output_size'),
    ('upsample_bicubic2d.vec', 'output_size'),
    ('_upsample_bilinear2d_aa.vec', 'output_size'),
    ('_upsample_bicubic2d_aa.vec', 'output_size'),
}

# The functions that are called most often, and the functions that src/ calls.  They call the operator directly, which
# is a few nanoseconds faster.  All other functions call opd_given_*.
DIRECT = set('''empty zeros ones full view reshape expand transpose t permute select slice unsqueeze squeeze_dim flatten
contiguous clone copy_ to_dtype add add_ sub sub_ mul mul_ div div_ neg exp log sqrt rsqrt tanh sigmoid relu gelu silu
pow_Tensor_Scalar eq gt where_self sum sum_dim mean mean_dim amax softmax log_softmax mm bmm matmul addmm linear conv2d
convolution layer_norm cross_entropy_loss embedding cat stack zero_ fill_'''.split())
MOST_GIVEN = 20                                                  # OPDI_GIVEN_MAX of src/ops/typed_functions.c


def wrapped(first, parts, last, indent, width=WIDTH):
    """Returns the text `first`, the parts with commas between them, and the text `last`, as lines of at most `width`
    columns."""
    lines, line = [], first
    for i, part in enumerate(parts):
        text = part + (',' if i + 1 < len(parts) else last)
        if len(line) + len(text) + 1 > width and line.strip():
            lines.append(line.rstrip())
            line = ' ' * indent + text
        else:
            line += ('' if line.endswith(('(', '{')) or not line.strip() else ' ') + text
    return lines + [line]


def wrapped_words(words):
    """Returns lines of words separated by spaces, indented by four columns."""
    lines = ['   ']
    for word in words:
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines.append('   ')
        lines[-1] += ' ' + word
    return lines


class Function:
    """A typed function: its name without opd_, the card of its operator, its arguments (the first `count` of the
    schema), and their C types."""

    def __init__(self, name, card, schema, count, choose_dtype):
        self.name, self.card, self.schema, self.args = name, card, schema, schema.args[:count]
        short = count < len(schema.args)
        self.types = [('opd_scalar_type ', 'opd_value_dtype', 'i') if short and choose_dtype and a[1] == 'dtype' else
                      ANY if a[0] == 'bool[]' or (schema.name, a[1]) in VALUES else
                      C_TYPES.get(a[0], ANY) for a in self.args]
        returns = schema.returns
        tensors = split_arguments(returns[1:-1]) if returns.startswith('(') else [returns]
        # the C type of the result, the function that makes the call, and the letter in the signature
        self.result, self.call, self.letter = (
            ('int ', 'opd_call_all', 'v') if returns == '()' else
            ('int ', 'opd_call_tensors', 'N') if len(tensors) > 1 else
            ('opd_tensors ', 'opd_call_list', 'L') if re.match(r'Tensor.*\[\]$', tensors[0]) else
            ('opd_tensor *', 'opd_call_op', 'T') if tensors[0].startswith('Tensor') else
            ('bool ', 'opd_call_bool', 'V') if tensors[0] in ('bool', 'SymBool') else
            ('opd_value ', 'opd_call_value', 'V'))

    def head(self, first, last):
        first += '%sopd_%s(' % (self.result, self.name)
        parts = ['opd_tensor **rets'] if self.call == 'opd_call_tensors' else []
        parts += [kind[0] + a[1] for kind, a in zip(self.types, self.args)]
        return wrapped(first, parts, last, min(len(first), 40))

    def row(self):
        """Returns the lines of the row that defines the function (see src/ops/typed_functions.c)."""
        parts = ['opd_tensor **rets'] if self.call == 'opd_call_tensors' else []
        parts += [kind[0] + a[1] for kind, a in zip(self.types, self.args)]
        letters, values = self.direct() if self.name in DIRECT else self.given()
        kind = ('ARRAY_' if self.name in DIRECT else 'GIVEN_') + self.call.rpartition('_')[2].upper()
        count = ['%d' % len(self.types)] if self.name in DIRECT else []
        takes = parts or ['void']
        takes[0] = '(' + takes[0]
        takes[-1] += ')'
        words = [self.name] + takes + [self.card]
        return wrapped('OPDI_%s(' % kind, words + count + ['"aten::%s"' % self.schema.name, '"%s"' % letters] + values,
                       ')', 4)

    def direct(self):
        """Returns the letters of the signature, and the values of the arguments for an array."""
        values = [kind[1] + '(' + a[1] + ')' if kind[1] else a[1] for kind, a in zip(self.types, self.args)]
        return self.letter + ''.join(kind[2] for kind in self.types), values

    def given(self):
        """Returns letters and the arguments as they are, not as opd_value.  There is a letter for the type of each
        argument.  If a type has no letter, the argument is passed as an opd_value."""
        if len(self.types) > MOST_GIVEN:
            sys.exit('%s has %d arguments, but OPDI_GIVEN_MAX is %d' % (self.schema.name, len(self.types), MOST_GIVEN))
        letters, parts = self.letter, []
        for kind, a in zip(self.types, self.args):
            plain = kind[1] not in ('opd_value_dtype', 'opd_value_optional_ints')
            letters += kind[2] if plain else 'V'
            parts.append(('OPDI_CAST(int64_t, %s)' if kind[0] == 'opd_scalar_type ' and plain else '%s' if plain else
                          kind[1] + '(%s)') % a[1])
        return letters, parts


def both(name, card, schema, takes, choose_dtype):
    """Returns the short function, and the full function if it has more arguments."""
    full = name[:-1] + '_full_' if name.endswith('_') else name + '_full'
    counts = [(name, takes)] + ([(full, len(schema.args))] if takes < len(schema.args) else [])
    return [Function(one, card, schema, count, choose_dtype) for one, count in counts]


def functions_of(operator, names):
    """Returns the typed functions of an operator, and of its in-place form unless that has its own card."""
    schema, form = operator.schema, operator.inplace
    takes = len(operator.listed) if operator.listed else schema.takes()
    found = both(operator.function, operator.card, schema, takes, operator.listed or schema.makes())
    if form and form.name not in names:
        found += both(operator.function + '_', operator.card, form, takes if operator.listed else form.takes(), form.makes())
    return found


def print_prototypes(tree, family):
    lines = []
    for operator in (o for o in tree.operators() if o.family == family):
        text = '/* %s: %s */' % (operator.schema.name, operator.says)
        while len(text) > WIDTH:
            at = text.rindex(' ', 0, WIDTH)
            lines.append(text[:at])
            text = '   ' + text[at + 1:]
        lines.append(text)
        for function in tree.functions(operator):
            lines += function.head('OPD_API ', ');')
    return lines


def print_functions(tree):
    """Prints the bodies of the functions.  The functions in DIRECT are optimised for size, the others not at all."""
    lines = {True: [], False: []}
    for operator in tree.operators():
        for function in tree.functions(operator):
            lines[function.name in DIRECT] += function.row()
    return ['OPDI_COLD_BEGIN'] + lines[True] + ['OPDI_COLD_END', 'OPDI_ONCE_BEGIN'] + lines[False] + ['OPDI_ONCE_END']


def print_numbers(tree):
    return wrapped('    ', ['OPD_OP_' + o.card for o in tree.operators()] + ['OPD_OP_COUNT'], '', 4)


def print_card_lists(tree):
    """Prints OPDI_CARDS, with a row OPDI_CARD(card, "name") for each card, from a list for each family."""
    lines, families = [], tree.families()
    for family in families:
        rows = ['OPDI_CARD(%s, "%s")' % (o.card, o.schema.name) for o in tree.operators() if o.family == family]
        words = [word for row in rows for word in ([row] if len(row) < WIDTH - 8 else row.replace(', ', ',\n').split('\n'))]
        lines += ' \\\n'.join(['#define OPDI_CARDS_' + family] + wrapped_words(words)).split('\n')
    names = wrapped_words(['OPDI_CARDS_' + family for family in families])
    return lines + ' \\\n'.join(['#define OPDI_CARDS'] + names).split('\n')


def print_lean_cards(tree):
    """Prints opdi_kept_CARD for each card, to which a program with OPD_LEAN refers if it uses the operator."""
    lines = []
    for family in tree.families():
        macro = tree.macro(family)
        begin = '    OPDI_LEAN_CONST opdi_lean_card opdi_kept_##card = {OPD_OP_##card, "aten::" name, '
        there = ['#define OPDI_CARD(card, name) static void opdi_card_##card(opd_op_desc *op); \\',
                 begin.rstrip() + ' \\', '        opdi_card_##card, NULL, NULL};']
        out = ['#define OPDI_CARD(card, name) \\', begin + 'NULL, NULL, \\', '        "%s"};' % macro]
        lines += ['#if defined(%s)' % macro] + out + ['#else'] + there + ['#endif'] if macro else there
        lines += ['OPDI_CARDS_' + family, '#undef OPDI_CARD']
    return lines


def print_switches(tree):
    """Prints OPDI_SWITCH(name) for each switch OPD_name that a file may define and the library must then have, too."""
    words = {word for _, words, text in tree.files for word in words + re.findall(r'defined\((\w+)\)', text)}
    names = sorted({word[4:] for word in words if word.startswith('OPD_NO_')} | {'CHECKED', 'LAPACK', 'LEAN'})
    return [line for name in names for line in ('#if defined(OPD_%s)' % name, 'OPDI_SWITCH(%s)' % name, '#endif')]


def print_lean_names(tree):
    """Prints the numbers (opdi_lean_hash) of the names of the cards without "aten::", in ascending order, and the names of
    overloads, each with a zero at its end.  OPD_KEEP takes the names with "_" instead of "."."""
    numbers, overloads = {}, set()
    for o in tree.operators():
        if o.card != o.schema.name.replace('.', '_'):
            sys.exit('OPDI_OP(%s): the descriptor of %s must be called %s' % (o.card, o.schema.name, o.schema.name.replace('.', '_')))
        number = 0x811c9dc5
        for byte in o.schema.name.encode():
            number = (number ^ byte) * 0x01000193 & 0xffffffff
        if number in numbers:
            sys.exit('%s and %s have the same number: change opdi_lean_hash' % (o.schema.name, numbers[number]))
        numbers[number] = o.schema.name
        overloads.add(o.schema.name.partition('.')[2])
    lines = ['static const uint32_t opdi_lean_numbers[] = {'] + wrapped(
        '    ', ['0x%08xu' % number for number in sorted(numbers)], '};', 4)
    return lines + ['static const char opdi_lean_overloads[] ='] + wrapped_words(
        ['"%s\\0"' % overload for overload in sorted(overloads) if overload]) + [';']


def print_cards(tree):
    """Prints an array of cards for each family, which a macro may leave out, and the list of these arrays."""
    lines, table = ['#define OPDI_CARD(card, name) opdi_card_##card,'], []
    for family in tree.families():
        count = sum(o.family == family for o in tree.operators())
        macro, name = tree.macro(family), 'opdi_cards_' + family
        listed = ['static const opdi_card_fn %s[] = {OPDI_CARDS_%s};' % (name, family)]
        lines += ['#if defined(%s)' % macro, '#define %s NULL' % name, '#else'] + listed + ['#endif'] if macro else listed
        table.append('    {%d, %s, "%s"}' % (count, name, macro or ''))
    lines += ['#undef OPDI_CARD',
              'static const struct { int n; const opdi_card_fn *cards; const char *macro; } opdi_families[] = {']
    return lines + ',\n'.join(table).split('\n') + ['};']


#-- functions that a macro leaves out ----------------------------------------------------------------------------------

# Macros whose functions need no stubs: operators are left out of the lists of cards, and loading a plug-in explains why
# it fails.
OTHERS = re.compile(r'OPD_NO_(OPERATORS|OP_\w+|PLUGINS)$')
# The result of a function that failed, by its type.  A pointer is NULL, and a struct is all zero.
ANSWERS = {'int': '-1', 'int64_t': '-1', 'size_t': '0', 'double': 'NAN', 'opd_scalar_type': 'OPD_DTYPE_NONE',
           'opd_json_kind': 'OPD_JSON_NONE'}
# Functions that return the number of parts of an object.  They return 0, because there is no object.
COUNTS = ('opd_graph_ninputs', 'opd_graph_noutputs', 'opd_graph_count', 'opd_tensor_file_count', 'opd_module_count',
          'opd_program_ninputs', 'opd_program_noutputs')
# Functions that files with operators call.  They do the same as outside of autocast regions.
OUTSIDE = {
    'opd_autocast_register': '0', 'opd_autocast_support': '0',
    'opd_custom_fwd': 'opd_ok() && forward ? forward(ctx) : %s',
    'opd_custom_bwd': 'opd_ok() && backward ? backward(bw) : %s'
}
FUNCTION = re.compile(r'^#if !defined\((OPD_NO_\w+)\)(?=\n//)|^#endif   /\* (\w+) \*/$|'
                      r'^(?!static |typedef |return )\w[^({};=\n]*?\b(opdi?_\w+)\([^;{]*\{', re.M)


def functions_left_out(files):
    """Returns [(names of the macros, function)] for each public function that macros leave out.  The macros are in
    the row of its file, or in guards around the function, whose #endif names them."""
    found = []
    for path, words, text in files:
        of_file = [word for word in words if word.startswith('OPD_NO_') and not OTHERS.match(word)]
        around = []
        for begins, ends, function in (m.groups() for m in FUNCTION.finditer(text)):
            if OTHERS.match(begins or ends or ''):
                continue
            if begins:
                around.append(begins)
            elif ends and (not around or around.pop() != ends):
                sys.exit('src/%s: a region of %s ends, but did not begin' % (path, ends))
            elif function and around + of_file:
                found.append((tuple(of_file + around), function))
        if around:
            sys.exit('src/%s: a region of %s does not end' % (path, around[-1]))
    return found


def results(parameters):
    """Returns statements that write zeros to the results of a function.  These are what parameters point to: one
    element for `T **x`, n elements for `T **x, int n`, and the first character for `char *buf, size_t`."""
    lines = []
    for i, (kind, name) in enumerate(parameters):
        after = parameters[i + 1] if i + 1 < len(parameters) else ('', '')
        if kind == 'char *' and after[0] == 'size_t ':
            lines.append('opdi_no_results(%s, %s != 0, 1);' % (name, after[1]))
        elif re.match(r'(opd_\w+ \*|const char \*)\*$', kind) or kind in ('int64_t *', 'unsigned *'):
            count = after[1] if after[0] == 'int ' else '1'
            lines.append('opdi_no_results(%s, %s, sizeof *%s);' % (name, count, name))
    return lines


def answer(kind, name, macros, parameters):
    """Returns the statements of a function of type `kind` that a macro leaves out."""
    fails = '%s(__func__, "%s")' % ('opdi_null_without' if kind.endswith('*') else 'opdi_without', ' or '.join(macros))
    if name in OUTSIDE:
        return ['return %s;' % OUTSIDE[name].replace('%s', fails)]
    quiet = re.search(r'_(free|close|end|print|clear|enabled)$', name) and not kind == 'size_t '
    value = ('NULL' if kind.endswith('*') else 'false' if kind == 'bool ' else '0' if name in COUNTS or quiet
             else ANSWERS.get(kind.strip()))
    if kind == 'void ':
        return [] if quiet else ['(void)%s;' % fails]
    if quiet:
        return ['return %s;' % value]
    lines = results(parameters)
    if value == 'NULL':
        return lines + ['return %s%s;' % ('(%s)' % kind, fails)]
    if value == '-1':
        return lines + ['return %s;' % fails]
    if not value:
        lines = ['%snone;' % kind, 'memset(&none, 0, sizeof none);'] + lines
    return lines + ['(void)%s;' % fails, 'return %s;' % (value or 'none')]


def split_parameters(text):
    """Returns (type, name) of each parameter.  For a pointer to a function, the name is ''."""
    found = []
    for part in split_arguments(re.sub(r'\s+', ' ', text)):
        m = re.match(r'(.*?[ *])(\w+)$', part)
        found.append((m.group(1), m.group(2)) if m else (part, ''))
    return found


def print_left_out(tree):
    """Prints, for each public function that a macro leaves out, a function with the same head that fails."""
    found, lines = [row for row in functions_left_out(tree.files) if row[1].startswith('opd_') or row[1] in tree.prototypes()], []
    for macros in dict.fromkeys(macros for macros, _ in found):
        lines.append('#if ' + ' || '.join('defined(%s)' % m for m in macros))
        for name in (n for m, n in found if m == macros):
            kind, parameters = tree.prototype(name)
            head = re.sub(r'\n +', '\n' + ' ' * (len(kind) + len(name) + 1), parameters)
            head = '%s%s(%s) {' % (kind, name, head)
            body = answer(kind, name, macros, split_parameters(parameters))
            if len(body) == 1 and len(head) + len(body[0]) < 118 and '\n' not in head:
                lines.append('%s %s }' % (head, body[0]))
            else:
                lines += [head + ' }'] if not body else [head] + ['    ' + line for line in body] + ['}']
        lines.append('#endif')
    return lines


#-- the contents list of the first comment ----------------------------------------------------------------------------

def print_contents(tree):
    """Prints the anchors of all sections (>>NAME), by layer, in the order of the files."""
    rooms, lines = {}, []
    for path, _, text in tree.files:
        rooms.setdefault(path.split('/')[0], []).extend(re.findall(r'^//  (>>[\w:]+) ', text, re.M))
    for layer, anchors in rooms.items():
        line = '     %-12s' % layer
        for anchor in anchors:
            if len(line) + len(anchor) + 1 > WIDTH:
                lines.append(line)
                line = ' ' * 17
            line += ' ' + anchor
        lines += [line] if anchors else []
    return lines


#-- the table of functions that plug-ins call --------------------------------------------------------------------------

def print_host_table(tree):
    """Prints the rows of OPDI_HOST_FUNCTIONS, in the order of the list of names."""
    lines = []
    for name in tree.listed('api/host_functions.txt'):
        kind, parameters = tree.prototype(name)
        types = [re.sub(r'(?<=[ *])\w+$', '', part).strip() if part != 'void' else '' for part in split_arguments(
            re.sub(r'\s+', ' ', parameters))]
        types = [part for part in types if part]
        first = '    %s%s, %d, (' % ('V(' if kind == 'void ' else 'X(%s, ' % kind.strip(), name, len(types))
        lines += [part + ' \\' for part in wrapped(first, types, '))', 6, WIDTH - 2)] if types else [first + ')) \\']
    lines[-1] = lines[-1][:-2]
    return lines


#-- names --------------------------------------------------------------------------------------------------------------

class Tree:
    """The files of src/, as a list of (path, words of its row in the list, text)."""

    def __init__(self, files):
        self.files, self.kept = files, {}

    def once(self, what, make):
        if what not in self.kept:
            self.kept[what] = make()
        return self.kept[what]

    def text(self, path):
        return next((text for name, _, text in self.files if name == path), '')

    def listed(self, path):
        """Returns the words of a list, without its comments."""
        return [word for line in self.text(path).split('\n') if not line.startswith('#') for word in line.split()]

    def families(self):
        """Returns the families in the order of their declarations."""
        return self.once('families', lambda: re.findall(r'#include "op_(\w+)\.printed\.h"', self.text('api/operators.h')))

    def macro(self, family):
        """Returns the macro that leaves a family out, or None."""
        if any('OPD_NO_OP_' + family.upper() in words for _, words, _ in self.files):
            return 'OPD_NO_OP_' + family.upper()
        return None if family in ('create', 'view') else 'OPD_NO_OPERATORS'

    def operators(self):
        return self.once('operators', self.read_operators)

    def read_operators(self):
        families, found = self.families(), operators_of(self.files)
        for operator in found:
            if operator.family not in families:
                sys.exit('%s belongs to the family %s, but src/api/operators.h has no #include "op_%s.printed.h"' % (
                    operator.card, operator.family, operator.family))
        code = ''.join(text for path, _, text in self.files if not path.startswith('api/'))
        DIRECT.update(re.findall(r'\bopd_(\w+)\(', re.sub(r'/\*.*?\*/', '', code, flags=re.S)))
        return sorted(found, key=lambda operator: families.index(operator.family))

    def functions(self, operator):
        names = self.once('names', lambda: {o.schema.name for o in self.operators()})
        return self.once(operator, lambda: functions_of(operator, names))

    def prototypes(self):
        return self.once('prototypes', lambda: {m.group(2): (m.group(1), m.group(3)) for m in PROTOTYPE.finditer(
            ''.join(text for path, _, text in self.files if path.startswith('api/')))})

    def prototype(self, name):
        """Returns (type of the result, parameters) of a function of src/api/."""
        if name not in self.prototypes():
            sys.exit('src/api/ has no prototype for ' + name)
        return self.prototypes()[name]


PROTOTYPE = re.compile(r'^OPD_(?:API|NEW) ([^;=()]*?[ *])(opdi?_\w+)\(([^;]*)\)[^;()]*;', re.M)
PRINTED = {
    'contents': print_contents,
    'operator_numbers': print_numbers,
    'typed_functions': print_functions,
    'cards': print_cards,
    'lean_cards': print_lean_cards,
    'card_lists': print_card_lists,
    'lean_names': print_lean_names,
    'left_out': print_left_out,
    'switches': print_switches,
    'host_table': print_host_table,
}


def printed(tree, name):
    """Returns the text of NAME.printed.h.  op_FAMILY.printed.h has the prototypes of a family."""
    return tree.once('printed ' + name, lambda: ''.join(line + '\n' for line in lines_of(tree, name)))


def lines_of(tree, name):
    if name.startswith('op_') and name[3:] in tree.families():
        return print_prototypes(tree, name[3:])
    if name not in PRINTED:
        sys.exit('%s%s is included, but src/printing.py cannot print it: it can print %s' % (
            name, SUFFIX, ', '.join(PRINTED)))
    return PRINTED[name](tree)

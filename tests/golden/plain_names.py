"""Error messages of PyTorch with the names that this library uses in its messages: dtypes have the names of C (int64
for Long), and operators have no "torch." in front.  Scripts of this folder import this file."""
import re

DTYPES = {'Byte': 'uint8', 'Char': 'int8', 'Short': 'int16', 'Int': 'int32', 'Int32': 'int32', 'Long': 'int64',
          'UInt16': 'uint16', 'UInt32': 'uint32', 'UInt64': 'uint64', 'Half': 'float16', 'BFloat16': 'bfloat16',
          'Float': 'float32', 'Double': 'float64', 'ComplexHalf': 'complex32', 'ComplexFloat': 'complex64',
          'ComplexDouble': 'complex128', 'Bool': 'bool', 'Float8_e4m3fn': 'float8_e4m3fn',
          'Float8_e5m2': 'float8_e5m2', 'Float8_e4m3fnuz': 'float8_e4m3fnuz', 'Float8_e5m2fnuz': 'float8_e5m2fnuz',
          'Float8_e8m0fnu': 'float8_e8m0fnu'}
CXX = {'int': 'int32', 'float': 'float32', 'double': 'float64', 'complex<float>': 'complex64'}
WORD = re.compile(r'\b(%s)\b' % '|'.join(sorted(DTYPES, key=len, reverse=True)))
CONVERTED = re.compile(r'(?<=converted to )type (?:c10::)?(\S+?)(?:_t)?(?= )')


def plain_names(text):
    """Returns a message of PyTorch with the names of this library."""
    text = WORD.sub(lambda match: DTYPES[match.group()], text)
    text = CONVERTED.sub(lambda match: CXX.get(match.group(1), match.group(1)), text)
    text = re.sub(r'\btorch\.(\w+)\(\): ', r'\1: ', text)
    return re.sub(r'\btorch\.(?=[a-z])', '', text)

"""Takes the folders of the machine that made them out of PyTorch's archives, which tell where each operator was called:
what stands in front of tests/, examples/ and lib/python becomes /usr/src, filled up with slashes.
    python3 tests/golden/plain_paths.py FILE..."""
import io, re, struct, sys, zipfile

FOLDER = re.compile(rb'/(?:work|tmp|root|home)(?:/[\w.+-]+)*?/(?=(?:[\w.-]+\.py|tests/golden/|examples/|lib/python))')

def plain(match):
    return b'/usr/src'.ljust(len(match.group()), b'/') if len(match.group()) >= 9 else match.group()

def rewrite(before):
    """The same archive with changed entries; data begin at multiples of 64 as PyTorch has them."""
    out, changed = io.BytesIO(), False
    with zipfile.ZipFile(io.BytesIO(before)) as old, zipfile.ZipFile(out, 'w') as new:
        for entry in old.infolist():
            data = old.read(entry)
            clean = FOLDER.sub(plain, data)
            changed = changed or clean != data
            info = zipfile.ZipInfo(entry.filename, entry.date_time)
            info.compress_type = entry.compress_type
            fill = -(out.tell() + 30 + len(entry.filename.encode()) + 4) % 64
            info.extra = struct.pack('<2sH', b'FB', fill) + b'Z' * fill
            new.writestr(info, clean)
    return out.getvalue() if changed else before

for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        before = file.read()
    after = rewrite(before)
    if after != before:
        with open(path, 'wb') as file:
            file.write(after)
        print('changed', path)

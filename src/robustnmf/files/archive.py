"""Write and read files of arrays and one JSON text, and convert objects: checkpoints and models.

The file is an uncompressed ``.npz``. It is written next to its target and then renamed. No content
is ever executed. Sizes are compared with the size of the file before memory is allocated, and the
content is verified with a digest.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import re
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from io import FileIO
from pathlib import Path
from typing import IO, Any

import numpy as np

try:
    import fcntl
except ImportError:  # Windows, which cannot delete open files
    fcntl = None  # type: ignore[assignment]

TEXT, DIGEST = "told", "digest"
"""Names of the entries for the JSON text and the digest."""

KINDS = "biufU"
"""Kinds of numbers (and texts) that an array can contain."""

DESCRIPTORS = re.compile(r"/dev/fd|/proc/\d+(/task/\d+)?/fd")
"""Folders of the open file descriptors of a process."""

TEMPORARY = ".robustnmf"
"""Suffix of files that are being written."""

MAX_LINKS = 40
"""Maximum number of symbolic links in a chain, as on Linux."""


class Broken(ValueError):
    """Raised for a file that is not an archive, or was changed since it was written."""


def write(path: Path, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> None:
    """Write arrays and a JSON text to ``path``; an existing file is replaced as a whole."""
    with whole_file(path, stream=True) as file:
        write_to(file, arrays, record)


def write_to(file: IO[bytes], arrays: dict[str, np.ndarray], record: dict[str, Any]) -> None:
    """Write arrays and a JSON text to an open file."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(record, default=float)
    entries: dict[str, Any] = {TEXT: text, DIGEST: _digest(arrays, text), **arrays}
    np.savez(file, **entries)


@contextmanager
def whole_file(path: Path, *, stream: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that is written next to its target and then renamed (:func:`path_beside`).

    FIFOs, devices and open descriptors (``/dev/stdout``) are never replaced: with ``stream`` bytes
    are written directly to them, otherwise an error is raised.
    """
    if stream and is_stream(path):
        with open(path, "ab") as device:  # appends to a file that a descriptor was redirected to
            yield device
        return
    with path_beside(path) as beside, open(beside, "wb") as file:
        with suppress(OSError):  # the file system may not support locks
            _lock(file)
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def path_beside(path: Path) -> Iterator[Path]:
    """Yield the path of an empty file in the folder of the target, which it replaces at the end.

    It has the permissions of the target, or of any new file; if ``path`` is a link, its target is
    replaced. After an error it is deleted; if the process is killed, the next one that writes to
    the same target deletes it, unless it is locked.
    """
    if is_stream(path):
        raise ValueError(f"{path} is a FIFO or a device; give the path of a regular file.")
    target = path.resolve()
    delete_leftovers(target)
    # A unique name: another process may be writing to the same target.
    handle, name = tempfile.mkstemp(TEMPORARY, f".{target.name}.", target.parent)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        os.chmod(beside, mode)
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def delete_leftovers(path: Path) -> None:
    """Delete unfinished files for a target that killed processes have left."""
    target = path.resolve()
    names = f".{glob.escape(target.name)}.{'[a-z0-9_]' * 8}{TEMPORARY}"  # as mkstemp makes them
    for left in list(target.parent.glob(names)):
        with suppress(OSError):  # another process may be writing to it
            with open(left, "rb") as file:
                _lock(file)
            left.unlink()


def _lock(file: IO[bytes]) -> None:
    """Lock a file while it is open; raise OSError if another process has locked it.

    HDF5 locks its files in the same way.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_stream(path: Path) -> bool:
    """Whether a path is a FIFO, a device or an open descriptor, which must not be replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISDIR(mode) and (not stat.S_ISREG(mode) or _is_descriptor(path))


def _is_descriptor(path: Path) -> bool:
    """Whether a path such as ``/dev/stdout`` names an open file."""
    for _ in range(MAX_LINKS):
        if DESCRIPTORS.fullmatch(os.path.realpath(path.parent)):
            return True
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    return False


def read_full(file: FileIO, memory: memoryview) -> bool:
    """Read from a file until memory is full; return False if the file ends first."""
    rest = memory.cast("B")
    while rest:
        count = file.readinto(rest)
        if not count:
            return False
        rest = rest[count:]
    return True


def _umask() -> int:
    """Return the file mode creation mask of the process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the JSON text of a file; raise :class:`Broken` if it is invalid."""
    try:
        if not zipfile.is_zipfile(path):
            raise Broken("it is not an archive of arrays")
        with zipfile.ZipFile(path) as file:
            arrays = _read_entries(file, path.stat().st_size)
        text, digest = (str(arrays.pop(name)) for name in (TEXT, DIGEST))
        if _digest(arrays, text) != digest:
            raise Broken("its content has changed since it was written")
        record = json.loads(text)
        if not isinstance(record, dict):
            raise Broken("its text is not a JSON object")
    except Broken:
        raise
    except Exception as error:  # a broken archive can raise any exception
        raise Broken(str(error) or type(error).__name__) from error
    return arrays, record


def _read_entries(file: zipfile.ZipFile, size: int) -> dict[str, np.ndarray]:
    """Read all arrays of an archive of ``size`` bytes."""
    entries = file.infolist()
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise Broken("it contains two entries with the same name")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise Broken("it is compressed")
    if sum(entry.file_size for entry in entries) > size:
        raise Broken("its entries are larger than the file")
    return {entry.filename.removesuffix(".npy"): _read_array(file.open(entry)) for entry in entries}


def _read_array(file: IO[bytes]) -> np.ndarray:
    """Read an entry; its content is compared with its header before the array is made."""
    shape, is_fortran, dtype = read_npy_header(file)
    if dtype.kind not in KINDS:
        raise Broken(f"an array contains {dtype}")
    content = file.read()
    if len(content) != math.prod(map(int, shape)) * dtype.itemsize:
        raise Broken("an array is shorter or longer than stated in its header")
    order: Any = "F" if is_fortran else "C"
    return np.frombuffer(content, dtype).reshape(shape, order=order).copy(order="K")


def read_npy_header(file: IO[bytes]) -> tuple[Any, bool, np.dtype]:
    """Return shape, order and dtype of a .npy file; the file position is then after the header."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it has the unknown version {version}")
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _digest(arrays: dict[str, np.ndarray], text: str) -> str:
    """Return the SHA-256 of the text and of names, types, shapes and content of the arrays."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


class Codec:
    """Convert objects to JSON records with separate arrays, and build objects from such records.

    Only objects of the given classes are ever built.
    """

    def __init__(
        self, arrays: dict[str, np.ndarray], parts: dict[str, Any], records: dict[str, Any]
    ):
        self.arrays = arrays  # of the file, by name; those of converted objects are added
        self.parts = parts  # classes whose objects are built from their parameters (get_params)
        self.records = records  # dataclasses and named tuples
        self.builders: dict[str, Callable[[dict[str, Any]], Any]] = {
            "array": lambda record: self.arrays[record["name"]],
            "list": lambda record: [self.build(item) for item in record["items"]],
            "tuple": lambda record: tuple(self.build(item) for item in record["items"]),
            "part": self.build_part,
            "record": lambda record: self.records[record["name"]](**self.fields_of(record)),
        }

    def to_json(self, value: Any) -> Any:
        """Convert an object to its record; its arrays are added to ``arrays``."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        name = type(value).__name__
        if self.parts.get(name) is type(value):
            return self.record("part", name, value.get_params(deep=False))
        if self.records.get(name) is type(value):
            is_tuple = isinstance(value, tuple)
            names = value._fields if is_tuple else [field.name for field in fields(value)]
            return self.record("record", name, {name: getattr(value, name) for name in names})
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {"is": kind, "items": [self.to_json(item) for item in value]}
        if hasattr(value, "shape"):
            return self.array(np.asarray(value))
        raise TypeError(
            f"a model with {value!r} cannot be saved: files can contain classes of this library "
            "only. Use joblib.dump, and load such files only from trusted sources."
        )

    def record(self, kind: str, name: str, values: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Return the record of a named object and its fields."""
        converted = {field: self.to_json(value) for field, value in values.items()}
        return {"is": kind, "name": name, "fields": converted, **more}

    def array(self, array: np.ndarray) -> dict[str, Any]:
        """Store an array; return its record."""
        name = f"array{len(self.arrays)}"
        self.arrays[name] = array
        return {"is": "array", "name": name}

    def build(self, record: Any) -> Any:
        """Build the object that a record describes."""
        if not isinstance(record, dict):
            if isinstance(record, list):
                raise Broken("it contains an unexpected list")
            return record
        if record.get("is") not in self.builders:
            raise Broken(f"it contains {record.get('is')!r}, which is unknown to this version")
        return self.builders[record["is"]](record)

    def build_part(self, record: dict[str, Any]) -> Any:
        """Build an object from its parameters."""
        return self.parts[record["name"]](**self.fields_of(record))

    def fields_of(self, record: dict[str, Any], key: str = "fields") -> dict[str, Any]:
        """Build the fields of a record."""
        return {name: self.build(value) for name, value in record[key].items()}

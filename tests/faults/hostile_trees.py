"""Trees that somebody made to hurt whoever reads them."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

CANARY = "canaryoutsidetheroot"
"""Stands in files outside of every tree, and must never be found inside an index."""

_CODE = (
    b"import os\n\n\nclass Bird:\n    def sing(self):\n        return os.name\n"
    b"\n\ndef call():\n    return Bird().sing()\n"
)
_SOURCES = {
    ".py": _CODE,
    ".ts": b"export class Bird { sing(): string { return call(); } }\nexport function call() { "
    b"return 'x'; }\n",
    ".go": b"package bird\n\nfunc Sing() int {\n\treturn call()\n}\n\nfunc call() int { return 1 "
    b"}\n",
    ".rs": b"pub struct Bird;\nimpl Bird { pub fn sing(&self) -> u8 { call() } }\nfn call() -> u8 "
    b"{ 1 }\n",
    ".java": b"package a;\nclass Bird { int sing() { return call(); } int call() { return 1; } }\n",
    ".c": b'#include "bird.h"\nint call(void) { return sing(); }\n',
    ".cpp": b"namespace a { class Bird { int sing() { return call(); } int call(); }; }\n",
    ".md": b"# Bird\n\nSings.\n",
    ".json": b'{"bird": [1, 2, {"a": null}]}\n',
}


class Hostile:
    """One tree, made from random numbers. ``leaves`` counts what lies in it and is no folder."""

    def __init__(self, rng: random.Random, root: Path, outside: Path) -> None:
        self.rng, self.root, self.outside = rng, root, outside
        self.leaves = 0
        self.too_deep = 0
        root.mkdir()
        self._folders = [root]
        for _ in range(rng.randint(0, 4)):
            self._folder()
        kinds = (
            self._file,
            self._file,
            self._broken,
            self._half,
            self._encoded,
            self._link_out,
            self._link_in,
            self._loop,
            self._pipe,
            self._deep_code,
            self._wide_line,
            self._odd_name,
            self._secret,
            self._binary,
            self._deep_folders,
            self._socket,
            self._closed,
        )
        for _ in range(rng.randint(2, 14)):
            rng.choice(kinds)()

    def _folder(self) -> None:
        folder = self.rng.choice(self._folders) / self.rng.choice(
            ("a", "pkg", "src", "ü", "deep er")
        )
        folder.mkdir(exist_ok=True)
        self._folders.append(folder)

    def _place(self, ending: str) -> Path:
        while True:
            path = self.rng.choice(self._folders) / f"f{self.rng.randrange(10**6)}{ending}"
            if not os.path.lexists(path):
                self.leaves += 1
                return path

    def _write(self, ending: str, data: bytes) -> Path:
        path = self._place(ending)
        path.write_bytes(data)
        return path

    def _source(self) -> tuple[str, bytes]:
        return self.rng.choice(list(_SOURCES.items()))

    def _file(self) -> None:
        self._write(*self._source())

    def _broken(self) -> None:
        ending, data = self._source()
        noise = bytes(
            self.rng.choice(b"(){}[]<>;:\"'`\\#/*@=\n\t \xc3\x28")
            for _ in range(self.rng.randint(1, 400))
        )
        at = self.rng.randint(0, len(data))
        self._write(ending, data[:at] + noise + data[at:])

    def _half(self) -> None:
        ending, data = self._source()
        self._write(ending, data[: self.rng.randint(0, len(data))])

    def _encoded(self) -> None:
        ending, data = self._source()
        text = data.decode() + "# ünïcödé ☃ \U0001f426\n"
        encoding = self.rng.choice(
            ("utf-16", "utf-16-le", "utf-8-sig", "latin-1", "cp1251", "utf-7", "utf-32")
        )
        self._write(ending, text.encode(encoding, "replace"))

    def _link_out(self) -> None:
        target = self.rng.choice(
            (self.outside, self.outside / "secret.py", self.outside / "nowhere", Path("/etc"))
        )
        os.symlink(target, self._place(self.rng.choice((".py", ""))))

    def _link_in(self) -> None:
        os.symlink(self.rng.choice(self._folders), self._place(""))

    def _loop(self) -> None:
        path = self._place(".py")
        os.symlink(path.name, path)

    def _pipe(self) -> None:
        os.mkfifo(self._place(".py"))

    def _socket(self) -> None:
        path = self._place(".py")
        here = os.getcwd()
        try:
            os.chdir(path.parent)  # the name of a socket may only be short
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(path.name)
        finally:
            os.chdir(here)

    def _deep_code(self) -> None:
        depth = self.rng.choice((50, 3_000, 20_000))
        opening, closing, ending = self.rng.choice(
            (
                (b"(", b")", ".py"),
                (b"[", b"]", ".ts"),
                (b"{", b"}", ".go"),
                (b"if x {", b"}", ".rs"),
                (b"a<", b">", ".cpp"),
            )
        )
        self._write(
            ending,
            b"x = "
            + opening * depth
            + (closing * depth if self.rng.random() < 0.5 else b"")
            + b"\n",
        )

    def _wide_line(self) -> None:
        self._write(self._source()[0], b"x = '" + b"a" * self.rng.choice((100, 50_000)) + b"'\n")

    def _odd_name(self) -> None:
        name = self.rng.choice(
            (
                b"\xff\xfe.py",
                b"a\nb.py",
                b"\x1b[31m.py",
                b"-rf.py",
                b"$(x).py",
                b"a" * 200 + b".py",
                b" .py",
            )
        )
        path = os.path.join(os.fsencode(self.rng.choice(self._folders)), name)
        if not os.path.lexists(path):
            self.leaves += 1
            with open(path, "wb") as file:
                file.write(_CODE)

    def _secret(self) -> None:
        self._write(self.rng.choice((".pem", ".env", ".key")), b"TOKEN=" + CANARY.encode())

    def _binary(self) -> None:
        self._write(self._source()[0], bytes(self.rng.randrange(256) for _ in range(300)) + b"\x00")

    def _deep_folders(self) -> None:
        folder = self.rng.choice(self._folders) / f"n{self.rng.randrange(10**6)}"
        base = len(folder.relative_to(self.root).parts)
        for _ in range(self.rng.choice((3, 90))):
            folder = folder / "d"
        folder.mkdir(parents=True)
        (folder / "a.py").write_bytes(_CODE)
        if base + 90 <= len(folder.relative_to(self.root).parts):
            self.too_deep += 1
        else:
            self.leaves += 1

    def _closed(self) -> None:
        self._write(".py", _CODE).chmod(0)

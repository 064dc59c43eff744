"""What a file is by its name: code, prose, data, or something that is not worth reading."""

from __future__ import annotations

import re

from smara.codegraph.models import FileKind, SkipReason
from smara.core.wordlists import word_set

_CODE = word_set(
    "py pyi pyx pxd ts mts cts tsx js mjs cjs jsx rs go java c h cc cpp cxx hh hpp hxx inl ipp "
    "tpp cu cuh ino"
    " rb php kt kts swift cs fs fsx vb scala sc clj cljs cljc ex exs erl hrl hs lhs ml mli lua pl "
    "pm r jl dart"
    " groovy gradle zig nim cr d pas f f90 f95 for m mm sh bash zsh fish ps1 psm1 bat cmd sql vue "
    "svelte astro"
    " proto thrift graphql gql tf hcl cmake mk el lisp scm rkt asm s v sv vhd vhdl sol vy tcl awk "
    "coffee elm purs"
)
_PROSE = word_set("md markdown mdx rst txt adoc asciidoc org textile tex pod")
_DATA = word_set(
    "json jsonc json5 yaml yml toml ini cfg conf properties xml html htm xhtml css scss sass less "
    "csv tsv plist xsd xsl"
    " wsdl editorconfig ejs hbs j2 jinja jinja2 tmpl tpl mustache pug haml liquid erb ipynb"
)
_BINARY = word_set(
    "png jpg jpeg gif webp bmp ico icns tif tiff psd ai eps pdf doc docx xls xlsx ppt pptx odt "
    "ods odp zip gz tgz bz2"
    " xz zst 7z rar tar jar war ear whl egg so dylib dll exe a lib o obj pdb class pyc pyo pyd "
    "wasm woff woff2 ttf otf"
    " eot mp3 mp4 m4a wav ogg flac avi mov mkv webm db sqlite sqlite3 parquet arrow feather npy "
    "npz pkl pickle h5 hdf5"
    " pt pth onnx safetensors bin dat iso img dmg deb rpm apk ipa mo pack idx"
)
_PROSE_NAMES = word_set(
    "readme license licence copying notice authors contributors contributing changelog changes "
    "history news todo"
    " hacking"
)
_CODE_NAMES = word_set(
    "makefile gnumakefile dockerfile containerfile jenkinsfile vagrantfile rakefile gemfile "
    "podfile brewfile procfile"
    " justfile cmakelists.txt build workspace sconstruct sconscript meson.build"
)
_MADE_NAMES = word_set(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lockb bun.lock "
    "poetry.lock pdm.lock uv.lock"
    " pipfile.lock cargo.lock composer.lock gemfile.lock go.sum go.work.sum mix.lock flake.lock "
    "pubspec.lock"
    " packages.lock.json podfile.lock gradle.lockfile deno.lock"
)
_MINIFIED_NAME = re.compile(
    r".*(?:[.-]min\.(?:js|css|mjs|cjs)|\.(?:bundle|chunk)\.js|\.(?:js|css|ts)\.map|\.map)$"
)


def kind_of(path: str) -> FileKind | SkipReason | None:
    """What a file is by its name: a kind, a reason to leave it out, or ``None`` when its first line
    has to say.

    >>> [kind_of(path) for path in ("a/b.py", "README", "logo.png", "uv.lock", "app.min.js", "run")]
    ['code', 'prose', 'binary', 'generated', 'minified', None]
    """
    name = path.rpartition("/")[2].lower()
    if name in _MADE_NAMES:
        return "generated"
    if _MINIFIED_NAME.match(name):
        return "minified"
    if name in _CODE_NAMES:
        return "code"
    stem, dot, extension = name.rpartition(".")
    if not stem and dot:
        return "data" if extension in _DATA else "unknown"
    if not dot:
        return "prose" if name in _PROSE_NAMES else None
    if extension in _CODE:
        return "code"
    if extension in _PROSE:
        return "prose"
    if extension in _DATA or name == "go.mod":
        return "data"
    if extension in _BINARY:
        return "binary"
    return "prose" if stem in _PROSE_NAMES else "unknown"

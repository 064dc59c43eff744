"""Names that so many things bear that one place in a tree says nothing of who is meant."""

from __future__ import annotations

import io
from pathlib import Path

SHORTEST_GUESS = 4
"""Letters a name has at least before one place that bears it is taken for the one that is meant."""

_WORDS = """
add addAll addEventListener all and any apply append appendChild apply arguments as_bytes as_mut
as_ref as_slice as_str assert assertEqual assertEquals assertTrue assign async at await back begin
bind body borrow borrow_mut build bytes call catch chain charAt charCodeAt chars children clear
click clone close cmp collect compare compareTo concat config connect constructor contains
containsKey context copy count create data debug default delete dequeue deref describe destroy
dispatch display done drain draw each emit empty enable encode end endsWith endswith enqueue entries
entry enumerate equals erase error eval every exec execute exists exit expect expects extend fail
fetch field fields file fill filter filter_map finalize find find_all findAll first flat flatMap
flatten flush fmt fold forEach format free from from_str front get getBytes getClass getElementById
getId getItem getKey getName getOrDefault getState getType getValue global group handle has hasNext
hasOwnProperty hash hashCode head height hide id include includes index indexOf info init insert
insert_one inspect instance into into_iter invoke is_empty is_err is_none is_ok is_some isEmpty
isPresent item items iter iter_mut iterator join key keys kill last lastIndexOf left len length line
lines list listen load local lock log login lookup lower main make map map_err match matches max
merge message method min mock model move name names new next node none not notify now null object
ofType offer offset on once open option options or ord order orElse out output pack parent parse
parse_args patch path peek perform ping poll pop popitem position post pow prepare press prev print
printf println process publish pull push push_back push_str put query queue quit raise random range
read readLine readline receive record reduce ref refresh register reject release reload remove
removeAll render repeat replace replaceAll reply request reserve reset resize resolve response rest
result resume return reverse right round route row run save scan schedule score search seek select
self send serialize session set setItem setName setState setTimeout setUp setValue setup shift show
shutdown sign size skip sleep slice some sort source spawn splice split start starts_with startsWith
startswith stat state status step stop store str stream stringify strip sub submit subscribe
subscriptions substr substring success sum swap sync table tag take task test text then this throw
throws time title to_owned to_string to_vec toArray toBe toEqual toFixed toISOString toJSON
toLowerCase toString toUpperCase token toUpperCase top trace trim type unlock unref unshift
unsubscribe unwrap unwrap_or unwrap_or_else update upper url use user val validate value valueOf
values verify version view visit wait walk warn when where width with with_capacity wrap write
writeln yield zip
"""


def _of_builtins() -> set[str]:
    types = (
        str,
        bytes,
        bytearray,
        list,
        dict,
        set,
        tuple,
        int,
        float,
        complex,
        type,
        object,
        BaseException,
        memoryview,
    )
    streams = (io.TextIOWrapper, io.BytesIO, io.BufferedReader, Path)
    return {name for each in (*types, *streams) for name in dir(each)}


COMMON_NAMES = frozenset(_WORDS.split()) | _of_builtins()


def is_telling(name: str) -> bool:
    """Whether a name is rare enough that the only place that bears it is likely the one that is
    meant.
    """
    return len(name) >= SHORTEST_GUESS and name not in COMMON_NAMES and not name.startswith("__")

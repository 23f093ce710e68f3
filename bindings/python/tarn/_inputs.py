# SPDX-License-Identifier: MIT
"""The inputs that an attention kind declares, and the shapes that they must have."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Tuple, TypeVar

from ._errors import InvalidArgument
from ._library import lib, table

_WIDTHS = ("D", "M", "")  # tarn_input_width; a scalar has no dimension for its width
Array = TypeVar("Array")


class Input(NamedTuple):
    """A row of tarn_attention_inputs()."""

    name: str
    width: str  # a letter of Sizes, or "" for a scalar
    at_keys: bool
    parameter: bool  # one row per head, the same at all positions of all sequences


def _declared(kind: str) -> Tuple[Input, ...]:
    listed = lib.tarn_attention_inputs(kind.encode())
    found: List[Input] = []
    while listed[len(found)].name:
        row = listed[len(found)]
        found.append(Input(row.name.decode(), _WIDTHS[row.width], row.at_keys, row.parameter))
    return tuple(found)


_INPUTS: Dict[str, Tuple[Input, ...]] = {
    name: _declared(name) for name in table("tarn_attention_kind")}


def inputs_of(kind: str) -> Tuple[Input, ...]:
    """The inputs of a kind, which may have options, in order; of an unknown kind, which the
    library will refuse, those that most have."""
    return _INPUTS.get(kind.split(":")[0], _INPUTS["linear"])


class Place(NamedTuple):
    """An input as an argument of a function."""

    name: str
    argument: str
    dimensions: str  # letters of Sizes
    written: Tuple[str, ...]  # the same as the package writes them


class Layout:
    """How a package calls its arguments and orders their dimensions."""

    def __init__(self, arguments: Mapping[str, str], letters: Mapping[str, str],
                 order: str) -> None:
        """arguments: of the inputs that have another name there. letters: of Sizes, where the
        package writes others. order: of an input with positions, "BHN" or "BNH"."""
        self._arguments, self._letters, self._order = arguments, letters, order
        self._places: Dict[str, List[Place]] = {}
        self._main: Dict[str, List[Place]] = {}

    def argument(self, name: str) -> str:
        return self._arguments.get(name, name)

    def places(self, kind: str) -> List[Place]:
        found = self._places.get(kind)
        if found is None:
            found = self._places[kind] = [self._place(one) for one in inputs_of(kind)]
        return found

    def main(self, kind: str) -> List[Place]:
        """Those of query, key and value, which the sizes come from."""
        found = self._main.get(kind)
        if found is None:
            found = self._main[kind] = [place for place in self.places(kind)
                                        if place.name in ("query", "key", "value")]
        return found

    def _place(self, one: Input) -> Place:
        dimensions = "H" if one.parameter else self._order
        dimensions = dimensions.replace("N", "S" if one.at_keys else "N") + one.width
        written = tuple(self._letters.get(letter, letter) for letter in dimensions)
        return Place(one.name, self.argument(one.name), dimensions, written)


class Sizes(NamedTuple):
    B: int
    H: int
    N: int
    S: int
    D: int
    M: int

    def shape(self, dimensions: str) -> Tuple[int, ...]:
        return tuple([self["BHNSDM".index(letter)] for letter in dimensions])


def _keys_count(causal: bool, queries: int, keys: int, values: int) -> int:
    """How many keys and values there should be, so that a refusal names the one that has another
    number: those of the keys, unless the values alone have as many as causal queries need."""
    return values if causal and values == queries else keys


def _refuse_unknown(kind: str, given: Mapping[str, Any], layout: Layout) -> None:
    names = [one.name for one in inputs_of(kind)]
    for name in given.keys() - names:
        if given[name] is None:
            continue
        called = layout.argument(name)
        if name == "key":
            raise InvalidArgument(f"{called} must be None: '{kind}' attention uses its "
                                  "queries as keys")
        raise InvalidArgument(f"{called} is not an input of '{kind}' attention, which "
                              f"takes {', '.join(names)}")


def checked(kind: str, given: Mapping[str, Any], sizes: Sizes, layout: Layout,
            floats: Callable[..., Array]) -> Dict[str, Array]:
    """The inputs of a kind, in its order, of these sizes. `floats` makes an array from an
    argument's name, value, dimensions and, if that is known, shape."""
    _refuse_unknown(kind, given, layout)
    return {name: floats(argument, given.get(name), written, sizes.shape(dimensions))
            for name, argument, dimensions, written in layout.places(kind)}


def sizes_of(kind: str, causal: bool, layout: Layout,
             shapes: Tuple[Tuple[int, ...], ...]) -> Tuple[Sizes, bool]:
    """The sizes that query, key and value have, and whether their shapes agree with these."""
    lengths = {place.name: dict(zip(place.dimensions, shape))
               for place, shape in zip(layout.main(kind), shapes)}
    query, value = lengths["query"], lengths["value"]
    keys = _keys_count(causal, query["N"], lengths.get("key", value)["S"], value["S"])
    sizes = Sizes(query["B"], query["H"], query["N"], keys, query["D"], value["M"])
    agree = all(tuple(lengths[place.name].values()) == sizes.shape(place.dimensions)
                for place in layout.main(kind))
    return sizes, agree


known_sizes = lru_cache(maxsize=256)(sizes_of)  # for shapes that are numbers


def arranged(kind: str, causal: bool, given: Mapping[str, Any], layout: Layout,
             floats: Callable[..., Array],
             sizes_of: Callable[..., Tuple[Sizes, bool]] = sizes_of
             ) -> Tuple[Dict[str, Array], Sizes]:
    """checked(), with the sizes that query, key and value have."""
    arrays, shapes, main = dict(given), [], layout.main(kind)
    for name, argument, _, written in main:
        array: Any = floats(argument, given.get(name), written)
        arrays[name] = array
        shapes.append(tuple(array.shape))
    sizes, agree = sizes_of(kind, causal, layout, tuple(shapes))
    found = arrays
    if not agree or len(arrays) != len(main) or len(main) != len(layout.places(kind)):
        found = checked(kind, arrays, sizes, layout, floats)
    if causal and sizes.S != sizes.N:
        raise InvalidArgument(f"keys is {sizes.S} and queries is {sizes.N}; causal attention "
                              "needs them equal")
    return found, sizes

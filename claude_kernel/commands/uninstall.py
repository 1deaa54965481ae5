"""`claude-kernel uninstall`: removes what `install` registered, and nothing else. Safe to repeat."""

from __future__ import annotations

import argparse

from claude_kernel.commands.printing import plain, say
from claude_kernel.commands.specs import add_place_arguments, chosen_places, remove_spec

add_arguments = add_place_arguments


def run(arguments: argparse.Namespace) -> int:
    for place in chosen_places(arguments):
        where = plain(place.folder)
        if place.marked:
            remove_spec(place)
            say(f"{place.name} was removed: {where}")
        elif place.of_package:
            say(f"{place.name} was left: it is part of the package, removed by `pip uninstall claude-kernel`: {where}")
        elif place.taken:
            say(
                f"{place.name} was left: `claude-kernel install` did not put it there; "
                f"`jupyter kernelspec remove {place.name}` removes it: {where}"
            )
        else:
            say(f"{place.name} is not registered: {where}")
    return 0

"""`claude-kernel install`: makes Jupyter know the kernels, also a Jupyter of another environment. Safe to repeat."""

from __future__ import annotations

import argparse

from claude_kernel.commands.printing import complain, plain, say
from claude_kernel.commands.specs import add_place_arguments, chosen_places, put_spec

add_arguments = add_place_arguments


def run(arguments: argparse.Namespace) -> int:
    refused = False
    for place in chosen_places(arguments):
        where = plain(place.folder)
        if place.of_package:
            say(f"{place.name} is there already, as part of the package: {where}")
        elif place.taken and not place.ours:
            refused = True
            complain(
                f"another kernel is called {place.name}: {where}. It was left as it is; "
                f"`jupyter kernelspec remove {place.name}` removes it."
            )
        else:
            again = place.taken
            put_spec(place)
            say(f"{place.name} was registered{' anew' if again else ''}: {where}")
    return 1 if refused else 0

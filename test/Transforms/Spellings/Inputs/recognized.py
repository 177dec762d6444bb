"""How many of a program's kernels a transform takes: recognized.py PROGRAM TRANSFORM[{PARAMS}] SIGN OUT.

Without PARAMS it is applied once the block's shape is fixed, where it is offered.

A kernel counts where the transform applies to it and the new kernel holds SIGN, a regular expression for what the
accumulation becomes (a loop that only stores may be shared out as well). It may be prepared by other actions. OUT gets
the program with all of them.
"""

import functools
import re
import subprocess
import sys


@functools.cache
def optiml_opt(*arguments):
    return subprocess.run(["optiml-opt", "--block=64x1", *arguments], capture_output=True, text=True)


def kernels(program):
    names = re.findall(r"^[\w-]+\[((?:[\w<>, ]|::)+)", optiml_opt("--list-sites", program).stdout, re.MULTILINE)
    return list(dict.fromkeys(names))


def prepared(program, kernel, wanted):
    """Actions after which the kernel has one row a thread and its results in registers, or a block's shape."""
    actions = []
    for _ in range(5):
        passes = [f"--passes={';'.join(actions)}"] if actions else []
        sites = optiml_opt("--list-sites", *passes, program).stdout.splitlines()
        found = next((site for site in sites if site.startswith(wanted)), None)
        if not found:
            break
        actions.append(found)
    return actions


def main():
    program, transform, sign, out = sys.argv[1:]
    name, params = re.fullmatch(r"([\w-]+)(.*)", transform).groups()
    taken = []
    names = kernels(program)
    for kernel in names:
        rows = (f"thread-per-iteration[{kernel}]", f"promote-accumulator[{kernel}/")
        for wanted in ((), rows) if params else ((f"block-shape[{kernel}]", f"{name}[{kernel}:"),):
            recipe = prepared(program, kernel, wanted)
            if params:
                recipe.append(f"{name}[{kernel}]{params}")
            result = optiml_opt("--kernels-only", f"--passes={';'.join(recipe)}", program)
            good = result.returncode == 0 and re.search(sign, result.stdout)
            if good:
                break
        if good:
            taken += recipe
        else:
            print(f"not {kernel}: {result.stderr.strip()[-160:] or 'something else of it'}")
    print(f"{len({action.split('[')[1].split(':')[0] for action in taken if action.startswith(name)})} of {len(names)}")
    with open(out, "w", encoding="utf-8") as file:
        file.write(optiml_opt("--emit", f"--passes={';'.join(taken)}", program).stdout)


main()

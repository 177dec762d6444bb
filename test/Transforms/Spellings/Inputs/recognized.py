"""How many of a program's kernels a transform takes: recognized.py PROGRAM TRANSFORM{PARAMS} SIGN OUT.

A kernel counts where the transform applies to it and the new kernel holds SIGN, a regular expression for what the
accumulation becomes (a loop that only stores may be shared out as well). It may be prepared by other actions. OUT gets
the program with all of them.
"""

import re
import subprocess
import sys


def optiml_opt(*arguments):
    return subprocess.run(["optiml-opt", *arguments], capture_output=True, text=True)


def kernels(program):
    names = re.findall(r"^[\w-]+\[([\w<>, :]+)", optiml_opt("--list-sites", program).stdout, re.MULTILINE)
    return list(dict.fromkeys(names))


def prepared(program, kernel):
    """Actions after which the kernel has one row a thread and its results in registers."""
    actions = []
    for _ in range(5):
        passes = [f"--passes={';'.join(actions)}"] if actions else []
        sites = optiml_opt("--list-sites", *passes, program).stdout.splitlines()
        wanted = (f"thread-per-iteration[{kernel}]", f"promote-accumulator[{kernel}/")
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
        for prepare in (False, True):
            recipe = [*(prepared(program, kernel) if prepare else []), f"{name}[{kernel}]{params}"]
            result = optiml_opt("--kernels-only", f"--passes={';'.join(recipe)}", program)
            good = result.returncode == 0 and re.search(sign, result.stdout)
            if good:
                break
        if good:
            taken += recipe
        else:
            print(f"not {kernel}: {result.stderr.strip()[-160:] or 'something else of it'}")
    print(f"{sum(action.startswith(name) for action in taken)} of {len(names)}")
    with open(out, "w", encoding="utf-8") as file:
        file.write(optiml_opt("--emit", f"--passes={';'.join(taken)}", program).stdout)


main()

# Stands between a search and its real optiml-worker, and makes things go wrong:
#
#   OPTIML_WORKER="python3 proxy.py FOLDER --bad=bad.cubin 2=loops 3=kill"
#
# With --ready only requests count that come once the worker was prepared with made-up inputs, on which variants are
# verified.
# Of the evaluate requests with one candidate (counted from 1, also beyond a restart, in FOLDER/count) the second
# launches kernel `loops` of bad.cubin instead of the variant's; on the third the real worker is killed and nothing is
# answered. FOLDER/log.jsonl tells what was asked and answered. The kernels take what the original takes.
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

SHARED = 1 << 20  # bytes that kernel `shared` asks for: more than any GPU has


def count(folder):
    path = os.path.join(folder, "count")
    number = 1
    if os.path.exists(path):
        with open(path) as text:
            number = int(text.read()) + 1
    with open(path, "w") as text:
        text.write(str(number))
    return number


def sabotage(request, cubin, kernel):
    candidate = request["candidates"][0]
    candidate["cubin"] = cubin
    for launch in candidate["launches"]:
        step = launch["steps"][0]
        step["kernel"] = kernel
        step["sharedBytes"] = SHARED if kernel == "shared" else 0
        step["arguments"] = [0, 1, 2, 3]  # of rows.cu
        launch["steps"] = [step]
    return (json.dumps(request) + "\n").encode()


def main():
    folder, faults, bad, rest = sys.argv[1], {}, "", []
    counts = True
    for word in sys.argv[2:]:
        fault = re.fullmatch(r"(\d+)=(\w+)", word)
        if fault:
            faults[int(fault.group(1))] = fault.group(2)
        elif word == "--ready":
            counts = False
        elif word.startswith("--bad="):
            bad = os.path.abspath(word[6:])
        else:
            rest.append(word)
    real = shutil.which(os.environ.get("OPTIML_REAL_WORKER", "optiml-worker"))
    if "--replay" in rest:  # under compute-sanitizer or ncu
        os.execv(real, [real] + rest)
    os.makedirs(folder, exist_ok=True)
    child = subprocess.Popen([real] + rest, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answer():
        line = child.stdout.readline()
        if not line:
            sys.exit(child.wait())
        return line

    def forward(line):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    def note(entry):
        with open(os.path.join(folder, "log.jsonl"), "a") as log:
            log.write(json.dumps(entry) + "\n")

    forward(answer())
    for line in sys.stdin.buffer:
        request, entry = json.loads(line), None
        if request["do"] == "prepare":
            counts = counts or any(case["inputs"] for case in request["cases"])
        if counts and request["do"] == "evaluate" and len(request["candidates"]) == 1:
            number = count(folder)
            entry = {"number": number, "fault": faults.get(number, ""), "cubin": request["candidates"][0]["cubin"]}
            if entry["fault"] not in ("", "kill"):
                line = sabotage(request, bad, entry["fault"])
        child.stdin.write(line)
        child.stdin.flush()
        if entry and entry["fault"] == "kill":
            time.sleep(0.02)
            child.send_signal(signal.SIGKILL)
            child.wait()
            note(entry)
            os._exit(1)
        line = answer()
        reply = json.loads(line)
        if entry:  # before the answer: the search may end this process after it
            entry.update({name: reply["candidates"][0][name] for name in ("verdict", "why")})
            note(entry)
        forward(line)
        if reply.get("lost"):
            break
    child.stdin.close()
    sys.exit(child.wait())


main()

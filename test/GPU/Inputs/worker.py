# Speaks optiml-worker's protocol (include/optiml/Gpu/Protocol.h), for tests.
#
#   worker.py cubin NVCC FILE.cu OUT.cubin    compiles for the worker's GPU
#   worker.py describe WORKLOAD               what a capture kept
#   worker.py replay WORKLOAD FILE.cubin      evaluates every kept launch of the original against itself
import json
import os
import subprocess
import sys


class Workload:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        with open(os.path.join(folder, "workload.json")) as text:
            self.about = json.load(text)
        self.launches = self.about["launches"]

    def step(self, index, **changes):
        """The launch as the program made it."""
        launch = self.launches[index]
        step = {name: launch[name] for name in ("kernel", "grid", "block", "sharedBytes")}
        step["arguments"] = list(range(len(launch["arguments"])))
        step.update(changes)
        return step


class Worker:
    """A worker that is started again when it has ended, and told the same as before."""

    def __init__(self, workload, cubin, cases=None):
        self.workload = workload
        if cases is None:
            cases = [case(i) for i in range(len(workload.launches))]
        self.load = {"do": "load", "workload": workload.folder, "seed": 1}
        cubin = os.path.abspath(cubin)
        self.prepare = {"do": "prepare", "cubin": cubin, "cases": cases, "careful": False, "cold": False}
        self.process = None
        self.starts = 0

    def start(self):
        self.starts += 1
        self.process = subprocess.Popen(["optiml-worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.greeting = json.loads(self.process.stdout.readline())
        for request in (self.load, self.prepare):
            reply = self.ask(request)
            if reply["why"]:
                sys.exit("%s: %s" % (request["do"], reply["why"]))

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the worker ended without an answer, exit code %s" % self.process.wait(60))
        return json.loads(line)

    def evaluate(self, cubin, index, **changes):
        """The verdict, the reason, and whether the worker goes on."""
        if not self.process:
            self.start()
        launch = {"launch": index, "scratch": [], "steps": [self.workload.step(index, **changes)]}
        reply = self.ask(
            {
                "do": "evaluate",
                "candidates": [{"cubin": os.path.abspath(cubin), "launches": [launch]}],
                "verify": True,
                "leastRounds": 5,
                "mostRounds": 10,
                "precision": 0.05,
                "seconds": 0.02,
                "hopeless": 0,
            }
        )
        if reply["lost"]:  # it ends by itself
            self.process.wait(60)
            self.process = None
        if reply["why"]:
            sys.exit("evaluate: " + reply["why"])
        own = reply["candidates"][0]
        return own["verdict"], own["why"], not reply["lost"]

    def end(self):
        if self.process:
            self.process.stdin.close()
            return self.process.wait(60)


def case(launch, inputs={}, bounds=[]):
    name = "other inputs of launch %d" if inputs else "captured launch %d"
    return {"launch": launch, "name": name % launch, "inputs": inputs, "bounds": bounds}


def cubin(nvcc, source, into):
    greeting = subprocess.run(["optiml-worker"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if greeting.returncode:
        sys.exit(greeting.stderr)
    arch = "-arch=sm_%d" % json.loads(greeting.stdout)["arch"]
    sys.exit(subprocess.run([nvcc, arch, "-cubin", source, "-o", into]).returncode)


def describe(folder):
    workload = Workload(folder)
    kept = workload.launches
    about = workload.about
    print("%d launches, %d kept, left out: %s" % (about["totalLaunches"], len(kept), about["leftOut"]))
    weights = {}
    for launch in sorted(kept, key=lambda launch: launch["sequence"]):
        weights.setdefault(launch["name"], []).append(launch["weight"])
    for name in sorted(weights):
        print("%s stands for %s" % (name, ", ".join("%g" % weight for weight in weights[name])))
    buffers = [b for launch in kept for b in launch["buffers"] if b.get("symbol")]
    for name in sorted({b["symbol"] for b in buffers}):
        constant = any(b.get("constant") for b in buffers if b["symbol"] == name)
        print("variable %s%s" % (name, ", constant" if constant else ""))


def replay(folder, original):
    workload = Workload(folder)
    worker = Worker(workload, original)
    for index in sorted(range(len(workload.launches)), key=lambda i: workload.launches[i]["sequence"]):
        launch = workload.launches[index]
        verdict, why, _ = worker.evaluate(original, index)
        print("%s, launch %d: %s%s" % (launch["name"], launch["sequence"], verdict, ": " + why if why else ""))
    print("the worker ended with", worker.end())


if __name__ == "__main__":
    {"cubin": cubin, "describe": describe, "replay": replay}[sys.argv[1]](*sys.argv[2:])

# A worker without a GPU: greets as its first argument says, then answers nothing.
#
#   good     like optiml-worker on a GPU of 2024
#   older    like one of another version of OptiML
#   noise    like a program that is no worker
#   broken   like a worker that finds its driver too old
import json
import sys

GREETING = {
    "worker": 1,
    "name": "NVIDIA H200",
    "chip": "",
    "arch": 90,
    "driver": 13000,
    "devices": 1,
    "multiprocessors": 132,
    "memoryBytes": 150 << 30,
    "l2Bytes": 60 << 20,
}
how = sys.argv[1]
if how == "broken":
    sys.exit("optiml-worker: error: the driver is too old")
if how == "noise":
    print("Last login: yesterday", flush=True)
else:
    print(json.dumps(dict(GREETING, worker=1 if how == "good" else 0)), flush=True)
sys.stdin.read()

# Prints what the one trajectory of a store holds.
#
#   trajectory.py STORE failures    "verdict: reason" of every evaluation that failed, at once or when it was verified
#   trajectory.py STORE times       measured and predicted seconds of the winner, counters of the original
import glob
import json
import sys


def read(store):
    (path,) = glob.glob(store + "/trajectories/*.jsonl")
    with open(path) as lines:
        return [json.loads(line) for line in lines if line.endswith("\n")]


def evaluations(rows):
    return [row for row in rows if row["event"] == "evaluation"]


def failures(rows):
    for row in rows:
        if row["event"] == "evaluation" and row["verdict"] not in ("correct", "predicted"):
            print("%s: %s" % (row["verdict"], row["why"]))
        if row["event"] == "refused":
            print(row["why"])


def times(rows):
    (result,) = [row for row in rows if row["event"] == "result"]
    best, base = result["best"]["measurement"], result["baseline"]["measurement"]
    print("improved:", result["improved"])
    print("winner: predicted=%s" % best["time"]["predicted"])
    print("winner: measured %.9f s" % best["time"]["seconds"])
    print("winner: predicted %.9f s" % best["counters"]["predicted_seconds"])
    for name in sorted(base["counters"]):
        if name.endswith("_utilization"):
            print("original: %s %.3f" % (name, base["counters"][name]))


if __name__ == "__main__":
    {"failures": failures, "times": times}[sys.argv[2]](read(sys.argv[1]))

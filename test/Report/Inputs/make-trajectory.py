"""Prints a small trajectory, as a search on a GPU would leave it."""
import json


def measured(seconds, verdict="correct", **counters):
    return {"verdict": verdict, "why": "", "bottleneck": "dram", "reward": 0, "guardrails": [], "cost": 0.1,
            "counters": {"dram_bytes": 1e9, "l2_bytes": 2e9, "roofline": 0.25, "time.fp32": 1e-5, **counters},
            "resources": {"registers": 32, "occupancy": 0.5, "staticShared": 0, "spillStores": 0, "spillLoads": 0},
            "time": {"seconds": seconds, "baseline": 6e-4, "predicted": False, "perLaunch": [seconds]}}


def evaluation(number, recipe, seconds, verdict="correct"):
    return {"event": "evaluation", "number": number, "recipe": recipe, "key": f"key{number}", "speedup": 6e-4 / seconds,
            "improved": verdict == "correct" and number > 0, "recalled": False, "elapsed": number * 0.5,
            **measured(seconds, verdict)}


BLOCK, UNROLL = "block-shape[k]{x=32}", "unroll[k/i]"
BEFORE = "__global__ void k(float *a) {\n  a[0] = 1; // </script> & \"x\"\n}\n"
best = {"key": "key2", "recipe": f"{BLOCK};{UNROLL}", "speedup": 3.0, "measurement": measured(2e-4)}
events = [
    {"event": "search", "file": "/home/a/k.cu", "gpu": "NVIDIA H200", "measured": True, "fp": "reassoc", "cuda": "13.0",
     "command": "optiml-clang -O-search k.cu", "date": "2026-01-01T00:00:00", "version": "0", "source": BEFORE,
     "arguments": [], "peaks": {"dram": 4.3e12, "l2": 5.5e12, "fp32": 6e13, "fp64": 3e13, "int32": 1e13, "issue": 1e13},
     "kernels": [{"name": "k", "symbol": "_Z1kPf", "line": 1, "source": BEFORE, "launches": ["grid (1, 1, 1)"]}],
     "launches": [{"kernel": "k", "times": 1}], "leftAsTheyAre": [{"kernel": "other", "why": "k.cu:9: <asm>"}]},
    evaluation(0, "", 6e-4),
    evaluation(1, BLOCK, 3e-4, "predicted"),
    evaluation(2, f"{BLOCK};{UNROLL}", 2e-4),
    evaluation(3, "coarsen[k]", 1e-4, "wrong-result"),
    {"event": "judge", "text": "</script><b>"},
    {"event": "winner", "missed": [], "emitted": BEFORE + BEFORE.replace(" k(", " k_optiml("),
     "steps": [{"action": BLOCK, "transform": "block-shape", "kernel": "k", "line": 0, "key": "key1", "before": BEFORE,
                "after": BEFORE.replace("[0]", "[1]"), "conditions": [], "onlyTested": False},
               {"action": UNROLL, "transform": "unroll", "kernel": "k", "line": 2, "key": "key2",
                "before": BEFORE.replace("[0]", "[1]"), "after": "#pragma unroll\n" + BEFORE,
                "conditions": [{"holds": "n < 3", "because": "a < b"}], "onlyTested": False}]},
    {"event": "result", "replaced": True, "baselineSeconds": 6e-4, "bestSeconds": 2e-4, "speedup": 3.0,
     "speedupLow": 2.9, "speedupHigh": 3.1, "programSpeedup": 2.5, "programSeconds": 1e-3,
     "programSecondsOptimized": 4e-4, "bottleneck": "dram", "recipeText": best["recipe"], "evaluations": 3,
     "stopText": "nothing is left to try", "verified": "1 launches compared", "gpu": "NVIDIA H200", "notes": ["<note>"],
     "otherSizes": ["1 2 3"], "originalFaults": [], "best": best,
     "baseline": {"key": "key0", "recipe": "", "speedup": 1.0, "measurement": measured(6e-4)}},
]
for event in events:
    print(json.dumps(event))

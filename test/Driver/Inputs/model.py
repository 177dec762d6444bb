"""A language model by script: model.py MODE STATE. One question on standard input, one answer on standard output.

MODE   good     ranks qualify-pointers first; writes a kernel that is out of bounds, then mends it
       hostile  answers that want more than they may, one after the other
       broken   no answer can be used
       slow     as good, after two and a half seconds each
STATE  a file that counts the questions of each purpose
"""
import json
import re
import sys
import time

mode, state = sys.argv[1:]
question = json.load(sys.stdin)
purpose = question["purpose"]
prompt = question["messages"][-1]
prompt = prompt.get("text") or prompt.get("content") or ""
with open(state, "a+") as file:
    file.write(purpose.split("/")[0] + "\n")
    file.seek(0)
    number = file.read().split().count(purpose.split("/")[0])

INDEX = "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
LOOP = (
    INDEX + "  if (i < n) {\n    float sum = out[i];\n    for (int k = 0; k < m; ++k)\n"
    "      sum += a[k * n + i%s];\n    out[i] = sum;\n  }\n"
)


def kernel(body, helpers="", **more):
    return dict({"body": body, "helpers": helpers, "grid": ["grid.x", "1", "1"], "block": ["block.x", "1", "1"],
                 "shared": "0", "reason": "the sum in a register"}, **more)


# What only a search shows; unit tests (KernelTextTest, KernelWriterTest) have many more.
HOSTILE = [
    kernel("} int main() { return 0; } void f() {"),
    kernel("  bool on = " + "!" * 950 + "n;\n" + LOOP % ""),  # the compiler runs out of stack
    kernel(LOOP % " + 1"),  # reads past the end
]


def answer():
    if mode == "broken":
        return ["not JSON", '{"actions": [', '{"actions": "all"}', "[]"][number % 4]
    if purpose == "judge":
        return {"bottleneck": "launch", "confidence": 0.6, "reason": "it is short"}
    if purpose.startswith("propose"):
        if mode == "hostile":
            return {"actions": [{"transform": "replace-body", "site": "rows", "params": {"text": "x"}},
                                {"transform": "include", "site": "/etc/passwd", "params": {}},
                                {"transform": "unroll", "site": "rows/k", "params": {"factor": 1000000}}]}
        return {"actions": [{"transform": "qualify-pointers", "site": "rows", "params": {}, "confidence": 1,
                             "reason": "no aliasing"},
                            {"transform": "levitate", "site": "rows", "params": {}, "confidence": 1, "reason": "up"}]}
    if purpose == "kernel/plan":
        return {"kernel": "rows", "plan": "Keep the sum in a register."}
    if mode == "hostile":
        return HOSTILE[(number - 2) % len(HOSTILE)]  # the plan was the first
    if purpose == "kernel/repair":
        assert "It was refused" in prompt, prompt
        return kernel(LOOP % "", grid=["ceildiv(n, 64)", "1", "1"], block=["64", "1", "1"])
    return kernel(LOOP % " + 1")


if mode == "slow":
    time.sleep(2.5)
reply = answer()
print(json.dumps({"text": reply if isinstance(reply, str) else json.dumps(reply), "stop": "end"}))

"""An agent without a model: from a naive softmax to a faster one that is verified, through the tools alone."""
import json
import os
import sys

from client import Client

ROW_SUM = """
  int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
  if (row < rows) {
    float sum = 0.0f, m = maximum[row];
    for (int j = lane + FIRST; j < cols; j += 32)
      sum += expf(x[row * cols + j] - m);
    for (int offset = 16; offset > 0; offset /= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0)
      total[row] = sum;
  }
"""
LAUNCH = {"grid": ["ceildiv(rows, 4)", "1", "1"], "block": ["128", "1", "1"]}

root, workspaces = sys.argv[1:3]
agent = Client("--root=" + root, "--workspaces=" + workspaces, "--backend=cpu", "--evaluations=20")
about = agent.start()
print("revision", about["protocolVersion"], "of", about["serverInfo"]["name"])
names = [tool["name"] for tool in agent.ask("tools/list")["result"]["tools"]]
print("tools", " ".join(names))

opened = agent.well("open", source="softmax.cu")
print("kernels", " ".join(opened["kernels"]), "at", opened["original"]["speedup"])
assert any(note["method"] == "notifications/progress" and note["params"]["progressToken"] == "p"
           for note in agent.notifications), agent.notifications
kernels = {kernel["name"]: kernel for kernel in agent.well("program")["kernels"]}
print("launch", kernels["row_sum"]["launches"][0])
assert "expf" in agent.well("program", part="source")["text"]
legal = [action["action"] for action in agent.well("list_actions", filter="row_max")["actions"]]
print("legal", "distribute-loop[row_max]" in legal)
print("why not:", agent.well("explain", action="split-reduction[normalize]")["why"])
code = agent.well("compile", recipe="promote-accumulator[row_sum/j:total]", code="ptx")
print("compiled:", all(kernel["registers"] > 0 for kernel in code["kernels"]), ".entry" in code["text"])

# What the rules find for the first kernel.
tuned = agent.well("tune", evaluations=4)
print("tuned", tuned["improved"], tuned["evaluations"])
recipe = "distribute-loop[row_max]{rows=8,threads=32}"
tried = agent.well("try_recipe", recipe=recipe)
print("row_max is faster:", tried["speedup"] > 1.2)

# A text for the second one: at first with a fault, which is shown with its input.
print("refused:", agent.refused("try_kernel", kernel="row_sum", body=ROW_SUM.replace("FIRST", "1"), recipe=recipe,
                                **LAUNCH))
text = agent.well("try_kernel", kernel="row_sum", body=ROW_SUM.replace("FIRST", "0"), recipe=recipe, **LAUNCH)
print("with the text, faster still:", text["speedup"] > tried["speedup"])
shown = agent.well("show", recipe=text["recipe"])["kernels"]
print("only tested:", {kernel["kernel"]: kernel["onlyTested"] for kernel in shown})
profile = agent.well("profile", recipe=text["recipe"])
assert profile["counters"]["dram_bytes"]["variant"] > 0 and len(profile["launches"]) == 3, profile

# A change of host code: fewer, larger blocks; and one that leaves rows out.
program = agent.well("program", part="source")["text"]
changed = agent.well("try_program", text=program.replace("const int threads = 128", "const int threads = 256"))
print("changed program:", changed["verdict"], changed["runs"] > 5 and changed["speedup"] > 0.5)
said, refused = agent.do("try_program", text=program.replace("row_sum<<<(rows + threads - 1)", "row_sum<<<(rows)"))
assert refused and said["findings"] or said["why"], said
print("faulty program:", said["verdict"])

history = agent.well("history")
assert history["best"]["speedup"] >= text["speedup"], history
print("left", history["evaluationsLeft"])
submitted = agent.well("submit", recipe=text["recipe"])
program = open(submitted["program"]).read()
print("submitted", "row_sum_optiml" in program, json.load(open(submitted["recipeFile"]))["recipe"] == text["recipe"])
source = agent.ask("resources/read", {"uri": "optiml://source"})["result"]["contents"][0]["text"]
print("resource", "__global__" in source)
os.symlink(submitted["program"], os.path.join(workspaces, "submitted.cu"))
agent.end()

# Another server goes on with the workspace: its budget, what was tried, the text.
agent = Client("--root=" + root, "--workspaces=" + workspaces, "--backend=cpu")
agent.start("2025-06-18")
again = agent.well("open", workspace=opened["workspace"])
print("left", again["evaluationsLeft"])
print("the text is known:", agent.well("try_recipe", recipe=text["recipe"])["speedup"] == text["speedup"])
agent.end()

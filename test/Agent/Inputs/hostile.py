"""A client that does everything wrong: each time one clear answer, and the server goes on."""
import json
import os
import random
import sys

from client import Client

root, workspaces = sys.argv[1:3]
agent = Client("--root=" + root, "--workspaces=" + workspaces, "--backend=cpu", "--evaluations=40")


def error(text):
    agent.write(text + "\n")
    return agent.read()["error"]


print("early:", agent.ask("tools/list")["error"]["message"])
agent.start("1999-01-01")
for text in ("{", "[]", "7", "\"x\"", "[" * 100000, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
             "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", "{\"jsonrpc\":\"2.0\",\"id\":1}",
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\\u0000y\"}", "x" * (9 << 20),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}"):
    assert error(text)["code"] in (-32700, -32600, -32601), text[:40]
print("no tool:", agent.ask("tools/call", {"name": "rm", "arguments": {}})["error"]["message"])
print("no resource:", agent.ask("resources/read", {"uri": "file:///etc/passwd"})["error"]["message"])
print("before open:", agent.refused("try_recipe", recipe="x"))

# Paths and flags.
os.symlink("/etc", os.path.join(root, "link"))
for source in ("/etc/passwd", "../outside.cu", "link/passwd", "missing.cu", "", "softmax.cu/../../x.cu"):
    print("source:", agent.refused("open", source=source))
for flag in ("-o/tmp/x", "-ccbin=/bin/sh", "-Xcompiler=-fplugin=x.so", "-I/etc", "-I../..", "@file", "-DX=`id`"):
    print("flag:", agent.refused("open", source="softmax.cu", flags=[flag]))
for workspace in ("../..", "deadbeef", "x" * 1000):
    print("workspace:", agent.refused("open", workspace=workspace))
for arguments in ({"source": 7}, {"source": "softmax.cu", "more": 1}, {"flags": [1]}):
    print("argument:", agent.refused("open", **arguments))

agent.well("open", source="softmax.cu")
for recipe in ("x", "unroll[", "unroll[row_sum/j]{factor=0}", "unroll[row_sum/j]{factor=-1}", ";;",
               "replace-body[row_sum]{text=0}", "a" * 100000):
    assert agent.refused("try_recipe", recipe=recipe)
for body in ("#include \"/etc/passwd\"", "} int main() { return system(\"id\"); } void f() {", "asm(\"trap;\");",
             "for (;;) ;", "total[1 << 30] = 1;", "total[threadIdx.x] = 0;", "", "\\", "\u0000", "x" * 200000,
             "static int n; n = __builtin_popcount(3);", "__attribute__((constructor)) void f();"):
    why = agent.refused("try_kernel", kernel="row_sum", body=body)
    print("text:", why.splitlines()[0][:120])
# Programs: what a compiler would read, and what the host code would do.
program = agent.well("program", part="source")["text"]
for line in ("#include \"/etc/passwd\"", "#embed \"/etc/passwd\"", "asm(\".incbin \\\"/etc/passwd\\\"\");",
             "int x = system(\"id\");", "int y = __has_include(\"/etc/shadow\");"):
    print("program:", agent.refused("try_program", text=line + "\n" + program))
for deed in ("{ int *p = 0; *p = 1; }", "for (;;) ;", "while (1) malloc(1 << 20);",
             "{ long n = 41; (void)!write(1, &n, 8); } exit(0);"):
    changed = program.replace("  const size_t count", deed + "\n  const size_t count", 1)
    said, refused = agent.do("try_program", text=changed, seconds=1)
    assert refused, (deed, said)
print("no file:", agent.refused("try_program", file="../x.cu"))
print("kernel:", agent.refused("try_kernel", kernel="nothing", body=""))
print("grid:", agent.refused("try_kernel", kernel="row_sum", body=";", grid=["1"]))
print("submit:", agent.refused("submit", recipe="unroll[row_sum/j]{factor=0}"))
print("nothing to submit:", agent.refused("submit", recipe=""))
assert not [name for name in os.listdir(workspaces) for _ in os.listdir(os.path.join(workspaces, name))
            if _.startswith("submission")]

# A search that is cancelled; and one call of which nobody wants the answer.
said, refused = agent.call("tune", evaluations=30)
if said.get("status") == "running":
    agent.call("cancel", handle=said["handle"])
print("handle:", agent.refused("wait", handle="tune-99"))
number = agent.begin("tools/call", {"name": "history", "arguments": {}})
agent.say("notifications/cancelled", requestId=number)

# Random calls: arguments of all kinds for tools of all kinds.
random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in agent.ask("tools/list")["result"]["tools"]}
values = ["", "x", "unroll[row_sum/j]{factor=2}", "row_sum", 0, -1, 1 << 70, 0.5, None, True, [], ["x"], {}]
for _ in range(150):
    tool = random.choice(sorted(set(tools) - {"open", "tune"}))
    chosen = {name: random.choice(values) for name in tools[tool] if random.random() < 0.7}
    reply = agent.ask("tools/call", {"name": tool, "arguments": chosen})
    assert "result" in reply, reply
print("still there:", agent.ask("ping")["result"])
agent.end()

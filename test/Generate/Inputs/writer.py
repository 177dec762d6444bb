"""A language model by script that writes programs: writer.py MODE STATE. One question on standard input, one answer on
standard output.

MODE   good      knows how to add vectors and to count Collatz steps; its first straight answer for vectors computes
                 something else and checks against that, and is mended
       liar      programs whose self-check proves nothing, one after the other
       confused  asks the library for what it does not have, and is mended
       hostile   answers that want more than they may, one after the other
STATE  a file that counts the answers of liars and hostiles
"""
import json
import sys

mode, state = sys.argv[1:]
question = json.load(sys.stdin)
purpose = question["purpose"]
prompt = question["messages"][-1]
prompt = prompt.get("text") or prompt.get("content") or ""
everything = json.dumps(question)

PROGRAM = """#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
%(top)s
__global__ void add(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = %(formula)s;
}

void launch(const float *x, const float *y, float *out, int n) {
  %(launch)s
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 100000;
  std::vector<float> x(n), y(n), got(n);
  for (int i = 0; i < n; i++) {
    x[i] = i %% 17 - 8.0f;
    y[i] = i %% 13 * 0.5f;
  }
  float *dX, *dY, *dOut;
  size_t bytes = n * sizeof(float);
  cudaMalloc(&dX, bytes);
  cudaMalloc(&dY, bytes);
  cudaMalloc(&dOut, bytes);
  cudaMemcpy(dX, x.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(dY, y.data(), bytes, cudaMemcpyHostToDevice);
  launch(dX, dY, dOut, n);
  cudaMemcpy(got.data(), dOut, bytes, cudaMemcpyDeviceToHost);
  int wrong = 0;
  %(check)s
  %(extra)s
  printf("%%s n=%%d\\n", wrong ? "FAILED" : "PASSED", n);
  return wrong != 0;
}
"""
GOOD = dict(top="", formula="x[i] + y[i]", launch="add<<<(n + 255) / 256, 256>>>(x, y, out, n);", extra="",
            check="for (int i = 0; i < n; i++)\n    wrong += !(fabs(got[i] - ((double)x[i] + y[i])) < 1e-6);")

COLLATZ = """#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void collatz(int *steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int count = 0;
  for (long long v = i + 1; v != 1; v = v % 2 ? 3 * v + 1 : v / 2)
    count++;
  steps[i] = count;
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000000, wrong = 0;
  int *device;
  cudaMalloc(&device, n * sizeof(int));
  collatz<<<(n + 127) / 128, 128>>>(device, n);
  std::vector<int> steps(n);
  cudaMemcpy(steps.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++) {
    int count = 0;
    for (long long v = i + 1; v != 1; v = v % 2 ? 3 * v + 1 : v / 2)
      count++;
    wrong += steps[i] != count;
  }
  printf("%s n=%d\\n", wrong ? "FAILED" : "PASSED", n);
  return wrong != 0;
}
"""


def program(**changes):
    return json.dumps({"program": PROGRAM % dict(GOOD, **changes)})


LIARS = [
    program(check=""),                                                         # compares nothing
    program(check="wrong = got[0] != x[0] + y[0];"),                           # compares one element
    program(check="for (int i = 0; i < n; i++)\n    wrong += fabs(got[i] - (x[i] + y[i])) > 1e-6;"),  # NaN passes
    program(launch="float *host = (float *)malloc(3 * n * sizeof(float));\n"   # the host computes
            "  cudaMemcpy(host, x, n * 4, cudaMemcpyDeviceToHost);\n"
            "  cudaMemcpy(host + n, y, n * 4, cudaMemcpyDeviceToHost);\n"
            "  for (int i = 0; i < n; i++)\n    host[2 * n + i] = host[i] + host[n + i];\n"
            "  cudaMemcpy(out, host + 2 * n, n * 4, cudaMemcpyHostToDevice);\n"
            "  if (n < 0)\n    add<<<1, 1>>>(x, y, out, n);"),
]
HOSTILE = [
    program(top="#include \"/etc/passwd\""),
    program(top="#include <../../../etc/passwd>"),
    program(top="#define FILE_OF \"/etc/passwd\"\n#include FILE_OF"),
    program(extra="system(\"id\");"),
    program(extra="FILE *f = fopen(\"/etc/passwd\", \"r\");"),
    program(extra="asm volatile(\".incbin \\\"/etc/passwd\\\"\");"),
    program(top="#include <iostream>\ntemplate <int N> struct Bomb { Bomb<N - 1> a; Bomb<N - 2> b; };\n"
            "#define A sys/**/tem\n#pragma GCC poison n"),
    program(top="#define CALL(a, b) a##b", extra="CALL(sys, tem)(\"id\");"),
    program(extra="while (n) printf(\"%d\\n\", n);"),                           # for ever, and prints without end
    "x" * 300000,
    json.dumps({"program": 3}),
    "I would rather not.",
    program(top="__attribute__((constructor)) static void early() {}"),
    program(extra="puts(\"PASSED\"); exit(0);", formula="x[i] + y[i] + 1"),     # wrong, but says PASSED
    program(extra="int *p = (int *)0x10; *p = 1;"),
    json.dumps({"program": "/" * 100000}),
    "no",  # with 16 answers a strategy, no answer is the last of all of them
]


def next_of(answers):
    with open(state, "a+") as file:
        file.write(".")
        file.seek(0)
        return answers[(len(file.read()) - 1) % len(answers)]


def answer():
    if purpose == "generate/request" and mode == "confused":
        return json.dumps({"request": {"operation": "sofmax", "options": {"rows": 12}}})
    if purpose == "generate/request":
        if "ollatz" in everything:
            return json.dumps({"request": None, "none": "no operation counts Collatz steps"})
        return json.dumps({"request": {"operation": "add", "options": {"n": 100000}}})
    if purpose == "generate/repair" and mode == "confused":
        return json.dumps({"request": {"operation": "softmax", "options": {"rows": 12, "cols": 100, "type": "half"}}})
    if purpose == "generate/task":
        return json.dumps({"definition": "Collatz steps of 1 to n, as int.",
                           "sizes": [{"name": "n", "default": 1000000, "small": 1001, "other": 333}]})
    if purpose == "generate/plan":
        return "One thread an element."
    if mode == "liar":
        return next_of(LIARS)
    if mode == "hostile":
        return next_of(HOSTILE)
    if "ollatz" in everything:
        return "Here it is:\n```cuda\n" + COLLATZ + "```\n"
    if purpose == "generate/write":
        return program(formula="x[i] - y[i]", check=GOOD["check"].replace("] + y", "] - y"))
    if purpose == "generate/repair":
        assert "It was refused" in prompt and "does not do what was asked for" in prompt, prompt
    return program()


print(json.dumps({"text": answer(), "stop": "end"}))

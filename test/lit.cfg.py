# How lit runs OptiML's tests: suffixes, tools on PATH, substitutions and features.
#
#   %examples  the folder examples/         %utils   the folder utils/
#   %benchmarks  the folder benchmarks/kernels/      %verify   optiml-run --verify, in less time
#   %build     the folder of this build
#   %nvcc      the CUDA compiler            %python  the Python interpreter
#   %cuda      the CUDA toolkit's folder    %capture the library that captures launches on a GPU
#
# Features: `gpu` (a CUDA device answers), `pytorch` (and PyTorch uses it), `mount` (a test may mount file systems),
# `chromium` (a browser, written %chromium), `clang-apply-replacements`, `dpkg-shlibdeps`, `fish`, `llvm-remarkutil`,
# `zsh`, `mcp-client` ($OPTIML_MCP_PYTHON, written %mcp-python, is a Python with the protocol's own client), `verify`
# (optiml-run checks changed programs), and `optiml-X` for every tool of this build's bin folder.
#
# The site configuration is that of a build (lit.site.cfg.py.in) or of a bundle (utils/gpu-check).
import os
import shutil
import subprocess

import lit.formats

# `lit test/Driver/x.test` from the source tree: take the default preset's build.
if not hasattr(config, "optiml_build_dir"):
    site = os.path.join(os.path.dirname(__file__), "..", "build", "test", "lit.site.cfg.py")
    if not os.path.exists(site):
        lit_config.fatal("no build/test/lit.site.cfg.py: configure with `cmake --preset default` first")
    lit_config.load_config(config, os.path.normpath(site))
    raise SystemExit

config.name = "OptiML"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".cu", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.optiml_build_dir, "test")

path = [config.optiml_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)

# Tests see none of the user's own settings and write nothing into the user's home.
scratch = os.path.join(config.test_exec_root, "home")
os.makedirs(scratch, exist_ok=True)
config.environment["HOME"] = scratch
config.environment["XDG_CACHE_HOME"] = os.path.join(scratch, "cache")
for name in ("CUDA_PATH", "CCACHE_DIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "CUDA_VISIBLE_DEVICES"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%examples", os.path.join(config.optiml_source_dir, "examples")))
config.substitutions.append(("%benchmarks", os.path.join(config.optiml_source_dir, "benchmarks", "kernels")))
config.substitutions.append(("%build", os.path.dirname(config.optiml_tools_dir)))
config.substitutions.append(("%utils", os.path.join(config.optiml_source_dir, "utils")))
config.substitutions.append(("%nvcc", config.nvcc))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%cuda", os.path.dirname(os.path.dirname(os.path.realpath(config.nvcc)))))
config.substitutions.append(
    ("%capture", os.path.normpath(os.path.join(config.optiml_tools_dir, "..", "lib", "liboptiml-capture.so")))
)
config.substitutions.append(
    ("%mutant", "%s %s/mutant check" % (config.python, os.path.join(config.optiml_source_dir, "utils")))
)

# What hangs fails after some minutes, and keeps no other test from its turn.
config.substitutions.append(("%plan", "timeout 300 optiml-opt --reread --kernels-only --print-plan"))
config.substitutions.append(("%opt", "timeout 300 optiml-opt --reread --kernels-only"))
config.substitutions.append(("%refused", "not timeout 300 optiml-opt"))
# Enough time to reach all code of a transform's result on a busy machine, and little for the edges between outcomes.
config.substitutions.append(("%verify", "timeout 600 optiml-run --coverage=6 --verify"))
config.substitutions.append(("%check=", "FileCheck %s --check-prefix="))

if os.path.isdir(config.optiml_tools_dir):
    for tool in os.listdir(config.optiml_tools_dir):
        config.available_features.add(tool)

for browser in ("chromium", "chromium-browser", "google-chrome"):
    if shutil.which(browser):
        config.available_features.add("chromium")
        config.substitutions.append(("%chromium", shutil.which(browser)))
        break
for tool in ("clang-apply-replacements", "llvm-remarkutil", "fish", "zsh", "dpkg-shlibdeps"):
    if shutil.which(tool, path=config.environment["PATH"]):
        config.available_features.add(tool)
if shutil.which("ccache"):
    config.available_features.add("ccache")
if os.environ.get("OPTIML_MCP_PYTHON"):
    config.available_features.add("mcp-client")
    config.substitutions.append(("%mcp-python", os.path.abspath(os.environ["OPTIML_MCP_PYTHON"])))


def verifies():
    """Whether this build's optiml-run has --verify."""
    tool = os.path.join(config.optiml_tools_dir, "optiml-run")
    if not os.path.exists(tool):
        return False
    shown = subprocess.run([tool, "--help"], capture_output=True, text=True, errors="replace", timeout=60)
    return "--verify" in shown.stdout + shown.stderr


if verifies():
    config.available_features.add("verify")


# Whether the driver finds a GPU, in a process of its own: a broken driver may crash it.
ASK_DRIVER = """
import ctypes
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
"""
ASK_PYTORCH = """
import torch
assert torch.cuda.is_available()
"""


def python_succeeds(program):
    command, env = [config.python, "-c", program], dict(os.environ, **config.environment)
    try:
        return subprocess.run(command, capture_output=True, timeout=120, env=env).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


if python_succeeds(ASK_DRIVER):
    config.available_features.add("gpu")
    if python_succeeds(ASK_PYTORCH):
        config.available_features.add("pytorch")


def can_mount():
    """Whether a test may have a small file system of its own."""
    try:
        command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
        tried = subprocess.run(command, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


if can_mount():
    config.available_features.add("mount")

# How lit runs OptiML's tests: suffixes, tools on PATH, substitutions and features.
#
#   %examples  the folder examples/         %utils   the folder utils/
#   %nvcc      the CUDA compiler            %python  the Python interpreter
#
# Features: `gpu` (a CUDA device answers), `verify` (optiml-run checks changed programs), and `optiml-X` for every tool
# of this build's bin folder.
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
config.suffixes = [".cu", ".test", ".mut"]
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
config.substitutions.append(("%utils", os.path.join(config.optiml_source_dir, "utils")))
config.substitutions.append(("%nvcc", config.nvcc))
config.substitutions.append(("%python", config.python))
config.substitutions.append(
    ("%mutant", "%s %s/mutant check" % (config.python, os.path.join(config.optiml_source_dir, "utils")))
)

if os.path.isdir(config.optiml_tools_dir):
    for tool in os.listdir(config.optiml_tools_dir):
        config.available_features.add(tool)

def verifies():
    """Whether this build's optiml-run has --verify."""
    tool = os.path.join(config.optiml_tools_dir, "optiml-run")
    if not os.path.exists(tool):
        return False
    shown = subprocess.run([tool, "--help"], capture_output=True, text=True, errors="replace", timeout=60)
    return "--verify" in shown.stdout + shown.stderr


if verifies():
    config.available_features.add("verify")


def has_gpu():
    smi = shutil.which("nvidia-smi")
    if not smi:
        return False
    try:
        listed = subprocess.run([smi, "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU " in listed.stdout


if has_gpu():
    config.available_features.add("gpu")

def can_mount():
    """Whether a test may have a small file system of its own."""
    try:
        tried = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


if can_mount():
    config.available_features.add("mount")

"""usage: check-pages.py SHARE: completions and manual pages name every flag that optiml-clang --optiml-help lists."""
import glob
import re
import subprocess
import sys

share = sys.argv[1]
text = subprocess.run(["optiml-clang", "--optiml-help"], capture_output=True, text=True, check=True).stdout
flags = sorted(set(re.findall(r"^\s*(-{1,2}[A-Za-z][\w-]*)", text, re.M)))
assert "--optiml-args" in flags and "-O-search" in flags and "-Rpass" in flags, flags
page = open(share + "/man/man1/optiml-clang.1").read().replace("\\-", "-")
bash = open(share + "/bash-completion/completions/optiml-clang").read()
zsh = open(share + "/zsh/site-functions/_optiml").read()
fish = open(share + "/fish/vendor_completions.d/optiml-clang.fish").read()
for flag in flags:
    assert re.search(r"^\.B " + flag + r"(\[|=|$)", page, re.M), ("manual page", flag)
    assert re.search(r"[\" ]" + flag + r"[=\" ]", bash), ("bash", flag)
    assert re.search("'" + flag + r"=?\[", zsh), ("zsh", flag)
    name = flag.lstrip("-")
    assert re.search(rf"-[lo] {name} ", fish), ("fish", flag)
pages = glob.glob(share + "/man/man1/*.1")
for path in pages:
    lines = open(path).read().splitlines()
    assert lines[0].startswith(".TH ") and lines[1] == ".SH NAME" and " \\- " in lines[2], path
    assert len(lines) > 8, path
print(f"{len(flags)} flags, {len(pages)} manual pages")

"""usage: count-remarks.py TRAJECTORIES RECORD.yaml FILE.sarif: remarks are as many as the trajectory's reasons."""
import glob
import json
import re
import sys

events = {}
for line in open(glob.glob(sys.argv[1] + "/*.jsonl")[0]):
    event = json.loads(line)
    events[event["event"]] = event
steps, missed = events["winner"]["steps"], events["winner"]["missed"]
last = {step["kernel"]: step["conditions"] for step in steps}
analysis = len(events["search"]["kernels"]) + sum(len(conditions) for conditions in last.values())
kinds = re.findall(r"^--- !(\w+)$", open(sys.argv[2]).read(), re.M)
assert kinds.count("Passed") == len(steps) and kinds.count("Missed") == len(missed), kinds
assert kinds.count("Analysis") == analysis, (kinds, analysis)
sarif = json.load(open(sys.argv[3]))
assert sarif["version"] == "2.1.0" and len(sarif["runs"][0]["results"]) == len(kinds)
rules = {rule["id"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]}
for result in sarif["runs"][0]["results"]:
    assert result["ruleId"] in rules and result["message"]["text"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] > 1
print(f"passed {len(steps)}, missed {len(missed)}, analysis {analysis}")

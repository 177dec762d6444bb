"""usage: check-page.py PAGE TRAJECTORY: every number that the page shows is the trajectory's."""
import html.parser
import json
import re
import sys

page, trajectory = open(sys.argv[1]).read(), [json.loads(line) for line in open(sys.argv[2])]
log = {"evaluations": [], "refused": [], "models": []}
for event in trajectory:
    kind = event.pop("event")
    if kind in ("search", "winner", "result"):
        log[kind] = event
    elif kind == "evaluation":
        log["evaluations"].append(event)
    elif kind == "refused":
        log["refused"].append(event)
    else:
        log["models"].append({"event": kind, **event})

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "%": 1e-2, "P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "": 1}
VOID = {"br", "meta", "circle", "path", "rect"}


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.data, self.numbers, self.outside = [], None, 0, []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("src", "href"):
            if attributes.get(name, "#")[0] != "#":
                self.outside.append(attributes[name])
        if tag not in VOID:
            self.open.append(tag)
        if tag == "data":
            self.data = attributes

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, text):
        if self.data is None:
            return
        value = log
        for step in self.data["data-at"].split("/")[1:]:
            value = value[int(step)] if isinstance(value, list) else value[step]
        assert json.loads(self.data["value"]) == value, self.data
        number, unit = re.fullmatch(r"(-?[\d.]+(?:e[+-]?\d+)?) ?(\S*)", text.strip(), re.I).groups()
        mantissa, _, exponent = number.lower().partition("e")
        shown, step = float(number) * UNITS[unit], UNITS[unit] * 10.0 ** (
            int(exponent or 0) - len(mantissa.partition(".")[2]))
        assert abs(shown - value) <= 0.51 * step, f"{text} for {value}"
        self.numbers += 1
        self.data = None


reader = Reader()
reader.feed(page)
assert not reader.open, reader.open
assert not reader.outside, reader.outside
embedded = re.search(r'<script type="application/json" id="log">(.*?)</script>', page, re.S).group(1)
assert json.loads(embedded) == log, "the page's own data"
print(f"{reader.numbers} numbers; {len(page) / 1e6:.2f} MB")
assert len(page) < 3e6

"""A client of optiml-mcp in plain JSON-RPC, for the tests beside it."""
import json
import signal
import subprocess
import sys


signal.alarm(240)  # an answer that never comes is a failure


class Client:
    def __init__(self, *options):
        self.server = subprocess.Popen(["optiml-mcp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True)
        self.count, self.notifications = 0, []

    def start(self, revision="2025-11-25"):
        about = self.ask("initialize", {"protocolVersion": revision, "capabilities": {},
                                        "clientInfo": {"name": "test", "version": "1"}})["result"]
        self.say("notifications/initialized")
        return about

    def write(self, text):
        self.server.stdin.write(text)
        self.server.stdin.flush()

    def read(self):
        line = self.server.stdout.readline()
        if not line:
            sys.exit("the server ended with %s" % self.server.wait())
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0", message
        return message

    def say(self, method, **params):
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n")

    def begin(self, method, params=None):
        self.count += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params or {}}) + "\n")
        return self.count

    def answer(self, number):
        while True:
            message = self.read()
            if message.get("id") == number:
                return message
            self.notifications.append(message)

    def ask(self, method, params=None):
        return self.answer(self.begin(method, params))

    def call(self, tool, **arguments):
        """Of one call: what the tool says, and whether it refuses."""
        reply = self.ask("tools/call", {"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}})
        result = reply["result"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"], result
        return result["structuredContent"], result["isError"]

    def do(self, tool, **arguments):
        """The same, however long it takes."""
        said, refused = self.call(tool, **arguments)
        while said.get("status") == "running":
            said, refused = self.call("wait", handle=said["handle"])
        return said, refused

    def well(self, tool, **arguments):
        said, refused = self.do(tool, **arguments)
        assert not refused, (tool, said)
        return said

    def refused(self, tool, **arguments):
        said, refused = self.do(tool, **arguments)
        assert refused, (tool, said)
        return said.get("error") or said.get("why")

    def end(self):
        self.server.stdin.close()
        code = self.server.wait(60)
        assert code == 0, code

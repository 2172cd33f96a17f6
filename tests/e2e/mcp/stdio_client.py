"""A client of `kbeam mcp` that holds every message of the server against the rules of JSON-RPC 2.0 and of the protocol."""
import json
import subprocess

KNOWN_VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def require(condition, message):
    if not condition:
        raise AssertionError(message)


def check_value(value, schema, where):
    """The part of JSON Schema that tool schemas use."""
    kinds = {"object": dict, "array": list, "string": str}
    require(isinstance(value, kinds[schema["type"]]), f"{where} is no {schema['type']}")
    if "enum" in schema:
        require(value in schema["enum"], f"{where} is none of {schema['enum']}")
    if schema["type"] == "array":
        for one in value:
            check_value(one, schema["items"], where)
    if schema["type"] == "object":
        for name in schema.get("required", []):
            require(name in value, f"{where} lacks {name}")
        for name, one in value.items():
            require(name in schema["properties"], f"{where} has no {name}")
            check_value(one, schema["properties"][name], f"{where}.{name}")


def check_message(line):
    require("\n" not in line, "a message is one line")
    message = json.loads(line)
    require(isinstance(message, dict), "a message is an object")
    require(message.get("jsonrpc") == "2.0", "a message says jsonrpc 2.0")
    require("id" in message, "an answer has an id")
    require(("result" in message) != ("error" in message), "an answer has a result or an error")
    if "error" in message:
        error = message["error"]
        require(isinstance(error["code"], int) and isinstance(error["message"], str), "an error has code and message")
    else:
        require(isinstance(message["result"], dict), "a result is an object")
    return message


class Client:
    def __init__(self, kbeam, *arguments):
        self.process = subprocess.Popen([kbeam, "mcp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, bufsize=1)
        self.next_id = 0

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        require(line.endswith("\n"), "the server ended")
        return check_message(line[:-1])

    def raw(self, text):
        self.send(text)
        return self.receive()

    def start(self, method, parameters=None):
        self.next_id += 1
        request = {"jsonrpc": "2.0", "id": self.next_id, "method": method}
        if parameters is not None:
            request["params"] = parameters
        self.send(json.dumps(request))
        return self.next_id

    def ask(self, method, parameters=None):
        number = self.start(method, parameters)
        answer = self.receive()
        require(answer["id"] == number, f"an answer to {answer['id']}, not to {number}")
        return answer

    def notify(self, method, parameters=None):
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": parameters or {}}))

    def initialize(self, version="2025-06-18"):
        result = self.ask("initialize", {"protocolVersion": version, "capabilities": {},
                                         "clientInfo": {"name": "conformance", "version": "1"}})["result"]
        require(result["protocolVersion"] in KNOWN_VERSIONS, "a version that is known")
        require(isinstance(result["capabilities"]["tools"], dict), "there are tools")
        require(all(isinstance(result["serverInfo"][k], str) for k in ("name", "version")), "the server has a name")
        self.notify("notifications/initialized")
        self.version = result["protocolVersion"]
        return result

    def tools(self):
        tools = {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}
        for tool in tools.values():
            require(isinstance(tool["description"], str) and tool["description"], "a tool says what it does")
            require(tool["inputSchema"]["type"] == "object", "a tool's input is an object")
            for schema in tool["inputSchema"]["properties"].values():
                require(schema["type"] in ("string", "array") and schema["description"], "an argument is described")
        return tools

    def call(self, name, arguments):
        result = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        return self.check_result(result)

    def check_result(self, result):
        require(isinstance(result["isError"], bool), "a result says whether it is an error")
        require(len(result["content"]) == 1, "a result has one content")
        require(result["content"][0]["type"] == "text", "which is a text")
        text = result["content"][0]["text"]
        require(isinstance(text, str) and text, "which is not empty")
        if "structuredContent" in result:
            require(self.version >= "2025-06-18" and not result["isError"], "structured content in its place")
            parsed = json.loads(text)
            structured = result["structuredContent"]
            require(structured == (parsed if isinstance(parsed, dict) else {"items": parsed}), "and it is the text's")
        return result

    def close(self):
        self.process.stdin.close()
        require(self.process.wait(timeout=60) == 0, "the server ends well when its input does")

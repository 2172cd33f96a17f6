"""The protocol's rules: versions, order, errors, batches, cancellation. Usage: conformance.py KBEAM"""
import json
import os
import sys
import tempfile

from stdio_client import Client, require

kbeam = sys.argv[1]


def error_code(answer):
    return answer["error"]["code"]


def test_versions():
    for asked, given in [("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-11-25", "2025-11-25"),
                         ("1999-01-01", "2025-11-25")]:
        client = Client(kbeam)
        require(client.initialize(asked)["protocolVersion"] == given, f"{asked} is answered with {given}")
        result = client.call("list_problems", {})
        require(("structuredContent" in result) == (given >= "2025-06-18"), f"structured content in {given}")
        client.close()


def test_order_and_errors():
    client = Client(kbeam)
    require(client.ask("ping")["result"] == {}, "ping is always answered")
    require(error_code(client.ask("tools/list")) == -32600, "nothing before initialize")
    require(error_code(client.ask("server/discover", {})) == -32601, "what newer clients try first is refused")
    require(error_code(client.ask("initialize", {})) == -32602, "a version has to be named")
    client.initialize()
    require(error_code(client.ask("initialize", {"protocolVersion": "2025-06-18"})) == -32600, "once only")
    require(error_code(client.ask("resources/list")) == -32601, "an unknown method")
    require(error_code(client.ask("tools/call", {"name": "no_such_tool"})) == -32602, "an unknown tool")
    require(error_code(client.ask("tools/call", {})) == -32602, "no tool")
    require(error_code(client.ask("tools/call", {"name": "ask", "arguments": [1]})) == -32602, "arguments by place")
    require(error_code(client.ask("tools/call", [1])) == -32602, "parameters by place")
    for text, code in [("{", -32700), ("\x01", -32700), ("3", -32600), ("{}", -32600), ("[]", -32600), ("[1]", -32600),
                       ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
                       ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
                       ('{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
                       ('{"jsonrpc":"2.0","id":1,"method":7}', -32600)]:
        require(error_code(client.raw(text)) == code, f"{text} is answered with {code}")
    deep = "[" * 500_000 + "]" * 500_000
    for text in [deep, '{"jsonrpc":"2.0","id":%s,"method":"ping"}' % deep,
                 '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%s}}' % deep]:
        require(error_code(client.raw(text)) == -32700, f"{text[:50]}... nests too deep and is answered with -32700")
    require(error_code(client.raw(json.dumps("x" * (9 << 20)))) == -32700, "a message is bounded")
    client.send("")
    client.send('{"jsonrpc":"2.0","method":"notifications/whatever"}')
    client.send('{"jsonrpc":"2.0","id":99,"result":{}}')
    require(client.raw('{"jsonrpc":"2.0","id":"text","method":"ping"}')["id"] == "text",
            "notifications, answers and empty lines are not answered; ids are given back as they are")
    client.close()


def test_batches():
    client = Client(kbeam)
    client.initialize("2025-03-26")
    client.send(json.dumps([{"jsonrpc": "2.0", "id": "a", "method": "ping"},
                            {"jsonrpc": "2.0", "method": "notifications/initialized"},
                            {"jsonrpc": "2.0", "id": "b", "method": "nothing"}]))
    answers = {answer["id"]: answer for answer in (client.receive(), client.receive())}
    require("result" in answers["a"] and error_code(answers["b"]) == -32601, "a batch is answered one by one")
    client.close()


def test_arguments():
    client = Client(kbeam)
    client.initialize()
    for name, arguments, words in [("ask", {}, "question is missing"), ("ask", {"question": 3}, "no text"),
                                   ("ask", {"question": ""}, "is empty"),
                                   ("ask", {"question": "a\0b"}, "NUL"),
                                   ("ask", {"question": "who leads?", "rnu": "x"}, "did you mean run"),
                                   ("check", {"problem": "template"}, "neither a file nor code"),
                                   ("check", {"problem": "template", "file": "a", "code": "b"}, "a file and code"),
                                   ("check", {"problem": "template", "file": "a", "cases": "c"}, "list of texts"),
                                   ("check", {"problem": "softmx", "file": "candidate.cpp"}, "did you mean"),
                                   ("check", {"problem": "template", "file": "--help"}, "--help"),
                                   ("propose", {"idea": "x", "code": "y", "name": "../z"}, "plain name"),
                                   ("ask", {"question": "x" * 200_000}, "more than 65536 bytes"),
                                   ("steer", {"action": "launch"}, "none of"),
                                   ("steer", {"action": "say"}, "there is no text"),
                                   ("read_state", {"run": "nothing-like-it"}, "no such run")]:
        result = client.call(name, arguments)
        require(result["isError"] and words in result["content"][0]["text"],
                f"{name} {arguments} says '{words}': {result['content'][0]['text']}")
    client.close()


def test_cancellation():
    client = Client(kbeam)
    client.initialize()
    slow = client.start("tools/call", {"name": "bench", "arguments": {"problem": "template", "file": "candidate.cpp"}})
    require(client.ask("ping")["result"] == {}, "other requests are answered meanwhile")
    client.notify("notifications/cancelled", {"requestId": slow})
    client.close()  # would fail on an answer that nobody reads only if the call went on for a minute


def test_a_client_that_is_gone():
    client = Client(kbeam)
    client.initialize()
    client.start("tools/call", {"name": "bench", "arguments": {"problem": "template", "file": "candidate.cpp"}})
    client.process.stdout.close()
    client.close()
    left = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("kbeam-mcp-")]
    require(not left, f"nothing of its calls is left: {left}")


for test in [test_versions, test_order_and_errors, test_batches, test_arguments, test_cancellation,
             test_a_client_that_is_gone]:
    test()
    print(f"{test.__name__}: every message as the protocol says")

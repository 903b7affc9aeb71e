"""A server whose tools need one thing each. BASE is the directory that it was given; ERA is `initialize` or `discover`."""
import json
import os
import socket
import subprocess
import sys

BASE, ERA = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "initialize"
CONFIG = json.load(open(os.path.join(BASE, "etc", "config.json")))


def write(arguments):
    with open(os.path.join(BASE, "cache", "entry"), "w") as file:
        file.write("x")
    return "written"


def replace(arguments):
    path = os.path.join(BASE, "data", "db")
    with open(path + ".new", "w") as file:
        file.write("new")
    os.rename(path + ".new", path)
    return open(path).read()


def mode(arguments):
    return os.environ["LEARN_MODE"]


def child(arguments):
    program = os.path.join(BASE, "bin", "hello")
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def service(arguments):
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.path.join(BASE, "run", "service.sock"))
    return client.recv(100).decode()


def steal(arguments):
    path = os.path.join(BASE, "home", ".ssh", "id_ed25519")
    try:
        return open(path).read()
    except OSError:
        return "nothing"


def destroy(arguments):
    open(os.path.join(BASE, "destroyed"), "w")
    return "destroyed"


TOOLS = {
    "greet": lambda arguments: CONFIG["greeting"],
    "read": lambda arguments: open(arguments["path"]).read(),
    "list": lambda arguments: ",".join(sorted(os.listdir(arguments["path"]))),
    "write": write,
    "replace": replace,
    "mode": mode,
    "child": child,
    "service": service,
    "steal": steal,
    "destroy": destroy,
}


def zone():
    """What only a description tells."""
    try:
        return open(os.path.join(BASE, "etc", "zone")).read()
    except OSError:
        return "none"


def described(name):
    hints = {"destructiveHint": True} if name == "destroy" else {"readOnlyHint": True}
    needs = ["path"] if name in ("read", "list") else []
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": needs}
    return {"name": name, "description": zone(), "inputSchema": schema, "annotations": hints}


def answer(method, params):
    if method == "initialize" and ERA == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    if ERA == "discover":
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        if version != "2026-07-28":
            return None
        if method == "server/discover":
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    if method == "tools/list":
        return {"tools": [described(name) for name in TOOLS]}
    if method == "tools/call":
        try:
            text = TOOLS[params["name"]](params.get("arguments", {}))
            return {"content": [{"type": "text", "text": str(text)}]}
        except Exception as error:
            return {"isError": True, "content": [{"type": "text", "text": repr(error)}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "no such method"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)

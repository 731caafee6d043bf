"""Rules that JSON Schema cannot state: between parameters, and about what the controller holds. Requests that should be valid are made to follow them here."""

import schemathesis
from schemathesis.generation import GenerationMode

# A parameter, and the one that has to be true with it.
NEEDS = (("forecast", "dry_run"), ("after_seconds", "requeue"))


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if isinstance(case.body, dict):
        follow_in_body(case.body)
    if case.query:
        follow_in_query(case.query, case.operation)


def follow_in_body(body):
    # Each name of a port stands once.
    if isinstance(body.get("ports"), list):
        body["ports"] = list({each["name"]: each for each in body["ports"]}.values())
    # Only an upload gives the hash of a folder.
    body.pop("workdir", None)
    # A limit is at least the demand.
    if isinstance(body.get("vram_limit_mib"), int) and isinstance(body.get("vram_mib"), int):
        body["vram_limit_mib"] = max(body["vram_limit_mib"], body["vram_mib"])
    follow_swap_method(body)


def follow_swap_method(body):
    # An engine and hooks belong to the methods of their names, and to a command.
    engine, hooks = body.get("swap_engine"), body.get("swap_hooks")
    if not isinstance(body.get("command"), list):
        engine = hooks = None
    if isinstance(engine, dict):
        body["swap_method"], body["swap_engine"], body["swap_hooks"] = "engine", {**engine, "kind": "vllm"}, None
        return
    body.pop("swap_engine", None)
    if isinstance(hooks, dict):
        body["swap_method"] = "hooks"
        body["swap_hooks"] = {name: one_way(hooks.get(name) or {}) for name in ("suspend", "resume")}
        return
    body.pop("swap_hooks", None)
    if body.get("swap_method") in ("hooks", "engine"):
        body.pop("swap_method")


def one_way(hook):
    if "command" in hook:
        return {"command": hook["command"]}
    return {"port": hook.get("port", 80), "path": hook.get("path", "/")}


def follow_in_query(query, operation):
    # Only an answer gives a cursor.
    query.pop("cursor", None)
    # A longer wait answers the same, later.
    if "wait" in query:
        query["wait"] = "10ms"
    for name, needed in NEEDS:
        if query.get(needed) not in (True, "true") and any(each.name == needed for each in operation.query):
            query.pop(name, None)
    # A file has all rows, so that it takes no size of a page.
    if query.get("format") == "csv":
        query.pop("limit", None)
    if "before" in query:
        query.pop("after", None)

"""Rules between parameters. JSON Schema describes one parameter at a time, so requests that should be valid are made to follow them here."""

import schemathesis
from schemathesis.generation import GenerationMode

# A parameter, and the one that has to be true with it.
NEEDS = (("forecast", "dry_run"), ("after_seconds", "requeue"))


@schemathesis.hook
def before_call(context, case, kwargs):
    query = case.query
    if not query or case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    # Only an answer gives a cursor.
    query.pop("cursor", None)
    # A longer wait answers the same, later.
    if "wait" in query:
        query["wait"] = "10ms"
    for name, needed in NEEDS:
        if query.get(needed) not in (True, "true") and any(each.name == needed for each in case.operation.query):
            query.pop(name, None)
    # A file has all rows, so that it takes no size of a page.
    if query.get("format") == "csv":
        query.pop("limit", None)
    if "before" in query:
        query.pop("after", None)

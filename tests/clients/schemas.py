# SPDX-License-Identifier: MIT
"""What frameworks make of the schemas of tools: they may tell a model less than the gateway does, and must not forbid what it takes."""

from steps import plain

ALL = {"null", "boolean", "integer", "number", "string", "array", "object"}
# What a framework leaves out of every server's schemas, and of which members of ours (None: whichever there are).
LEAVES_OUT = {
    # jsonschema_pydantic knows no enum; LangChain drops what is no name in Python from what it tells a model, `from` here.
    "mcp_use": {"no enum": None, "missing": {"notebook_diff.from"}, "not required": {"notebook_diff.from"}},
    # Objects in arrays become Dict.
    "llama_index": {"no members": None},
    # mcpadapt does not tell it which arguments are optional. A CodeAgent may leave them out; its ToolCallingAgent demands all of them,
    # with every server.
    "smolagents": {"required": None},
}


def resolve(schema, root):
    """Without a reference."""
    while isinstance(schema, dict) and "$ref" in schema:
        at = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        schema = at
    return schema if isinstance(schema, dict) else {}


def branches(schema, root):
    """The alternatives of a schema, none of which has further ones."""
    schema = resolve(schema, root)
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return [found for one in several for found in branches(one, root)]
    if len(schema.get("allOf", [])) == 1:
        return branches(schema["allOf"][0], root)
    return [schema]


def kinds(schema, root):
    """The types that it takes."""
    found = set()
    for one in branches(schema, root):
        types = one.get("type", ALL)
        found |= {types} if isinstance(types, str) else set(types)
    return found | ({"integer"} if "number" in found else set())


def values(schema, root):
    """The values of an enum; None: there is none."""
    found = [one["enum"] for one in branches(schema, root) if "enum" in one]
    found += [[one["const"]] for one in branches(schema, root) if "const" in one]
    return {value for several in found for value in several} if found else None


def member(schema, root, kind, name):
    """What the alternatives that are of a kind say in one member."""
    for one in branches(schema, root):
        if kind in kinds(one, root) and one.get(name):
            return one[name]
    return {}


def compare(ours, theirs, roots, path, found):
    """Notes (what, path) for each thing that `theirs` has not."""
    note = found.append
    if not kinds(ours, roots[0]) <= kinds(theirs, roots[1]):
        note(("type", path))
    mine, other = values(ours, roots[0]), values(theirs, roots[1])
    if mine is not None and other is None:
        note(("no enum", path))
    elif other is not None and (mine is None or not mine <= other):
        note(("enum", path))
    if ours.get("description") and not theirs.get("description"):
        note(("no description", path))
    if member(ours, roots[0], "array", "items"):
        compare(member(ours, roots[0], "array", "items"), member(theirs, roots[1], "array", "items"), roots, f"{path}[]", found)
    properties = member(ours, roots[0], "object", "properties")
    copies = member(theirs, roots[1], "object", "properties")
    required = set(member(ours, roots[0], "object", "required"))
    more = set(member(theirs, roots[1], "object", "required")) - required
    if copies:
        for name in required - set(member(theirs, roots[1], "object", "required")):
            note(("not required", f"{path}.{name}"))
    for name, schema in properties.items():
        if name not in copies:
            note(("missing" if copies else "no members", f"{path}.{name}"))
            continue
        if name in more and "null" not in kinds(copies[name], roots[1]):
            note(("required", f"{path}.{name}"))
        compare(schema, copies[name], roots, f"{path}.{name}", found)


def faults(name, ours, theirs):
    """Sentences for one framework: tools and members that are missing, calls that its schemas forbid."""
    known = {plain(tool): schema for tool, schema in theirs.items()}
    found, notes = [], []
    for tool, schema in ours.items():
        if plain(tool) not in known:
            found.append(f"{tool} is not in its list")
        else:
            copy = known[plain(tool)]
            compare(schema, copy, (schema, copy), tool, notes)
    left_out = LEAVES_OUT.get(name, {})
    for what in sorted({what for what, _ in notes} | set(left_out)):
        paths = {path for kind, path in notes if kind == what}
        excused = paths if left_out.get(what, set()) is None else left_out.get(what, set())
        if what in left_out and not paths & excused:
            found.append(f"schemas: \"{what}\" is left out no more: take it from LEAVES_OUT")
        elif paths - excused:
            found.append(f"schemas: {what}: {', '.join(sorted(paths - excused)[:8])} ({len(paths - excused)})")
    return found

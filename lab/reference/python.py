"""Print the reference of the Python package in a directory as Markdown, from its docstrings."""

import ast
import inspect
import re
import sys
from pathlib import Path

package = Path(sys.argv[1])
modules = {path.stem: ast.parse(path.read_text()) for path in sorted(package.glob("*.py"))}


def text(node):
    doc = ast.get_docstring(node) or ""
    out, code = [], False
    for line in inspect.cleandoc(doc).splitlines():
        if line.endswith("::"):
            line = line[:-1]
        indented = line.startswith("    ")
        if indented != code and line:
            if code and not out[-1]:
                out.pop()
            out.extend(["```python"] if indented else ["```", ""])
            code = indented
        if code:
            out.append(line[4:])
        else:
            line = re.sub(r":\w+:`([^`]*)`", r"`\1`", line.replace("``", "`"))
            out.append(line.replace("<", "&lt;").replace("{{", "&#123;&#123;"))
    return "\n".join(out + ["```"] * code) + "\n"


def function(node, level, owner=""):
    signature = f"{'async ' if isinstance(node, ast.AsyncFunctionDef) else ''}def {node.name}({ast.unparse(node.args)})"
    if node.returns:
        signature += " -> " + ast.unparse(node.returns)
    print(f"{level} {owner}{node.name}\n\n```python\n{signature}\n```\n\n{text(node)}")


def public(name):
    return not name.startswith("_") or name in ("__init__",)


def show(node):
    if isinstance(node, ast.FunctionDef):
        function(node, "###")
        return
    bases = ", ".join(ast.unparse(b) for b in node.bases)
    print(f"### {node.name}\n\n```python\nclass {node.name}({bases})\n```\n\n{text(node)}")
    for f in node.body:
        if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) and public(f.name) and (ast.get_docstring(f) or f.name != "__init__"):
            function(f, "####", node.name + ".")


exported = next(
    ast.literal_eval(n.value) for n in modules["__init__"].body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"
)
defined = {n.name: n for m in modules.values() for n in m.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
print("# Python package pleach\n\nThe [guide](https://github.com/pleach-go/pleach/blob/main/docs/guide/python.md) shows programs.\n")
print(text(modules["__init__"]))
print("## Module pleach\n")
for name in exported:
    show(defined[name])
print("## Module pleach.torch\n")
print(text(modules["torch"]))
for n in modules["torch"].body:
    if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and public(n.name):
        show(n)

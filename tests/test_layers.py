"""The folders that each folder may import, as in docs/architecture.md."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "amends"

PURE = {"core", "dialects", "carriers", "vendors", "proof", "logs"}
BASE = PURE | {"errors", "foreign", "recovery", "stores", "schemas", "_version"}
# Modules of the package import from the defining module, not from the top-level package.
MAY = {
    "proof": set(),
    "core": {"proof"},
    "logs": {"core"},
    "errors": {"core", "proof"},
    "dialects": {"core", "proof", "logs"},
    "vendors": {"core", "proof", "logs"},
    "carriers": {"core", "dialects", "vendors", "proof"},
    "schemas": {"core", "carriers", "vendors"},
    "profiles": {"core"},
    "foreign": PURE | {"errors"},
    "recovery": PURE | {"errors", "foreign"},
    "stores": {"proof"},
    "durable": {"stores", "proof", "logs"},
    "http": BASE | {"serving", "durable", "effects"},
    "effects": BASE | {"serving", "durable"},
    "cli": BASE,
    "serving": BASE,
    "process": BASE | {"profiles"},
    "recorder": BASE,
    "page": BASE | {"recorder", "durable", "arcp", "tasks"},
    "gateway": BASE | {"http", "serving", "recorder", "page"},
    "tools": PURE | {"errors", "foreign", "serving"},
    "bindings": BASE | {"http", "cli", "serving", "tools", "effects"},
    "chain": BASE | {"serving"},
    "arcp": BASE | {"durable", "effects", "serving"},
    "tasks": BASE | {"durable", "effects", "http", "serving", "process", "bindings", "arcp"},
    "audit": BASE | {"process", "profiles", "gateway", "http"},
    "rehearse": PURE | {"_version"},
    "storyboard": PURE | {"errors"},
    "testing": BASE | {"storyboard", "rehearse"},
    "testing_plugin": BASE | {"testing", "audit"},
}
FREE = {"commands", "demo", "__init__", "__main__", "vectors", "_version"}
FOLDERS = sorted(
    {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
)


def imported(path):
    """Yield the top-level folders of amends that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [node.module] if node.module != "amends" else [f"amends.{each.name}" for each in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("amends."))


def files(folder):
    """Return the files of a top-level folder, or the single file of that name."""
    single = SOURCE / f"{folder}.py"
    return [single] if single.exists() else sorted((SOURCE / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name not in FREE])
def test_a_folder_imports_only_lower_layers(folder):
    """A folder imports only the folders in its row of the table."""
    assert folder in MAY, f"add a row to this table: what may {folder} import?"
    wrong = {
        f"{path.relative_to(SOURCE)} imports amends.{name}"
        for path in files(folder)
        for name in imported(path)
        if name != folder and name not in MAY[folder]
    }
    assert not wrong


def imported_modules(path, modules):
    """Yield the modules of `modules` that a file imports: also inside functions, and for type checking only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield whole if whole in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


@pytest.mark.parametrize("package", ["arcp/runtime"])
def test_a_package_has_no_import_cycle(package):
    """The modules of a package can be ordered so that each imports only earlier ones; all imports count."""
    root = SOURCE / package
    modules = {
        ".".join(("amends", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in root.rglob("*.py")
    }
    left = {name: {*imported_modules(path, modules)} - {name} for name, path in modules.items()}
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    assert not left

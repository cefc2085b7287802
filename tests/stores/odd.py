"""Names and keys that a backend could handle wrongly."""

ODD_KEYS = [
    "a.b.c",
    "two words",
    "*",
    ">",
    "a.*.>",
    "..",
    "/",
    "a//b/",
    "/lead",
    "tab\tnewline\nnul\0end",
    "$KV.x",
    "%41=",
    "ünïcödé 漢字 🦊",
    "A",
    "-_",
    "k" * 3000,
    "long/" * 600,
    "'; DROP TABLE amends_rows; --",
]

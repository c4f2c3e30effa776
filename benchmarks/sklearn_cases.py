"""scikit-learn's own tests of NMF, run on ``RobustNMF``: how many pass.

    make bench        (or: python benchmarks/sklearn_cases.py)

The test file of the installed scikit-learn is read and the name of the class replaced; nothing of
it is kept; ``NMF`` and ``non_negative_factorization`` are ``RobustNMF`` and the function of this
library. Every case counts as one of

* passed: as it is written;
* other words: passes once the expected texts of errors and warnings are left out;
* failed;
* not offered: it tests ``MiniBatchNMF`` or a private function of scikit-learn, or uses a parameter
  that ``RobustNMF`` does not have.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from harness import write_result

IMPORTED = "from sklearn.decomposition import NMF, MiniBatchNMF, non_negative_factorization\n"
REPLACED = {
    IMPORTED: "from robustnmf import RobustNMF as NMF, non_negative_factorization\n"
    "from sklearn.decomposition import MiniBatchNMF\n",
    'f"nmf{i}"': 'f"robustnmf{i}"',  # the class name in lower case
    "._n_components": ".n_components_",
}
"""Texts of the test file, and what they are replaced by."""

REFUSED = ("unexpected keyword argument", "InvalidParameterError", "positional argument")
"""What errors say where a parameter, or a value of it, does not exist."""


def read_cases() -> str:
    """Read the test file of the installed scikit-learn, with the class name replaced."""
    import sklearn.decomposition.tests as folder

    text = (Path(folder.__path__[0]) / "test_nmf.py").read_text()
    for before, after in REPLACED.items():
        if before not in text:
            raise SystemExit(f"this scikit-learn's test_nmf.py does not hold {before!r}")
        text = text.replace(before, after)
    return text


def tests_of_others(text: str) -> set[str]:
    """Return the names of tests that use ``MiniBatchNMF`` itself, or nothing but private functions.

    A test that is parametrised with the class has cases of either, which differ in their names.
    """
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            body = "\n".join(ast.unparse(statement) for statement in node.body)
            ours = re.search(r"\b(Estimator|NMF|non_negative_factorization)\(", body)
            ours = ours or "nnmf(" in body
            if "MiniBatchNMF(" in body or not ours:
                names.add(node.name)
    return names


def without_texts(text: str) -> str:
    """Remove the texts that errors and warnings of the tests are expected to have."""

    class Remover(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("raises", "warns"):
                node.keywords = [word for word in node.keywords if word.arg != "match"]
            return node

    return ast.unparse(Remover().visit(ast.parse(text)))


def run_cases(text: str) -> dict[str, str]:
    """Run a test file; return the message of every case that failed, "" for those that passed."""
    with tempfile.TemporaryDirectory() as folder:
        path, report = Path(folder, "test_nmf.py"), Path(folder, "report.xml")
        path.write_text(text)
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder,
             "--junitxml", str(report), str(path)],
            cwd=folder, stdout=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        cases = {}
        for case in ElementTree.parse(report).iter("testcase"):
            failure = next((child for child in case if child.tag in ("failure", "error")), None)
            message = "" if failure is None else f"{failure.get('message')}"
            cases[case.get("name") or ""] = message
    return cases


def main() -> None:
    """Count the cases of each kind, print those that do not pass, and write the counts."""
    text = read_cases()
    others = tests_of_others(text)
    exact, loose = run_cases(text), run_cases(without_texts(text))
    kinds = {}
    for case, message in exact.items():
        # An unreplaced class: its cases pass with scikit-learn's code, and count for nothing.
        if case.split("[")[0] in others or "MiniBatchNMF" in case:
            kinds[case] = "not offered"
        elif not message:
            kinds[case] = "passed"
        elif not loose[case]:
            kinds[case] = "other words"
        else:
            refused = any(words in loose[case] for words in REFUSED)
            kinds[case] = "not offered" if refused else "failed"
    counts = Counter(kinds.values())
    for kind in ("other words", "failed"):
        for case in (case for case in kinds if kinds[case] == kind):
            lines = exact[case].strip().splitlines()
            print(f"{kind}: {case}: {' '.join(lines)[:300]}")
    print(
        ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "other words", "failed")), end=""
    )
    print(f", {counts['not offered']} not offered, of {len(kinds)}")
    write_result(
        "sklearn_cases.json",
        {"counts": dict(counts), "cases": kinds},
    )


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Counts test cases from JUnit files and prints 'N passed, N failed, N skipped'.

  python3 tests/summary.py DIRECTORY...

Each directory holds ctest.xml (one entry a test program) and one file a Boost.Test program (one entry a test case). A program
without a file of its own counts as one test; a program that failed without saying which case did counts as one failure.
"""
import os
import sys
import xml.etree.ElementTree as tree


def cases(path):
    passed = failed = skipped = 0
    for case in tree.parse(path).getroot().iter("testcase"):
        if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        elif case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed += 1
        else:
            passed += 1
    return passed, failed, skipped


def directory(path):
    total = [0, 0, 0]
    try:
        root = tree.parse(os.path.join(path, "ctest.xml")).getroot()
    except (OSError, tree.ParseError) as error:
        print(f"summary: {path}: no test has run: {error}", file=sys.stderr)
        return [0, 1, 0]
    for program in root.iter("testcase"):
        own = os.path.join(path, program.get("name") + ".xml")
        bad = program.get("status") == "fail" or program.find("failure") is not None
        skipped = program.get("status") in ("notrun", "disabled") or program.find("skipped") is not None
        try:
            counts = list(cases(own)) if os.path.exists(own) else [0, 0, 0]
        except tree.ParseError:
            counts = [0, 0, 0]
        if sum(counts) == 0:
            counts = [int(not bad and not skipped), int(bad), int(skipped and not bad)]
        elif bad and counts[1] == 0:
            counts[1] = 1
        total = [a + b for a, b in zip(total, counts)]
    return total


def main():
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        total = [a + b for a, b in zip(total, directory(path))]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())

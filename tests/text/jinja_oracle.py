"""Renders templates with Python's jinja2, for jinja_test.cpp: an array of {source, context} on
standard input, an array of {text} or {error} on standard output."""
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    # As in Hugging Face's transformers: the built-in one escapes for HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def main():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    results = []
    for case in json.load(sys.stdin):
        try:
            text = environment.from_string(case["source"]).render(**case["context"])
            results.append({"text": text})
        except Exception as error:
            results.append({"error": f"{type(error).__name__}: {error}"})
    json.dump(results, sys.stdout)


main()

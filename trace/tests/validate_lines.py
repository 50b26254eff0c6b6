"""Judges lines of JSON by a schema: validate_lines.py SCHEMA GOOD BAD

Every line of GOOD must be valid, every line of BAD must not. Exit code 0: so it is; 1: not so, and printed where;
77: the module jsonschema is not installed.
"""
import json
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(77)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        # split, not splitlines: a text may contain other line breaks than \n.
        return [json.loads(line) for line in file.read().split("\n") if line]


def main():
    schema_path, good_path, bad_path = sys.argv[1:]
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    good, bad = lines_of(good_path), lines_of(bad_path)
    refused = [line for line in good if not validator.is_valid(line)]
    accepted = [line for line in bad if validator.is_valid(line)]
    for line in refused:
        print("refused:", json.dumps(line))
    for line in accepted:
        print("accepted:", json.dumps(line))
    return 1 if refused or accepted or not good or not bad else 0


if __name__ == "__main__":
    sys.exit(main())

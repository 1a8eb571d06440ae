"""Ratios and tables of the result files of measure_epilogues, bench/results/*/epilogues*.json."""

import json
import statistics

from page_text import table

STEM = "epilogues"  # of the names of the files
LENGTHS = ((2048, "k from 2048"), (512, "k from 512"), (0, "shorter k"))
UNFUSED, PEER = "/ unfused", "/ peer"
COLUMNS = [label for _, label in LENGTHS] + [UNFUSED, PEER]


def find_length(record):
    return next(i for i, (low, _) in enumerate(LENGTHS) if record["k"] >= low)


def group_records(records):
    """Returns the records of each type and mode."""
    groups = {}
    for record in records:
        groups.setdefault((record["type"], record["mode"]), []).append(record)
    return groups


def find_ratios(records, name):
    """Returns the ratios of each of COLUMNS: our time with the epilogue over that of our plain
    product, over that of two passes, and over the peer's."""
    ratios = {column: [] for column in COLUMNS}
    for record in records:
        own, plain = record["epilogues"][name], record["epilogues"]["plain"]
        if not own["us"] or not plain["us"]:
            continue
        ratios[COLUMNS[find_length(record)]].append(own["us"] / plain["us"])
        for column, key in ((UNFUSED, "unfused_us"), (PEER, "peer_us")):
            if own[key]:
                ratios[column].append(own["us"] / own[key])
    return ratios


def tell_ratios(ratios):
    """Returns the mean and the largest of ratios."""
    if not ratios:
        return "-"
    return f"{statistics.geometric_mean(ratios):.2f}, {max(ratios):.2f}"


def make_section(path, name):
    """Returns the section of a result file."""
    result = json.loads(path.read_text(encoding="utf-8"))
    head = result["head"]
    text = (f"## {path.stem}, {head['machine']['processor']}\n\n"
            f"Shapes of `tools/measure/measure_epilogues` by seed {result['seed']}. Time with an "
            "epilogue over that of the plain\nproduct by the length of k, over that of the product "
            "and a second pass over D, and over\nthat of the peer's product with its own epilogue: "
            "mean and largest; under 1 we are faster.\n"
            f"Peer: {head['peers'][0]['version']}. Source {head['source']}, {head['date'][:10]}. "
            f"File: `{name}`.\n")
    for (kind, mode), records in group_records(result["records"]).items():
        text += f"\n{kind}, {mode}, {len(records)} shapes:\n\n"
        text += table(["epilogue", *COLUMNS[:len(LENGTHS)], "of two passes", "of the peer"],
                      [[epilogue, *map(tell_ratios, find_ratios(records, epilogue).values())]
                       for epilogue in records[0]["epilogues"]])
    return text + "\n"

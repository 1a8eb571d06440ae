"""Ratios and tables of the result files of measure_epilogues, bench/results/*/epilogues*.json."""

import json
import statistics

from page_text import table

STEM = "epilogues"  # of the names of the files
LENGTHS = ((2048, "k from 2048"), (512, "k from 512"), (0, "shorter k"))
UNFUSED, PEER = "over two passes", "over the peer"
COLUMNS = [label for _, label in LENGTHS] + [UNFUSED, PEER]
# Ratios above these are losses; cells of these columns count them.
MOST = {UNFUSED: 1.02, PEER: 1 / 0.9}


def find_length(record):
    return next(i for i, (low, _) in enumerate(LENGTHS) if record["k"] >= low)


def group_records(records):
    """Returns the records of each type and mode."""
    groups = {}
    for record in records:
        groups.setdefault((record["type"], record["mode"]), []).append(record)
    return groups


def find_c_us(record, name):
    """Returns the time in which C's bytes are read, if the epilogue has C; 0 for a short k, where
    that would be most of the whole time."""
    return record["c_us"] if name == "c" and find_length(record) < len(LENGTHS) - 1 else 0.0


def find_ratios(records, name):
    """Returns the ratios of each of COLUMNS: our time with the epilogue, less that of C's bytes,
    over that of our plain product, then our whole time over that of two passes, and over the
    peer's."""
    ratios = {column: [] for column in COLUMNS}
    for record in records:
        own, plain = record["epilogues"][name], record["epilogues"]["plain"]
        if not own["us"] or not plain["us"]:
            continue
        ratios[COLUMNS[find_length(record)]].append(
            (own["us"] - find_c_us(record, name)) / plain["us"])
        for column, key in ((UNFUSED, "unfused_us"), (PEER, "peer_us")):
            if own[key]:
                ratios[column].append(own["us"] / own[key])
    return ratios


def tell_ratios(column, ratios):
    """Returns the text of the mean and the largest of a column's ratios, and of how many are a
    loss if the column counts them."""
    if not ratios:
        return "-"
    text = f"{statistics.geometric_mean(ratios):.3f}, {max(ratios):.2f}"
    if column in MOST:
        text += f", {sum(ratio > MOST[column] for ratio in ratios)}"
    return text


def tell_cells(records, name):
    """Returns the texts of an epilogue's row, one for each of COLUMNS."""
    return [tell_ratios(column, ratios) for column, ratios in find_ratios(records, name).items()]


def tell_load(machine):
    """Returns a sentence about other work on the machine when the run began, if there was any."""
    if machine["load_average"] <= machine["processor_count"]:
        return ""
    return (f"The run began at a load average of {machine['load_average']:.1f} on "
            f"{machine['processor_count']} processors; other work may\nexplain some of "
            "the largest ratios.\n")


def make_section(path, name):
    """Returns the section of a result file."""
    result = json.loads(path.read_text(encoding="utf-8"))
    head = result["head"]
    text = (f"## {path.stem}, {head['machine']['processor']}\n\n"
            f"Random shapes of `tools/measure/measure_epilogues`, seed {result['seed']}"
            + (", on one thread" if result["device"] == "cpu" else "") + ".\n"
            "Every ratio is the time of our fused product over another time, so that a ratio below "
            "1 is a gain:\n\n"
            "- **k from 2048, k from 512, shorter k:** over our product without an epilogue. The "
            "time of row c is\n  without that of reading C's bytes if k is 512 or more.\n"
            f"- **{UNFUSED}:** over our plain product and a second pass over D.\n"
            f"- **{PEER}:** over the peer's product with its own epilogue.\n\n"
            "A cell has the geometric mean and the largest ratio, and in the last two columns the "
            f"number of\nratios over {MOST[UNFUSED]:.2f} and {MOST[PEER]:.2f}. Rows relu, gelu and "
            "silu include a bias by columns; row c has beta = 1.\n"
            f"Peer: {head['peers'][0]['version']}. Source {head['source']}, {head['date'][:10]}. "
            f"File: `{name}`.\n" + tell_load(head["machine"]))
    for (kind, mode), records in group_records(result["records"]).items():
        text += f"\n{kind}, {mode}, {len(records)} shapes:\n\n"
        text += table(["epilogue", *COLUMNS],
                      [[epilogue, *tell_cells(records, epilogue)]
                       for epilogue in records[0]["epilogues"]])
    return text + "\n"

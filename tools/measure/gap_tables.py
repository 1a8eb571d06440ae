"""Tables of the result files of measure_gaps, bench/results/*/gaps*.json, losers first."""

import json
import statistics

from page_text import table

STEM = "gaps"  # of the names of the files
LOSS, BAD_LOSS = 0.95, 0.85
SHOWN = 40  # losers of a file that the page lists


def load(path):
    """Returns the result of a file. A CPU's kinds are named with the number of threads, so that
    runs of several numbers stand beside each other."""
    result = json.loads(path.read_text(encoding="utf-8"))
    head = result["head"]
    if not head["machine"].get("gpu"):
        count = int(head["command"][head["command"].index("--threads") + 1])
        for record in result["records"]:
            record["kind"] += f", {count} thread{'s' if count > 1 else ''}"
    return result


def summarize(records):
    """Returns (kind, mode, ratios) of each kind and mode, those with the most losers first."""
    groups = {}
    for record in records:
        groups.setdefault((record["kind"], record["mode"]), []).append(record["ratio"])
    return sorted(((kind, mode, ratios) for (kind, mode), ratios in groups.items()),
                  key=lambda group: (-sum(ratio < LOSS for ratio in group[2]) / len(group[2]),
                                     statistics.geometric_mean(group[2])))


def tell_share(ratios, limit):
    return f"{100 * sum(ratio < limit for ratio in ratios) / len(ratios):.1f} %"


def make_summary(records):
    return table(
        ["kind", "operands", "shapes", "under 0.95", "under 0.85", "times as fast", "worst"],
        [[kind, mode, str(len(ratios)), tell_share(ratios, LOSS), tell_share(ratios, BAD_LOSS),
          f"{statistics.geometric_mean(ratios):.2f}", f"{min(ratios):.2f}"]
         for kind, mode, ratios in summarize(records)])


def make_families(records):
    """Returns the table of the losers' families, and of what is wrong in each."""
    families = {}
    for record in records:
        if record["ratio"] < LOSS:
            families.setdefault((record["kind"], record["family"]), []).append(record)
    rows = []
    for (kind, family), members in sorted(families.items(), key=lambda item: -len(item[1])):
        causes = [member["cause"] for member in members]
        rows.append([kind, family, str(len(members)),
                     *(str(causes.count(cause)) for cause in ("plan", "kernels", "unknown")),
                     f"{min(member['ratio'] for member in members):.2f}"])
    return table(["kind", "family", "slower", "by the plan", "by the kernels", "unknown", "worst"],
                 rows)


def make_losers(records):
    losers = sorted((record for record in records if record["ratio"] < LOSS),
                    key=lambda record: record["ratio"])
    return table(["ratio", "shape", "operands", "kernel", "us", "peer", "us", "cause"],
                 [[f"{loser['ratio']:.2f}", loser["shape"], loser["mode"], loser["kernel"],
                   f"{loser['kernel_s'] * 1e6:.1f}", loser["peer"], f"{loser['peer_s'] * 1e6:.1f}",
                   loser["cause"]] for loser in losers[:SHOWN]])


def make_section(path, name):
    """Returns the section of a result file."""
    result = load(path)
    head, records = result["head"], result["records"]
    peers = (", beside the best of cuBLAS\nand cuBLASLt. Hot operands are timed in CUDA graphs"
             if head["machine"].get("gpu") else ", beside the best peer")
    text = (f"## {path.stem}, {name_machine(head['machine'])}\n\n"
            f"Random shapes of `tools/measure/measure_gaps`, seed {result['seed']}, "
            f"{result['shapes']} a kind{peers}.\nThe tables count the shapes that the run measured "
            "and a peer multiplied. Batches of all types\nshare the count of a kind. "
            f"Source {head['source']}, {head['date'][:10]}. File: `{name}`.\n\n")
    text += make_summary(records)
    if any(record["ratio"] < LOSS for record in records):
        text += "\nSlower shapes (ratio below 0.95) by family:\n\n" + make_families(records)
        text += f"\nThe slowest of them, at most {SHOWN}:\n\n" + make_losers(records)
    return text + "\n"


def select_newest(results):
    """Returns the records of each kind and mode that the newest run which has it measured."""
    newest = {}
    for result in sorted(results, key=lambda result: result["head"]["date"]):
        groups = {}
        for record in result["records"]:
            groups.setdefault((record["kind"], record["mode"]), []).append(record)
        newest.update(groups)
    return [record for group in newest.values() for record in group]


def name_machine(machine):
    """Returns the name of a GPU, or of a processor with its L1, as generations share a name."""
    if machine.get("gpu"):
        return machine["processor"]
    return f"{machine['processor']} with {machine['l1_bytes'] >> 10} KiB of L1"


def make_readme_part(paths):
    """Returns the table of README.md over all result files; nothing if there are none."""
    results = [load(path) for path in paths]
    if not results:
        return ""
    text = ""
    machines = [name_machine(result["head"]["machine"]) for result in results]
    for machine in dict.fromkeys(machines):
        ours = [result for result, name in zip(results, machines) if name == machine]
        seeds = list(dict.fromkeys(str(result["seed"]) for result in ours))
        newest = ",\neach kind by its newest run" if len(seeds) > 1 else ""
        text += (f"\n{machine}, random shapes, seed {' and '.join(seeds)}{newest}:\n\n")
        text += make_summary(select_newest(ours))
    return text

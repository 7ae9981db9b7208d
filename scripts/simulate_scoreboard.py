#!/usr/bin/env python3
"""Runs `warmpath simulate` over a fixed grid and writes the scoreboard as Markdown (docs/simulate_scoreboard.md).

Usage: scripts/simulate_scoreboard.py WARMPATH TRACES_FOLDER OUT.md [--seeds N] [--policies A,B]
Finished cells are kept in OUT.md.cells, one JSON object a line, so an interrupted run goes on where it stopped.
"""
import argparse
import json
import os
import subprocess

POLICIES = ("predicted_seconds,session_sticky,load_product,linear_blocks,weighted_scores,threshold_tree,"
            "consistent_hash_bounded,least_requests,power_of_two,round_robin,random,pooled_cache")


def cells(traces):
    """Of every size, both kinds of traffic; the usual sizes first, because an interrupted run keeps what it has."""
    conversation = ["--trace", f"{traces}/mooncake_conversation.jsonl", "--jitter", "3"]
    sessions = ["--trace", f"{traces}/coding_agent_sessions.jsonl", "--max-think", "300", "--sessions", "150"]
    for replicas in (8, 16, 4, 64):
        for blocks in ("10%", "1000", "25%"):
            size = ["--replicas", str(replicas), "--kv-blocks", blocks]
            for rho in ("0.9", "0.6"):
                yield f"conversation, N {replicas}, C {blocks}, rho {rho}", conversation + size + ["--rho", rho]
            for rho in ("0.4", "0.2") if replicas < 64 and blocks != "25%" else ():
                yield f"coding agents, N {replicas}, C {blocks}, rho {rho}", sessions + size + ["--rho", rho]


EVENTS = (("at once", []), ("50 ms late, 1 % lost", ["--event-delay-ms", "50", "--event-loss", "0.01"]),
          ("none", ["--no-events"]))


def gateway_cells():
    """How much of a single gateway's hits several gateways keep, of the policy that goes by caches."""
    common = ["--shape", "sessions=200,turns=12,base=4096,first=2048,turn=700,output=100,think=5", "--replicas", "8",
              "--kv-blocks", "25%", "--rho", "0.4", "--no-session-ids", "--policy", "predicted_seconds"]
    for gateways in (1, 2, 4, 8):
        for name, events in EVENTS:
            yield f"{gateways} gateways, events {name}", common + events + ["--gateways", str(gateways)]


def render_gateways(done):
    rows = {title: done[title]["policies"][0] for title, _ in gateway_cells() if title in done}
    if len(rows) < len(list(gateway_cells())):
        return ""
    out = ["\n## Several gateways\n\n200 made-up sessions of 12 turns that do not name themselves, N 8, C 25%, rho 0.4, "
           "`predicted_seconds`; requests reach the gateways in turn, and nothing is shared between them but what the "
           "replicas tell. Hit ratio of turns that are not their session's first; in brackets, of the single gateway's with events at once; mean TTFT.\n",
           "| events | " + " | ".join(f"{n} gateway{'s' if n > 1 else ''}" for n in (1, 2, 4, 8)) + " |\n|---|---|---|---|---|"]
    alone = rows["1 gateways, events at once"]["follow_up_hit_ratio"]
    for name, _ in EVENTS:
        cells = [rows[f"{n} gateways, events {name}"] for n in (1, 2, 4, 8)]
        out.append(f"| {name} | " + " | ".join(f"{cell['follow_up_hit_ratio']:.3f} ({cell['follow_up_hit_ratio'] / alone:.2f}), "
                                               f"{cell['ttft_mean_s']:.2f} s" for cell in cells) + " |")
    return "\n".join(out) + "\n"


def render(results, all_cells):
    out = []
    # Neither the bound nor other options of the same policy compete.
    real = lambda cell: [row for row in cell["policies"] if row["policy"] != "pooled_cache" and row["policy"][0] != "{"]
    near = lost = 0
    summary = []
    for title, cell in results:
        rows = real(cell)
        best = min(rows, key=lambda row: row["ttft_mean_s"])
        ours = next(row for row in rows if row["policy"] == "predicted_seconds")
        pooled = next((f"{row['ttft_mean_s']:.2f}" for row in cell["policies"] if row["policy"] == "pooled_cache"), "")
        over = ours["ttft_mean_s"] / best["ttft_mean_s"] - 1
        near += over <= 0.03
        lost += over > 0.10
        summary.append(f"| {title} | {ours['ttft_mean_s']:.2f} | {best['ttft_mean_s']:.2f} ({best['policy']}) | "
                       f"{100 * over:+.0f} % | {pooled} | {ours['hit_ratio']:.3f} | "
                       f"{ours['goodput']:.3f} | {max(row['goodput'] for row in rows):.3f} |")
    out.append(f"`predicted_seconds` has the lowest mean TTFT, or is within 3 % of it, in **{near} of {len(results)}** "
               f"cells; it is more than 10 % above the lowest in {lost}.\n")
    out.append("| cell | ours, TTFT s | lowest, TTFT s | ours above | pooled bound, s | ours, hit | ours, goodput | best goodput |\n"
               "|---|---|---|---|---|---|---|---|")
    out += summary
    for title, cell in results:
        out.append(f"\n### {title}\n\n| policy | hit | TTFT mean s | p50 | p99 | TPOT ms | goodput | session s | imbalance |\n"
                   "|---|---|---|---|---|---|---|---|---|")
        for row in cell["policies"]:
            pm = lambda key, scale=1, digits=2: f"{row[key] * scale:.{digits}f}" + (
                f" ± {row[key + '_interval'] * scale:.{digits}f}" if key + "_interval" in row else "")
            out.append(f"| {row['policy']} | {pm('hit_ratio', digits=3)} | {pm('ttft_mean_s')} | {pm('ttft_p50_s')} | "
                       f"{pm('ttft_p99_s', digits=1)} | {pm('tpot_mean_s', 1000, 1)} | {pm('goodput', digits=3)} | "
                       f"{pm('session_mean_s', digits=0)} | {pm('imbalance')} |")
    one = min(int(cell["settings"]["seeds"].split()[0]) for _, cell in results) == 1
    head = ("# Scoreboard of routing policies, simulated\n\nEvery figure is simulated (docs/simulate.md says how): ratios "
            "between policies matter, absolute seconds do not. Made by `scripts/simulate_scoreboard.py`; every policy has "
            f"its documented defaults; ± is half a 95 % interval over seeds{' (cells without ± are one seed)' if one else ''}. "
            f"{len(results)} of the grid's {all_cells} cells have been run. `pooled_cache` is a bound, not a policy: "
            "one cache as large as all together, which no replica has.\n\n")
    shown = {row["policy"] for _, cell in results for row in cell["policies"]}
    left_out = [name for name in POLICIES.split(",") if name not in shown]
    if left_out:
        head += f"Left out of this run, to save time: {', '.join(left_out)}.\n\n"
    return head + "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("warmpath")
    parser.add_argument("traces")
    parser.add_argument("out")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--policies", default=POLICIES, help="fewer of them, for a run that ends sooner")
    options = parser.parse_args()
    kept = options.out + ".cells"
    done = {}
    if os.path.exists(kept):
        with open(kept) as file:
            done = {row["cell"]: row["result"] for row in map(json.loads, file)}
    several = [(title, arguments) for title, arguments in gateway_cells()]
    for title, arguments in [("", [])] + list(cells(options.traces)) + several:
        if title and title in done:
            continue
        if title:
            command = [options.warmpath, "simulate", "--json", "--seeds", str(options.seeds)]
            if "--policy" not in arguments:
                command += ["--policy", options.policies]
            done[title] = json.loads(subprocess.run(command + arguments, check=True, stdout=subprocess.PIPE,
                                                    stderr=subprocess.DEVNULL).stdout)
            with open(kept, "a") as file:
                file.write(json.dumps({"cell": title, "result": done[title]}) + "\n")
        grid = [title for title, _ in cells(options.traces)]
        results = [(title, done[title]) for title in grid if title in done]
        if results:
            with open(options.out, "w") as file:
                file.write(render(results, len(grid)) + render_gateways(done))


if __name__ == "__main__":
    main()

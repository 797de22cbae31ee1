"""Launches that are timed in turn."""

import statistics

import torch


def timed(launches, rounds=21, launches_a_round=3):
    times = {name: [] for name in launches}
    for _ in range(rounds):
        for name, launch in launches.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(launches_a_round):
                launch()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / launches_a_round)
    return {name: statistics.median(all[3:]) for name, all in times.items()}

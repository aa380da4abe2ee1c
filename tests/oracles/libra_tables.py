"""LIBRA's published figures as text files in LIBRA's own formats.

Source of every figure: astra-sim/libra (MIT licence), commit 0044db0, ``inputs/``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

NAMES = ("Q", "K", "V", "QK", "softmax", "concat", "X{}W1b", "X{}W2b", "layerNorm")


@dataclass(frozen=True)
class Table:
    """Compute ns of the projection, score, feed-forward and norm rows; bytes of collectives."""

    projection_ns: int
    score_ns: int
    feed_forward_ns: int
    norm_ns: int
    activation_bytes: int
    weight_gradient_bytes: int
    shard_bytes: int

    def rows(self) -> list[list[str]]:
        """The 18 rows, as the fields of LIBRA's text lines."""
        p, s, f, n = self.projection_ns, self.score_ns, self.feed_forward_ns, self.norm_ns
        times = [p, p, p, s, s, p, f, f, n]
        rows = []
        for layer in (1, 2):
            for i, ns in enumerate(times):
                fields = [["NONE", "0"], ["NONE", "0"], ["NONE", "0"]]
                reduce = ["ALLREDUCE", str(self.activation_bytes)]
                if i in (5, 7):
                    fields[0] = reduce
                if i in (0, 6):
                    fields[1] = reduce
                if i == 5:
                    fields[1] = ["ALLGATHER", str(self.shard_bytes)]
                if i == 0 and layer == 1:
                    fields[2] = ["ALLREDUCE", str(self.weight_gradient_bytes)]
                name = NAMES[i].format(layer) + str(layer)
                rows.append([name, "-1", *(x for pair in fields for x in (str(ns), *pair)), "10"])
        return rows

    def text(self) -> str:
        """The workload file."""
        return "\n".join(" ".join(row) for row in self.rows()) + "\n"


TABLES = {
    "GPT_3": Table(9375000, 781250, 37500000, 12207, 805306368, 452984832, 50331648),
    "MSFT_1T": Table(2343750, 97656, 9375000, 12207, 805306368, 226492416, 6291456),
    "Turing_NLG": Table(4498545, 270589, 17994181, 1057, 69730304, 869449728, 69730304),
}

NETWORKS = {
    3: "Topology: [ Ring, FullyConnected, Switch ]  # 3D\n"
    "NpusCount: [ 16, 8, 32 ]\nCostDimension: [ InterPackage, InterNode, InterPod ]\n",
    4: "Topology: [ Ring, FullyConnected, Ring, Switch ]\nNpusCount: [ 4, 8, 4, 32 ]\n"
    "CostDimension: [ InterChiplet, InterPackage, InterNode, InterPod ]\n",
}

PRICES = {
    3: "InterPackage:\n  Link: 4.00001\n  Switch: 13.00001\nInterNode:\n  Link: 4.00002\n"
    "  Switch: 13.00002\nInterPod:\n  Link: 7.80003\n  Switch: 18.00003\n  Nic: 31.60003\n",
    4: "InterChiplet:\n  Link: 2.00001\nInterPackage:\n  Link: 4.00002\n  Switch: 13.00002\n"
    "InterNode:\n  Link: 4.00003\n  Switch: 13.00003\n"
    "InterPod:\n  Link: 7.80004\n  Switch: 18.00004\n  Nic: 31.60004\n",
}


def optima() -> list[dict[str, str]]:
    """The reference rows."""
    lines = (HERE / "libra_optima.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def write_files(folder: Path, row: dict[str, str]) -> list[str]:
    """LIBRA's four files of a reference row; returns ``import libra``'s arguments."""
    n_dims = row["topology"].count("_") + 1
    groups = {
        key: row[column].replace(" ", ", ")
        for key, column in (
            ("Forward", "forward"),
            ("InputGrad", "input_grad"),
            ("WeightGrad", "weight_grad"),
        )
    }
    texts = {
        "network": ("n.yml", NETWORKS[n_dims]),
        "workload": ("w.txt", TABLES[row["workload"]].text()),
        "communicator": ("c.yml", "".join(f"{k}: [ {v} ]\n" for k, v in groups.items())),
        "cost-model": ("m.yml", PRICES[n_dims]),
    }
    arguments = []
    for option, (name, text) in texts.items():
        (folder / name).write_text(text)
        arguments += [f"--{option}", str(folder / name)]
    return arguments

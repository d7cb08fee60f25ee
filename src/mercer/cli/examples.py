"""Two examples for each verb, shown at the end of its help and run by the tests."""

from __future__ import annotations

EXAMPLES: dict[str, dict[str, str]] = {  # verb: {what it does: the command}
    "cluster": {
        "Ten clusters of any shape; labels, and a model for new rows":
            "mercer cluster rows.parquet -k 10 --out labels.parquet --model m.mercer --seed 0",
        "Find the number of clusters, in bounded memory":
            "mercer cluster rows.npy -k auto --max-memory 2GB --out labels.npy",
    },
    "plan": {
        "What the work would need, before it starts":
            "mercer plan rows.parquet -k 10 --max-memory 2GB",
        "The same for kernel k-means, as JSON":
            "mercer plan rows.npy -k 3 --method kernel-kmeans --json",
    },
    "predict": {
        "Label the rows of today":
            "mercer predict m.mercer today.parquet --out today-labels.parquet",
        "The same with two threads, the result as JSON":
            "mercer predict m.mercer today.parquet --out today.csv --jobs 2 --json",
    },
    "report": {
        "A page about a model and its rows, for any browser":
            "mercer report m.mercer rows.parquet --out report.html",
        "The report alone, as Markdown":
            "mercer report m.mercer rows.parquet --out report.md",
    },
    "explain": {
        "What a model knows of its clusters: report, profiles, exemplars":
            "mercer explain m.mercer",
        "The same as JSON":
            "mercer explain m.mercer --json",
    },
    "tune": {
        "How many clusters, and how wide a kernel":
            "mercer tune rows.npy --clusters 2:6 --out tune.json --plot tune.png",
        "These three numbers, these bandwidths":
            "mercer tune rows.npy --clusters 3,5,8 --gamma 0.1:10:5 --seed 0",
    },
    "stream": {
        "Labels as rows are read, a snapshot of the model every ten batches":
            "mercer stream rows.npy -k 3 --out s.csv --model s.mercer --seed 0",
        "Resume after it was stopped, the report as JSON":
            "mercer stream rows.npy -k 3 --out s.csv --model s.mercer --seed 0 --resume --json",
    },
    "segment": {
        "One image into five segments, their boundaries drawn, and a page with all levels":
            "mercer segment photo.png -k 5 --out parts.png --report levels.html",
        "Several images: label images into a folder, numbers of segments found automatically":
            "mercer segment photo.png other.png --labels parts",
    },
    "warmup": {
        "What the defaults need": "mercer warmup",
        "Every approximation, without a word": "mercer warmup --all --quiet",
    },
    "demo": {
        "See what Mercer does": "mercer demo",
        "In another folder, the scores as JSON": "mercer demo --rows 2000 --out try --json",
    },
}  # fmt: skip

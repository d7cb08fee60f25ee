"""Plain scripts that measure: `python -m benchmarks.speed NAME`, `… benchmarks.papers NAME`.

Data come from `--data DIR` or the environment variable MERCER_DATA; results go to
`benchmarks/results/`.
"""

"""Plain scripts that measure: `python -m benchmarks.speed NAME`, `python -m benchmarks.papers NAME`.

Data come from `--data DIR` or the environment variable MERCER_DATA; results go to
`benchmarks/results/`.
"""

"""What a process does besides requests: deadlines, clocks, threads, forks, gates.

`deadline` says how long a page or an operation may take, `gates` how many do the same at once,
`turns` which page computes next, `threads` what is done at the same time, `processes` what each
process makes once.
"""

"""Code that does not depend on DynamoDB: deadlines, clocks, threads, processes, gates.

`deadline` says how long a page or an operation may take, `gates` how many do the same at once and
which page computes next, `threads` what is done at the same time, `processes` what each process
makes once, `clock` what time it is. `lazy` imports names on first use, `altering` marks methods
that templates must not call, `terminal` makes text safe for a terminal.
"""

"""Code that does not depend on DynamoDB: deadlines, clocks, threads, processes, gates.

`deadline` limits the time of a page or an operation; `gates` limits how many do the same at once,
and decides which page computes next; `threads` makes calls at the same time; `processes` has
objects that each process makes once; `clock` has the time; `lazy` imports names on first use;
`altering` marks methods that templates must not call; `terminal` makes text safe for a terminal.
"""

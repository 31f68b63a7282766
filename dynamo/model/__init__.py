"""`Model`, from top to bottom.

`base` is the class that projects derive from: what a declaration makes, and how an item is created.
`writing` changes and deletes, `reading` gets and finds, `pages` reads lists page by page, `objects`
is what an object knows of its stored item, `unique` makes guard items, and `declarations` refuses
what would have no effect.
"""

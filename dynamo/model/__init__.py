"""`Model` is one chain of classes, from what is declared down to what an object knows.

- `base`: what does a declaration make? `declarations` refuses what would have no effect.
- `orm`: which calls of Django's ORM exist here?
- `managers`: which methods of `objects` do Django's shortcuts and forms call?
- `writing`: what does a change, a save or a deletion write, and under which condition?
- `creating`: how is an item created, and what does a request id do?
- `reading`: how is an item got or found? `pages`: how is a list read, also by an index?
- `objects`: what does an object know of its stored item, and what was assigned since?
- `keys`: which keys can an item have, and which guard items? `unique`: what is in a guard item?
- `references`: which items must exist?
"""

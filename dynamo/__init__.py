"""Models with unique attributes, transactions, cache and sessions for Django on DynamoDB.

from dynamo import Model, TextAttribute, Unique, casefolded

A module imports only from the rows below its own:

     1  admin           Django's admin for models; the audit log
     2  auth            users; `rest`: Django REST framework; `pytest_plugin`
     3  management      commands; `test`: what tests need; `views`: generic views
     4  forms, tables   forms of models; tables created, described and checked
     5  model           `Model`; `sessions`, `health`
     6  transactions    several writes, all or none; `cache`, `middleware`, `otel`, `apps`
     7  client          requests: sent, repeated, counted; the local engine
     8  runtime         deadlines, threads, processes, gates
     9  exceptions      the errors; `inputs`: attributes whose values people type
    10  wire            items as DynamoDB has them; `signals`
"""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)

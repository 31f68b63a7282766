"""Serializers and viewsets of Django REST framework for a `Model` (extra `rest`).

    class MemberSerializer(ModelSerializer):
        class Meta:
            model = Member
            fields = ["pk", "email", "club"]

    class MemberViewSet(ModelViewSet):
        serializer_class = MemberSerializer

        def get_partition(self):            # lists, finds and creates only items of this club
            return self.request.user.club
        index = Member.by_club

    router.register("members", MemberViewSet)

Everything else works as in the framework. A refused write decides the status:

    400                a value is not valid, another item has a unique value, or the item of a
                       reference does not exist (at its field)
    404                no such item, or it is in another partition
    412                the item changed since the client read it (`If-Match`), or during the request
    422                the `Idempotency-Key` made an item before, with other values
    503, Retry-After   DynamoDB gave no answer in time

Each item has an `ETag`, which each write changes. Of two deletions with the same `If-Match`, one
succeeds, and the other gets a 404 or a 412. A `POST` with an `Idempotency-Key` creates one item,
even if it is sent several times. The keys of different users are independent.

Throttles count exactly in the cache:

    REST_FRAMEWORK = {
        "DEFAULT_THROTTLE_CLASSES": ["dynamo.rest.UserRateThrottle"],
        "DEFAULT_THROTTLE_RATES": {"user": "100/min"},
    }
"""


def __getattr__(name: str) -> object:
    # The framework imports DEFAULT_THROTTLE_CLASSES while it imports its views.
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)

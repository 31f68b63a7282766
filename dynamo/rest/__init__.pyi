from dynamo.rest.pagination import CursorPagination as CursorPagination
from dynamo.rest.throttles import (
    AnonRateThrottle as AnonRateThrottle,
    ScopedRateThrottle as ScopedRateThrottle,
    SimpleRateThrottle as SimpleRateThrottle,
    UserRateThrottle as UserRateThrottle,
)
from dynamo.rest.views import (
    GenericViewSet as GenericViewSet,
    ModelMixin as ModelMixin,
    ModelSerializer as ModelSerializer,
    ModelViewSet as ModelViewSet,
    ReadOnlyModelViewSet as ReadOnlyModelViewSet,
)

"""`dynamo.rest` over HTTP, on a real engine."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.urls import include, path
from pynamodb.attributes import BinaryAttribute, UnicodeSetAttribute
from rest_framework import serializers
from rest_framework.filters import OrderingFilter, SearchFilter
from rest_framework.pagination import PageNumberPagination
from rest_framework.routers import DefaultRouter
from rest_framework.test import APIClient, APIRequestFactory, force_authenticate

from dynamo import (
    BooleanAttribute,
    DateTimeAttribute,
    DecimalAttribute,
    GlobalSecondaryIndex,
    IntegerAttribute,
    JSONAttribute,
    Model,
    Reference,
    TextAttribute,
    Transaction,
    Unique,
    casefolded,
    collect,
    rest,
)
from dynamo.cache import items as cache_items
from dynamo.test import lost_reply, unavailable
from sequences import NumberedItem
from tests.fork_server import fork_server

pytestmark = pytest.mark.usefixtures("engine", "_urls")


class Player(Model):
    class ByTeam(GlobalSecondaryIndex["Player"]):
        team = TextAttribute(hash_key=True)
        name = TextAttribute(range_key=True)

    class Meta:
        table_name = "tests-rest-players"

    email = TextAttribute("Email address", max_length=30)
    team = TextAttribute(choices=[("red", "Red"), ("blue", "Blue")])
    name = TextAttribute()
    shirt = IntegerAttribute(null=True)
    paid = DecimalAttribute(default=0)
    seen = DateTimeAttribute(null=True)
    notes = JSONAttribute(null=True)
    active = BooleanAttribute(default=True)
    tags = UnicodeSetAttribute(null=True)
    photo = BinaryAttribute(legacy_encoding=False, null=True)

    by_team = ByTeam()
    unique_email = Unique("email", normalize=casefolded)
    unique_shirt = Unique("team", "shirt")


class Chair(Model):
    class Meta:
        table_name = "tests-rest-chairs"

    hall = TextAttribute(hash_key=True)
    row = IntegerAttribute(range_key=True)
    guest = TextAttribute(null=True)


class Bill(NumberedItem):
    class Meta:
        table_name = "tests-rest-bills"

    text = TextAttribute()


class Deputy(Model):
    class Meta:
        table_name = "tests-rest-deputies"

    player = Reference(Player)
    other = Reference(Player, null=True, unique=True)


class PlayerSerializer(rest.ModelSerializer):
    class Meta:
        model = Player
        fields = "__all__"
        read_only_fields = ("seen",)


class ChairSerializer(rest.ModelSerializer):
    class Meta:
        model = Chair
        fields = ("hall", "row", "guest")


class BillSerializer(rest.ModelSerializer):
    class Meta:
        model = Bill
        fields = ("series", "number", "text")


class DeputySerializer(rest.ModelSerializer):
    class Meta:
        model = Deputy
        fields = "__all__"


class Deputies(rest.ModelViewSet):
    serializer_class = DeputySerializer


class Players(rest.ModelViewSet):
    serializer_class = PlayerSerializer


class TeamPlayers(rest.ModelViewSet):
    serializer_class = PlayerSerializer
    index = Player.by_team


class PlayersByEmail(rest.ReadOnlyModelViewSet):
    serializer_class = PlayerSerializer
    lookup_field = "email"


class Chairs(rest.ModelViewSet):
    serializer_class = ChairSerializer


class Bills(rest.ModelViewSet):
    serializer_class = BillSerializer
    partition = "2026"


router = DefaultRouter()
router.register("players", Players)
router.register("emails", PlayersByEmail, basename="email")
router.register("chairs", Chairs)
router.register("bills", Bills)
router.register("deputies", Deputies)
teams = DefaultRouter()
teams.register("players", TeamPlayers, basename="team")
urlpatterns = [path("", include(router.urls)), path("teams/<team>/", include(teams.urls))]


class Visitor:
    is_active = is_authenticated = True

    def __init__(self, pk: str) -> None:
        self.pk = pk


@pytest.fixture
def _urls() -> Iterator[None]:
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[]):
        yield


@pytest.fixture
def api() -> APIClient:
    return APIClient()


def player(number: int = 0, **values: Any) -> Player:
    given = {"email": f"p{number}@example.org", "team": "red", "name": f"P{number}"}
    return Player.create(**(given | values))


def test_an_item_is_created_shown_changed_and_deleted(api: APIClient) -> None:
    sent = {"email": "ann@example.org", "team": "red", "name": "Ann", "paid": "1.50", "notes": [1]}
    made = api.post("/players/", sent, format="json")
    assert made.status_code == 201, made.data
    stored = Player.find(email="ANN@example.org")
    stored.change(tags={"b", "a"}, photo=b"\xff")

    shown = api.get(f"/players/{stored.pk}/")
    assert shown.json() == {
        "pk": stored.pk,
        **sent,
        **{"shirt": None, "seen": None, "active": True, "paid": "1.5"},
        **{"tags": ["a", "b"], "photo": "ff"},
    }
    changed = api.patch(f"/players/{stored.pk}/", {"shirt": 7, "pk": "other"}, format="json")
    assert (changed.status_code, changed.json()["shirt"]) == (200, 7)
    assert Player.get(stored.pk).shirt == 7
    assert api.delete(f"/players/{stored.pk}/").status_code == 204
    assert api.get(f"/players/{stored.pk}/").status_code == 404


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ({"email": "P0@EXAMPLE.org"}, {"email"}),
        ({"shirt": 1}, {"non_field_errors"}),
        ({"email": "p0@example.org", "shirt": 1}, {"email", "non_field_errors"}),
        ({"email": "x" * 31}, {"email"}),
        ({"shirt": int("9" * 50)}, {"non_field_errors"}),
        ({"paid": "1e99"}, {"paid"}),
        ({"name": "x" * 2000}, {"non_field_errors"}),
        ({"notes": "x" * 410_000}, {"non_field_errors"}),
        ({"email": None, "team": "green", "name": ""}, {"email", "team", "name"}),
    ],
)
@pytest.mark.parametrize("method", ["post", "put"])
def test_a_refused_value_is_a_400_at_its_field(
    api: APIClient, values: dict[str, Any], places: set[str], method: str
) -> None:
    player(shirt=1)
    other = player(1, shirt=2)
    url = "/players/" if method == "post" else f"/players/{other.pk}/"
    sent = {"email": "new@example.org", "team": "red", "name": "New", "shirt": 9, **values}

    answer = getattr(api, method)(url, sent, format="json")

    assert (answer.status_code, set(answer.json())) == (400, places)
    assert Player.get(other.pk).version == other.version
    assert len(list(Player.scan())) == 2


@pytest.mark.parametrize("values", [{"player": "x"}, {"other": "x"}, {"player": "x", "other": "y"}])
@pytest.mark.parametrize("method", ["post", "put"])
def test_a_reference_to_no_item_is_a_400_at_its_field(
    api: APIClient, values: dict[str, str], method: str
) -> None:
    stored = Deputy.create(player=player())
    url = "/deputies/" if method == "post" else f"/deputies/{stored.pk}/"

    answer = getattr(api, method)(url, {"player": stored.player, **values}, format="json")

    assert (answer.status_code, answer.json().keys()) == (400, values.keys())
    assert {error.code for errors in answer.data.values() for error in errors} == {"does_not_exist"}
    assert [*Deputy.scan()] == [stored]
    assert Deputy.get(stored.pk).version == stored.version


def test_an_item_that_is_too_large_is_a_400(api: APIClient) -> None:
    item = player(tags={"x" * 200_000}, notes="old")
    sent = [
        api.patch(f"/players/{item.pk}/", {"notes": "x" * 250_000}, format="json"),
        api.post("/bills/", {"text": "x" * 410_000}, format="json"),
    ]

    for answer in sent:
        assert answer.status_code == 400
        assert answer.json() == {"non_field_errors": ["This is too large to be stored."]}
    assert Player.get(item.pk).notes == "old"
    assert list(Bill.scan()) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlayerSerializer(),
        lambda: serializers.SlugRelatedField(slug_field="email", queryset=Player.objects.all()),
        lambda: serializers.HyperlinkedRelatedField("x", queryset=Player.objects.all()),
        lambda: serializers.SlugRelatedField(slug_field="email", read_only=True, source="other"),
    ],
)
def test_a_field_of_another_item_than_its_key_is_refused_before_a_write(make: Any) -> None:
    class Own(DeputySerializer):
        player = make()

    stored = Deputy.create(player=player())
    request = APIRequestFactory().post("/", {"player": stored.player}, format="json")
    view = type("View", (Deputies,), {"serializer_class": Own}).as_view({"post": "create"})

    with pytest.raises(ImproperlyConfigured, match="the value of a Reference is a key"):
        view(request)
    assert [*Deputy.scan()] == [stored]


def test_a_primary_key_related_field_finds_the_item_of_a_reference() -> None:
    class Own(DeputySerializer):
        player = serializers.PrimaryKeyRelatedField(queryset=Player.objects.all())

    view = type("View", (Deputies,), {"serializer_class": Own}).as_view({"post": "create"})
    for key, status in ((player().pk, 201), ("nobody", 400)):
        request = APIRequestFactory().post("/", {"player": key}, format="json")
        assert view(request).status_code == status


def test_a_numbered_item_is_not_deleted(api: APIClient) -> None:
    api.post("/bills/", {"text": "rent"}, format="json")

    assert api.delete("/bills/2026,1/").status_code == 405
    assert api.get("/bills/2026,1/").status_code == 200


def test_if_match_and_a_change_in_between_are_412(api: APIClient) -> None:
    item = player()
    url = f"/players/{item.pk}/"
    etag = api.get(url)["ETag"]
    assert etag == f'"{item.version}"'

    changed = api.patch(url, {"name": "One"}, format="json", headers={"If-Match": etag})
    assert (changed.status_code, changed["ETag"] != etag) == (200, True)
    for method in ("patch", "put", "delete"):
        for headers in ({"If-Match": etag}, {"If-None-Match": f'"1", {changed["ETag"]}'}):
            late = getattr(api, method)(url, {}, format="json", headers=headers)
            assert late.status_code == 412
    assert api.get(url, headers={"If-None-Match": "*"}).status_code == 200
    assert Player.get(item.pk).name == "One"
    current = {"If-Match": f'"0", {changed["ETag"]}'}
    assert api.patch(url, {"name": "Two"}, format="json", headers=current).status_code == 200
    assert api.delete(url, headers={"If-Match": "*"}).status_code == 204


def test_of_deletions_with_the_same_if_match_one_succeeds(
    api: APIClient, at_once: Callable[..., list[Any]]
) -> None:
    for item in (player(), Chair.create(hall="red", row=1)):
        url = f"/players/{item.pk}/" if isinstance(item, Player) else "/chairs/red,1/"
        headers = {"If-Match": api.get(url)["ETag"]}

        sent = at_once(
            lambda _number, url=url, headers=headers: APIClient().delete(url, headers=headers)
        )

        codes = sorted(answer.status_code for answer in sent)
        assert codes[0] == 204
        assert {*codes[1:]} <= {404, 412}


@pytest.mark.fault_of("moto", "ignores request tokens")
def test_a_deletion_with_if_match_whose_reply_is_lost_succeeds(api: APIClient) -> None:
    item = player()
    headers = {"If-Match": f'"{item.version}"'}

    with lost_reply():
        assert api.delete(f"/players/{item.pk}/", headers=headers).status_code == 204


def test_an_item_without_a_version_has_an_etag_that_a_write_changes(api: APIClient) -> None:
    made = api.post("/bills/", {"text": "rent"}, format="json")
    url = "/bills/2026,1/"
    first = api.get(url)["ETag"]
    assert made["ETag"] == first != '"None"'

    # What compresses an answer marks its ETag as weak.
    for old, new in ((f"W/{first}", "b"), (None, "rent")):
        old = old or api.get(url)["ETag"]
        changed = api.patch(url, {"text": new}, format="json", headers={"If-Match": old})
        assert (changed.status_code, changed["ETag"]) == (200, api.get(url)["ETag"])
        late = api.patch(url, {"text": "c"}, format="json", headers={"If-Match": old})
        assert late.status_code == 412
    assert api.get(url)["ETag"] != first


def test_an_idempotency_key_creates_once_for_each_user(api: APIClient) -> None:
    def post(name: str, user: str, key: str = "k") -> Any:
        sent = {"email": f"{user}@example.org", "team": "red", "name": name}
        headers = {"Idempotency-Key": key}
        request = APIRequestFactory().post("/", sent, format="json", headers=headers)
        force_authenticate(request, Visitor(user))
        return Players.as_view({"post": "create"})(request)

    first, again = post("A", "ann"), post("A", "ann")
    assert (again.status_code, again.data["pk"]) == (201, first.data["pk"])
    assert post("B", "ann").status_code == 422
    assert post("A", "bob").data["pk"] != first.data["pk"]
    for wrong in ("#", "x" * 256):
        assert post("A", "carl", wrong).status_code == 400
    assert len(list(Player.scan())) == 2


def test_an_outage_is_a_503_with_retry_after_and_a_lost_reply_is_not_seen(api: APIClient) -> None:
    with unavailable():
        answer = api.get("/players/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    sent = {"email": "a@example.org", "team": "red", "name": "A"}
    with lost_reply():
        assert api.post("/players/", sent, format="json").status_code == 201


@pytest.mark.parametrize("url", ["/teams/red/players/", "/players/"])
def test_lists_are_pages_with_cursors(
    api: APIClient, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest.CursorPagination, "page_size", 2)
    for number in range(5):
        player(number)
    names: list[str] = []
    link: str | None = f"{url}?other=1"
    while link:
        page = api.get(link).json()
        names += [item["name"] for item in page["results"]]
        link = page["next"]
        assert link is None or "other=1" in link

    assert sorted(names) == ["P0", "P1", "P2", "P3", "P4"]
    assert "teams" not in url or names == sorted(names)
    assert api.get(f"{url}?cursor=wrong").status_code == 404


def test_a_client_chooses_the_size_of_a_page_up_to_the_most() -> None:
    for number in range(4):
        player(number)
    options = {"page_size": 1, "page_size_query_param": "size", "max_page_size": 3}
    own = type(
        "Own", (Players,), {"pagination_class": type("P", (rest.CursorPagination,), options)}
    )
    view = own.as_view({"get": "list"})

    for asked, shown in (("", 1), ("?size=2", 2), ("?size=9", 3), ("?size=x", 1)):
        answer = view(APIRequestFactory().get(f"/{asked}"))
        assert len(answer.data["results"]) == shown


def test_several_refusals_without_a_field_are_the_answer_of_the_first_kind(api: APIClient) -> None:
    class Overtaken(Players):
        def perform_create(self, serializer: Any) -> None:
            one, other = player(), player(1)
            for item in (one, other):
                Player.get(item.pk).change(name="X")
            with Transaction() as write:
                one.change(name="A", write=write)
                other.change(name="B", write=write)

    sent = {"email": "a@example.org", "team": "red", "name": "A"}
    answer = Overtaken.as_view({"post": "create"})(APIRequestFactory().post("/", sent))

    assert answer.status_code == 412


def test_a_list_of_an_index_without_a_partition_is_that_of_the_table(api: APIClient) -> None:
    class OfTeam(TeamPlayers):
        def get_partition(self) -> object:
            return self.request.query_params.get("team")

    for number, team in enumerate(("red", "blue", "red")):
        player(number, team=team)
    view = OfTeam.as_view({"get": "list"})

    names = {
        query: {item["name"] for item in view(APIRequestFactory().get(query)).data["results"]}
        for query in ("/", "/?team=red")
    }

    assert names == {"/": {"P0", "P1", "P2"}, "/?team=red": {"P0", "P2"}}


def test_only_items_of_the_partition_exist(api: APIClient) -> None:
    red, blue = player(team="red"), player(1, team="blue")
    url = f"/teams/red/players/{blue.pk}/"

    for method in ("get", "put", "patch", "delete"):
        assert getattr(api, method)(url, {}, format="json").status_code == 404
    sent = {"email": "new@example.org", "team": "blue", "name": "New"}
    assert api.post("/teams/red/players/", sent, format="json").json()["team"] == "red"
    moved = api.patch(f"/teams/red/players/{red.pk}/", {"team": "blue"}, format="json")
    assert moved.json()["team"] == "red"


def test_an_overridden_perform_create_and_an_own_serializer_keep_the_partition_and_the_etag() -> (
    None
):
    class Own(rest.ModelViewSet):
        index = Player.by_team
        queryset = Player.objects.all()
        partition = "red"

        def get_serializer_class(self) -> Any:
            return PlayerSerializer

        def perform_create(self, serializer: Any) -> None:
            serializer.save(name="Given")

        def perform_update(self, serializer: Any) -> None:
            serializer.save(shirt=9)

    sent = {"email": "new@example.org", "team": "blue", "name": "New"}
    factory = APIRequestFactory()
    made = Own.as_view({"post": "create"})(factory.post("/", sent, format="json"))
    stored = Player.find(email="new@example.org")
    assert (stored.team, stored.name) == ("red", "Given")
    assert made["ETag"] == f'"{stored.version}"'

    request = factory.patch("/", {"team": "blue"}, format="json")
    changed = Own.as_view({"patch": "partial_update"})(request, pk=stored.pk)
    stored.refresh()
    assert (stored.team, stored.shirt, changed["ETag"]) == ("red", 9, f'"{stored.version}"')


def test_a_list_of_items_is_created_without_an_idempotency_key() -> None:
    view = TeamPlayers()
    sent = [{"email": f"{n}@example.org", "team": "blue", "name": n} for n in "ab"]

    def save(**headers: str) -> None:
        view.request = APIRequestFactory().post("/", headers=headers)
        view.kwargs, view.format_kwarg = {"team": "red"}, None
        serializer = view.get_serializer(data=sent, many=True)
        serializer.is_valid(raise_exception=True)
        serializer.save()

    with pytest.raises(serializers.ValidationError, match="cannot be used"):
        save(**{"Idempotency-Key": "k"})
    assert [*Player.scan()] == []
    save()
    assert {(item.name, item.team) for item in Player.scan()} == {("a", "red"), ("b", "red")}


@pytest.mark.parametrize(
    "base", [serializers.ModelSerializer, serializers.HyperlinkedModelSerializer]
)
def test_a_serializer_of_the_framework_names_that_of_the_library(base: Any) -> None:
    meta = type("Meta", (), {"model": Player, "fields": "__all__"})

    with pytest.raises(AttributeError, match=r"from dynamo\.rest\.ModelSerializer"):
        _ = type("Plain", (base,), {"Meta": meta})(player()).data


def test_items_with_a_sort_key_have_both_parts_in_the_url(api: APIClient) -> None:
    made = api.post("/chairs/", {"hall": "a,b", "row": 1}, format="json")
    assert made.status_code == 201
    assert api.post("/chairs/", {"hall": "a,b", "row": 1}, format="json").status_code == 400

    key = {"Idempotency-Key": "k"}
    made = api.post("/chairs/", {"hall": "c", "row": 1}, format="json", headers=key)
    assert (made.status_code, set(made.json())) == (400, {"Idempotency-Key"})

    changed = api.put("/chairs/a,b,1/", {"guest": "Ann", "row": 9, "hall": "x"}, format="json")

    assert changed.json() == {"hall": "a,b", "row": 1, "guest": "Ann"}
    for url in ("/chairs/a/", "/chairs/a,x/", "/chairs/a,2/"):
        assert api.get(url).status_code == 404


def test_an_item_is_found_by_a_unique_value(api: APIClient) -> None:
    player()

    assert api.get("/emails/P0@example.org/").json()["name"] == "P0"
    assert api.get("/emails/none@example.org/").status_code == 404


def test_numbered_items_are_issued(api: APIClient) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    made = [api.post("/bills/", {"text": "A"}, format="json", headers=key) for _twice in range(2)]
    made.append(api.post("/bills/", {"text": "B"}, format="json"))

    assert [answer.json()["number"] for answer in made] == [1, 1, 2]
    assert [item["text"] for item in api.get("/bills/").json()["results"]] == ["A", "B"]
    assert api.get("/bills/2026,2/").json()["text"] == "B"


def test_what_would_be_ignored_is_refused() -> None:
    for wrong in (
        {"get_queryset": lambda _view: None},
        {"queryset": Player.objects.page("red", index_name="by_team")},
        {"filter_queryset": lambda _view, found: [*found]},
    ):
        serializer = {"serializer_class": PlayerSerializer}
        with pytest.raises(TypeError, match="Override get_partition"):
            type("Wrong", (rest.ModelViewSet,), serializer | wrong)
        with pytest.raises(TypeError, match="Override get_partition"):
            type("Wrong", (type("Own", (), wrong), rest.ModelViewSet), serializer)
    request = APIRequestFactory().get("/")
    for wrong in ({"pagination_class": PageNumberPagination}, {"pagination_class": None}):
        view = type("Wrong", (Players,), wrong).as_view({"get": "list"})
        with pytest.raises(ImproperlyConfigured, match="CursorPagination"):
            view(request)
    ordered = type("Ordered", (rest.CursorPagination,), {"ordering": "name"})
    with pytest.raises(ImproperlyConfigured, match="ordering changes nothing"):
        type("Wrong", (Players,), {"pagination_class": ordered}).as_view({"get": "list"})(request)
    filters: Any = type(
        "Filters", (), {"filter_queryset": lambda _self, _request, found, _view: [*found]}
    )
    for backend in (filters, SearchFilter, OrderingFilter):
        fields = {"search_fields": ["name"], "ordering_fields": ["name"]}
        own = type("Wrong", (Players,), {"filter_backends": [backend], **fields})
        asked = APIRequestFactory().get("/", {"search": "Ann", "ordering": "name"})
        for actions, key in (({"get": "list"}, {}), ({"get": "retrieve"}, {"pk": "1"})):
            with pytest.raises(ImproperlyConfigured, match="filter_backends would change nothing"):
                own.as_view(actions)(asked, **key)
    with pytest.raises(ImproperlyConfigured, match="needs get_partition"):
        TeamPlayers.as_view({"get": "list"})(request)


def test_declared_fields_and_validators_are_the_frameworks() -> None:
    class Own(rest.ModelSerializer):
        label = serializers.CharField(source="name")
        shout = serializers.SerializerMethodField()

        class Meta:
            model = Player
            fields = ("label", "shout", "noun")
            extra_kwargs = {"label": {"max_length": 3}}  # noqa: RUF012

        def get_shout(self, item: Player) -> str:
            return item.name.upper()

    Player.noun = property(lambda _player: "player")  # type: ignore[attr-defined]
    assert Own(player()).data == {"label": "P0", "shout": "P0", "noun": "player"}
    del Player.noun  # type: ignore[attr-defined]


# Throttles ----------------------------------------------------------------------------------------


class Scoped(rest.ScopedRateThrottle):
    THROTTLE_RATES = {"few": "3/hour", "none": "0/day", "any": None}  # noqa: RUF012


class OfUser(rest.UserRateThrottle):
    rate = "3/hour"


class OfAnybody(rest.AnonRateThrottle):
    rate = "3/hour"


def answers(throttle: type, scope: str = "few", user: str = "") -> Callable[..., Any]:
    options = {"throttle_classes": [throttle], "throttle_scope": scope}
    view = type("Limited", (Players,), options).as_view({"get": "list"})

    def get(_number: int = 0) -> Any:
        request = APIRequestFactory().get("/")
        if user:
            force_authenticate(request, Visitor(user))
        return view(request)

    return get


@pytest.mark.parametrize("throttle", [Scoped, OfUser, OfAnybody])
def test_requests_at_the_same_time_are_all_counted(
    throttle: type, at_once: Callable[..., list[Any]]
) -> None:
    sent = at_once(answers(throttle))

    assert sorted(answer.status_code for answer in sent) == [200] * 3 + [429] * 5
    waits = {int(answer["Retry-After"]) for answer in sent if answer.status_code == 429}
    assert all(3000 < wait <= 3601 for wait in waits)


def test_users_and_scopes_are_counted_by_themselves() -> None:
    for throttle, scope in ((Scoped, "few"), (OfUser, "")):
        for user in ("ann", "bob", ""):
            codes = [answers(throttle, scope, user)().status_code for _request in range(4)]
            assert codes == [200, 200, 200, 429]
    for throttle, scope in ((Scoped, "any"), (Scoped, ""), (OfAnybody, "")):
        codes = [answers(throttle, scope, "ann")().status_code for _request in range(4)]
        assert codes == [200] * 4
    assert answers(Scoped, "none")().status_code == 429


def test_a_window_that_has_ended_is_followed_by_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    get = answers(OfUser)
    assert [get().status_code for _request in range(4)] == [200, 200, 200, 429]
    now_ms = cache_items.now_ms

    monkeypatch.setattr(cache_items, "now_ms", lambda: now_ms() + 3_601_000)

    assert [get().status_code for _request in range(4)] == [200, 200, 200, 429]


def test_a_throttle_costs_one_request_and_two_at_the_beginning_of_a_window() -> None:
    get = answers(OfUser)
    for operations in (["UpdateItem", "PutItem"], ["UpdateItem"]):
        with collect(keep_calls=True) as tally:
            get()
        assert [call.operation for call in tally.calls] == [*operations, "Scan"]


@pytest.mark.parametrize(
    "first", ["dynamo.rest", "rest_framework.views", "rest_framework.generics"]
)
def test_settings_can_name_throttles_and_pagination_in_any_import_order(first: str) -> None:
    program = f"""
from django.conf import settings
settings.configure(INSTALLED_APPS=["dynamo"], DATABASES={{}}, REST_FRAMEWORK={{
    "DEFAULT_THROTTLE_CLASSES": ["dynamo.rest.UserRateThrottle"],
    "DEFAULT_PAGINATION_CLASS": "dynamo.rest.CursorPagination",
}})
import django; django.setup()
import importlib; importlib.import_module({first!r})
from dynamo import rest
from rest_framework.views import APIView
assert APIView.throttle_classes == [rest.UserRateThrottle]
assert rest.ModelViewSet.throttle_classes == [rest.UserRateThrottle]
"""
    assert fork_server.run("-c", program).returncode == 0


def test_a_throttle_refuses_a_cache_that_has_another_value_than_a_count() -> None:
    class Named(OfUser):
        def get_cache_key(self, _request: object, _view: object) -> str:
            return "a-key"

    cache.set("a-key", "a text")

    with pytest.raises(ImproperlyConfigured, match="another value than a count"):
        answers(Named)()


def test_schemas_show_no_docstrings_of_the_library() -> None:
    assert not any(
        getattr(rest, name).__doc__
        for name in rest.__all__
        if "Throttle" not in name and "Cursor" not in name
    )

"""Indexes whose partition and sort keys have several attributes."""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import Http404
from django.test import RequestFactory
from rest_framework.test import APIRequestFactory

from dynamo import (
    BadCursor,
    GlobalSecondaryIndex,
    IntegerAttribute,
    Model,
    Page,
    Rejected,
    TextAttribute,
    Unique,
)
from dynamo.admin.changelist import sources
from dynamo.rest import ModelSerializer, ModelViewSet
from dynamo.tables.checks import check_dynamodb
from dynamo.tables.definitions import create, tables_of, verify
from dynamo.views import ListView
from tests import engines
from tests.faults.proxy import through


class Match(Model):
    class ByRound(GlobalSecondaryIndex["Match"]):
        season = IntegerAttribute(hash_key=True)
        cup = TextAttribute(hash_key=True)
        stage = TextAttribute(range_key=True)
        day = IntegerAttribute(range_key=True)
        arena = TextAttribute(range_key=True)

    class ByArena(GlobalSecondaryIndex["Match"]):
        arena = TextAttribute(hash_key=True)
        season = IntegerAttribute(range_key=True)
        day = IntegerAttribute(range_key=True)

    class Meta:
        table_name = "tests-matches"

    season = IntegerAttribute()
    cup = TextAttribute()
    stage = TextAttribute()
    day = IntegerAttribute()
    arena = TextAttribute(null=True)
    code = TextAttribute()

    by_round = ByRound()
    by_arena = ByArena()
    unique_code = Unique("code")


@pytest.fixture(scope="module", params=["ministack", "moto"])
def _engine(request: pytest.FixtureRequest) -> Iterator[str]:
    pytest.importorskip(request.param)
    with engines.running(request.param) as url:
        yield url


@pytest.fixture
def matches(_engine: str) -> Iterator[None]:
    [table] = tables_of(Match)
    with through(_engine):
        create(table)
        assert verify(table) == {}
        for number in range(6):
            Match.create(
                season=2026, cup="a", stage="final" if number < 2 else "group", day=number,
                arena=f"hall {number}", code=str(number),
            )  # fmt: skip
        Match.create(season=2026, cup="b", stage="group", day=1, arena="hall 1", code="other")
        Match.create(season=2026, cup="a", stage="group", day=9, code="without an arena")
        yield
        for match in list(Match.scan()):
            match.delete()


def days(found: Any) -> list[int]:
    return [match.day for match in found]


@pytest.mark.usefixtures("matches")
def test_items_are_read_by_all_parts_of_the_partition_and_a_prefix_of_the_sort_key() -> None:
    key = (2026, "a")
    index = Match.by_round

    assert days(index.query(key)) == [0, 1, 2, 3, 4, 5]
    assert days(index.query(key, Match.stage == "group")) == [2, 3, 4, 5]
    assert days(index.query(key, (Match.stage == "group") & (Match.day > 3))) == [4, 5]
    # ministack takes begins_with for the last part alone.
    assert days(index.query(key, Match.stage.between("f", "g"))) == [0, 1]
    exact = (Match.stage == "group") & (Match.day == 3) & (Match.arena >= "hall 3")
    assert days(index.query(key, exact)) == [3]
    assert days(index.query(key, filter_condition=Match.day < 3)) == [0, 1, 2]
    assert index.count(key, Match.stage == "final") == 2
    assert days(index.query((2026, ""))) == []
    assert days(Match.by_arena.query("hall 1", Match.season == 2026)) == [1, 1]
    assert len(list(index.scan())) == 7


@pytest.mark.usefixtures("matches")
@pytest.mark.parametrize("forward", [True, False])
def test_pages_have_cursors_of_all_parts(*, forward: bool) -> None:
    read: list[int] = []
    after = None
    for _page in range(3):
        page = Match.by_round.page((2026, "a"), after=after, limit=2, scan_index_forward=forward)
        read += days(page)
        last, after = after, page.next

    assert (read, after) == (sorted(range(6), reverse=not forward), None)
    with pytest.raises(BadCursor):
        Match.by_round.page((2026, "b"), after=last, limit=2, scan_index_forward=forward)


@pytest.mark.parametrize("key", [2026, (2026,), (2026, "a", "final")])
def test_a_partition_takes_a_value_for_each_part(key: Any) -> None:
    with pytest.raises(TypeError, match=r"by_round takes a tuple of values: \(season, cup\)"):
        Match.by_round.query(key)


class Matches(ListView[Match]):
    model = Match
    index = Match.by_round
    ordering = "stage"
    paginate_by = 4
    template_name = "unused"


class OwnMatches(Matches):
    def get_page(self, **options: Any) -> Page[Match]:
        return Match.by_round.page((2026, "a"), **options)


class MatchSerializer(ModelSerializer):
    class Meta:
        model = Match
        fields: ClassVar = ["pk", "code", "cup", "season", "day"]


class MatchViewSet(ModelViewSet):
    serializer_class = MatchSerializer
    index = Match.by_round


@pytest.mark.usefixtures("matches")
@pytest.mark.parametrize(
    ("view", "arguments"),
    [
        (Matches, {"season": "2026", "cup": "a"}),
        (type("Set", (Matches,), {"partition": (2026, "a")}), {}),
        (OwnMatches, {}),
    ],
)
def test_a_list_has_the_pages_of_all_parts(view: Any, arguments: dict[str, str]) -> None:
    show = view.as_view()

    first = show(RequestFactory().get("/"), **arguments).context_data
    second = show(RequestFactory().get("/", {"page": first["page_obj"].next}), **arguments)

    assert days(first["object_list"]) + days(second.context_data["object_list"]) == [*range(6)]
    assert second.context_data["page_obj"].next is None
    with pytest.raises(Http404):
        show(RequestFactory().get("/", {"page": "unknown"}), **arguments)


@pytest.mark.usefixtures("matches")
def test_a_viewset_has_only_the_items_of_all_parts() -> None:
    class Unlocked(MatchViewSet):
        authentication_classes: ClassVar = []
        partition = (2026, "a")

    def answer(view: Any, actions: dict[str, str], request: Any, **arguments: str) -> Any:
        return view.as_view(actions)(request, **arguments).data

    requests = APIRequestFactory()
    other = Match.find(code="other").pk
    url = {"season": "2026", "cup": "a"}
    own = [
        answer(Unlocked, {"get": "list"}, requests.get("/")),
        answer(MatchViewSet, {"get": "list"}, requests.get("/"), **url),
    ]
    assert [[match["day"] for match in page["results"]] for page in own] == [[*range(6)]] * 2
    missing = answer(Unlocked, {"get": "retrieve"}, requests.get("/"), pk=other)
    assert missing["detail"].code == "not_found"
    changed = {"season": 1999, "cup": "b", "day": 7}
    moved = answer(
        Unlocked, {"patch": "partial_update"}, requests.patch("/", changed),
        pk=Match.find(code="0").pk,
    )  # fmt: skip
    assert (moved["season"], moved["cup"], moved["day"]) == (2026, "a", 7)


@pytest.mark.parametrize("partition", [2026, (2026,), (2026, "a", "final")])
def test_lists_refuse_a_partition_without_all_parts(partition: object) -> None:
    request = RequestFactory().get("/")
    for view in (Matches.as_view, partial(MatchViewSet.as_view, {"get": "list"})):
        with pytest.raises(ImproperlyConfigured, match=r"is \(season, cup\), not"):
            view(partition=partition)(request)
    with pytest.raises(ImproperlyConfigured, match="take season and cup from the URL"):
        Matches.as_view()(request)


def test_the_index_is_described_in_the_order_of_its_declaration() -> None:
    [table] = tables_of(Match)
    by_arena, by_round = table.schema["GlobalSecondaryIndexes"]

    assert [(part["AttributeName"], part["KeyType"]) for part in by_round["KeySchema"]] == [
        *(("season", "HASH"), ("cup", "HASH")),
        *(("stage", "RANGE"), ("day", "RANGE"), ("arena", "RANGE")),
    ]
    assert [part["KeyType"] for part in by_arena["KeySchema"]] == ["HASH", "RANGE", "RANGE"]
    assert str(table.indexes[1]) == (
        "(season (N), cup (S)), stage (S), day (N), arena (S) with ALL"
    )
    # The admin lists by one attribute.
    assert [(source.index_name, source.partition) for source in sources(Match)] == [
        (None, "pk"),
        ("by_arena", "arena"),
    ]


def test_a_key_has_at_most_four_attributes_of_a_kind() -> None:
    parts = {f"part{number}": TextAttribute(hash_key=True) for number in range(5)}
    index: Any = type("ByAll", (GlobalSecondaryIndex,), parts)
    with pytest.raises(TypeError, match="at most 4 attributes of a kind"):
        type(
            "TooLong",
            (Model,),
            {
                "__module__": __name__,
                "Meta": type("Meta", (), {"table_name": "too-long"}),
                "by_all": index(),
                **{name: TextAttribute() for name in parts},
            },
        )


def test_the_check_names_an_index_whose_queries_the_engine_refuses(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo.tables.checks.all_tables", lambda: tables_of(Match))
    for table in tables_of(Match):
        create(table)

    found = [(item.id, item.msg) for item in check_dynamodb()]

    warned = [text.partition(" of the index ")[2] for name, text in found if name == "dynamo.W007"]
    refused = []
    asked: list[tuple[Any, Any, Any]] = [
        (Match.by_arena, "north", (Match.season == 2026) & (Match.day == 1)),
        (Match.by_round, (2026, "league"), (Match.stage == "final") & (Match.day == 1)),
    ]
    for index, partition, condition in asked:
        try:
            index.page(partition, range_key_condition=condition)
        except Rejected:
            refused.append(index.Meta.index_name)
    assert [text.partition(" of ")[0] for text in warned] == refused

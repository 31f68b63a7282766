"""An API for scripts of the pages. A session that has ended anywhere has ended here, too."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class MeSerializer(serializers.Serializer):
    username = serializers.CharField(read_only=True)
    email = serializers.EmailField(read_only=True)
    full_name = serializers.CharField(max_length=150)

    def update(self, instance: Any, validated_data: dict[str, Any]) -> Any:
        instance.change(**validated_data)
        return instance


class Me(APIView):
    def get(self, request: Request) -> Response:
        return Response(MeSerializer(request.user).data)

    def put(self, request: Request) -> Response:
        serializer = MeSerializer(request.user, data=request.data)
        serializer.is_valid(raise_exception=True)
        serializer.save()
        return Response(serializer.data)

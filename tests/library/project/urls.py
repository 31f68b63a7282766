"""No pages: tests that need some bring their own."""

urlpatterns: list[object] = []

from django.http import HttpRequest

from dynamo import Transaction, admin
from members.models import Editor, Member


@admin.register(Member)
class MemberAdmin(admin.ModelAdmin[Member]):
    list_display = ["name", "email", "club"]
    list_filter = ["club"]
    search_fields = ["email"]
    ordering = ["name"]
    fields = ["email", "name", "club", "notes"]
    actions = ["move_to_go"]

    @admin.action(description="Move to the go club", permissions=["change"])
    def move_to_go(self, request: HttpRequest, obj: Member, write: Transaction) -> None:
        obj.change(club="go", write=write)


admin.site.register(Editor, admin.UserAdmin)

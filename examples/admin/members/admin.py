from dynamo import admin
from members.models import Editor, Member


@admin.register(Member)
class MemberAdmin(admin.ModelAdmin):
    list_display = ["name", "email", "club"]
    list_filter = ["club"]
    search_fields = ["email"]
    ordering = ["name"]
    fields = ["email", "name", "club", "notes"]
    actions = ["move_to_go"]

    @admin.action(description="Move to the go club", permissions=["change"])
    def move_to_go(self, request, obj, write):
        obj.change(club="go", write=write)


admin.site.register(Editor, admin.UserAdmin)

"""The rendering of the site's forms."""

from django.forms.renderers import TemplatesSetting


class FormRenderer(TemplatesSetting):
    """All forms look like those of `accounts`."""

    form_template_name = "accounts/_form.html"
    field_template_name = "accounts/_field.html"

"""The pages that edit the seller of the account's invoices."""

from django.contrib.auth.views import RedirectURLMixin
from django.http import HttpResponse
from django.utils.translation import gettext as _

from accounts.forms import PartialForm
from accounts.pages.base import KeepFormMixin
from invoices.document.identifiers import readable_iban
from invoices.models import SELLER_VALUES, SellerProfile
from invoices.pages.base import OwnFormView, SellerMixin
from invoices.store.sellers import open_profile


class SellerForm(PartialForm[SellerProfile]):
    class Meta:
        model = SellerProfile
        fields = ("name", "address", "country", "vat_id", "tax_number")

    def clean_vat_id(self) -> str | None:
        typed = self.cleaned_data["vat_id"]
        return self.instance.fitting_vat_id(typed, self.cleaned_data.get("country"))


class PaymentForm(PartialForm[SellerProfile]):
    class Meta:
        model = SellerProfile
        fields = tuple(name for name in SELLER_VALUES if name not in SellerForm.Meta.fields)


class SellerView(SellerMixin, KeepFormMixin, RedirectURLMixin, OwnFormView):
    """The form of the seller. It redirects to the page in `next`."""

    template_name = "invoices/seller.html"
    form_class: type[PartialForm] = SellerForm
    next_page = "seller"

    def get_form_kwargs(self) -> dict[str, object]:
        self.profile = open_profile(self.user, self.profile)
        return super().get_form_kwargs() | {"instance": self.profile}

    def get_initial(self) -> dict[str, object]:
        return {"iban": readable_iban(self.profile.iban or "")}

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        to = self.get_redirect_url()
        return super().get_context_data(part=self.next_page, next=to, **kwargs)

    def act(self, form: PartialForm) -> HttpResponse:
        if form.try_save() is None:
            return self.form_invalid(form)
        return self.redirect(_("Your details were saved."), self.get_success_url())


class PaymentView(SellerView):
    """The bank account of the seller, and the initial values of new invoices."""

    form_class = PaymentForm
    next_page = "seller_payment"

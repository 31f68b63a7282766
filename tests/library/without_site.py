"""Skips the tests of the library that import the site or an extra, which are not here."""

from tests.absent import skip_tests_of

skip_tests_of("accounts", "invoices", "staff", "uploads", "opentelemetry", "rest_framework")

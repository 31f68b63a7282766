"""What happens to an invoice after it was issued: voided, credited, paid."""

"""Files of many invoices: made while they are sent, or stored in S3."""

"""The address book of an account: customers whose data an invoice form takes over."""

"""What a person types and a document says: kinds of values, fields, amounts, currencies."""

"""The peer of the benchmarks of pages: the same pages by Django's own parts on PostgreSQL."""

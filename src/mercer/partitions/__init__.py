"""Labels from coordinates."""

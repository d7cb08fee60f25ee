"""The papers' tables and figures, published numbers beside ours."""

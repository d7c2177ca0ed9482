"""Tables that can be read: their stores, what fills them, and scans over them."""

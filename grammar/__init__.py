"""The language as data: grammar files in Lark's notation and examples of broken input."""
